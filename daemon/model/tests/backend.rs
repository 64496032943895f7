//! The device under test under the whole decoder: against the reference backend, and against itself to the bit, on the real
//! models. The CPU by several numbers of threads.

mod common;

use std::num::NonZeroUsize;
use std::path::Path;

use common::{DEVICE, model_on_device};
use tandem_model::TokenId;
use tandem_model::backend::candle::CandleBackend;
use tandem_model::gguf::Gguf;
use tandem_model::hardware::Device;
use tandem_model::model::{Decoder, LanguageModel, Row, Slot};
use tandem_model::testing::load;

const CONTEXT: usize = 1024;

/// Ordinary ids, as many as wanted.
fn tokens(count: usize) -> Vec<TokenId> {
    (0..count as u32)
        .map(|i| 4 + (i.wrapping_mul(2_654_435_761) >> 8) % 8000)
        .collect()
}

/// The device under test, in each way that must give the same.
fn devices() -> Vec<Device> {
    match DEVICE {
        Device::Cpu(_) => (1..=3)
            .filter_map(NonZeroUsize::new)
            .map(Device::Cpu)
            .collect(),
        device => vec![device],
    }
}

fn candle(path: &Path) -> Decoder<CandleBackend> {
    let gguf = Gguf::open(path).expect("a sound file");
    Decoder::load(CandleBackend::cpu(), &gguf, CONTEXT, &mut |_| {}).expect("it loads")
}

/// Feeds a chain and returns the logits of its last row.
fn feed(model: &mut dyn LanguageModel, slot: Slot, tokens: &[TokenId]) -> Vec<f32> {
    let rows: Vec<Row> = Row::chain(slot, tokens).collect();
    let logits = model.forward(&rows, &[rows.len() - 1]).expect("it runs");
    logits.row(0).to_vec()
}

fn rms(a: &[f32], b: &[f32]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
    (squares.sum::<f64>() / a.len() as f64).sqrt()
}

/// The reference rounds activations to 8 bits, and the CPU does so in other blocks, so that both stray from the exact logits.
/// A device that keeps activations as halves strays less, and leaves the reference's part.
#[test]
fn logits_agree_with_the_reference_within_the_noise_of_quantized_activations() {
    for path in [common::default_target(), common::default_draft()] {
        let (mut ours, mut reference) = (model_on_device(&path, CONTEXT), candle(&path));
        let (a, b) = (
            ours.open().expect("a cache"),
            reference.open().expect("a cache"),
        );
        let tokens = tokens(24);
        for part in [&tokens[..20], &tokens[20..21], &tokens[21..24]] {
            let (got, expected) = (feed(&mut *ours, a, part), feed(&mut reference, b, part));
            let (error, spread) = (
                rms(&got, &expected),
                rms(&expected, &vec![0.0; expected.len()]),
            );
            assert!(error < 0.05 * spread && error < 0.5, "{error} of {spread}");
        }
    }
}

#[test]
fn a_row_is_the_same_to_the_bit_alone_or_beside_others_however_chunked_on_any_threads() {
    for path in [common::default_target(), common::default_draft()] {
        let tokens = tokens(48);
        let mut expected = Vec::new();
        let gguf = Gguf::open(&path).expect("a sound file");
        for device in devices() {
            let mut ours = load(device, &gguf, CONTEXT).expect("it loads");
            let slot = ours.open().expect("a cache");
            // Token by token; the first results are the reference.
            let singly: Vec<Vec<f32>> = tokens
                .iter()
                .map(|token| feed(&mut *ours, slot, &[*token]))
                .collect();
            if expected.is_empty() {
                expected = singly;
            } else {
                assert_eq!(singly, expected, "{device:?}");
            }
            for parts in [&[48][..], &[5, 1, 17, 25]] {
                let slot = ours.open().expect("a cache");
                let mut at = 0;
                for part in parts {
                    at += part;
                    let last = feed(&mut *ours, slot, &tokens[at - part..at]);
                    assert_eq!(last, expected[at - 1], "{device:?}, {parts:?}");
                }
                ours.close(slot);
            }
            // The last row beside 63 of six other sequences.
            let slot = ours.open().expect("a cache");
            feed(&mut *ours, slot, &tokens[..47]);
            let mut rows = Vec::new();
            for length in [1, 20, 2] {
                let other = ours.open().expect("a cache");
                rows.extend(Row::chain(other, &tokens[..length]));
            }
            let at = rows.len();
            rows.extend(Row::chain(slot, &tokens[47..]));
            for length in [7, 1, 32] {
                let other = ours.open().expect("a cache");
                rows.extend(Row::chain(other, &tokens[3..3 + length]));
            }
            assert_eq!(rows.len(), 64);
            let logits = ours.forward(&rows, &[at, 20]).expect("it runs");
            assert_eq!(logits.row(0), expected[47]);
            assert_eq!(logits.row(1), expected[19]);
        }
    }
}

#[test]
fn a_branch_of_a_tree_is_the_chain_to_the_bit_and_so_is_what_is_kept() {
    let mut ours = model_on_device(&common::default_target(), CONTEXT);
    let tokens = tokens(16);
    let [tree, straight] = [0; 2].map(|_| ours.open().expect("a cache"));
    feed(&mut *ours, tree, &tokens[..6]);
    feed(&mut *ours, straight, &tokens[..6]);
    let row = |token, parent| Row {
        slot: tree,
        token,
        parent,
    };
    let rows = [
        row(99, None),
        row(tokens[6], None),
        row(98, Some(1)),
        row(tokens[7], Some(1)),
    ];
    let branch = ours.forward(&rows, &[3, 1]).expect("it runs");
    let branch = [1, 0].map(|row| branch.row(row).to_vec());
    assert_eq!(branch[0], feed(&mut *ours, straight, &tokens[6..7]));
    assert_eq!(branch[1], feed(&mut *ours, straight, &tokens[7..8]));
    ours.keep(tree, 6, &[1, 3]).expect("it keeps");
    assert_eq!(
        feed(&mut *ours, tree, &tokens[8..12]),
        feed(&mut *ours, straight, &tokens[8..12])
    );
}

#[test]
fn truncating_and_forking_forget_exactly_the_rest() {
    let mut ours = model_on_device(&common::default_target(), CONTEXT);
    let tokens = tokens(300);
    let slot = ours.open().expect("a cache");
    feed(&mut *ours, slot, &tokens[..290]);
    let fork = ours.fork(slot, 270).expect("a fork");
    feed(&mut *ours, slot, &[5, 6, 7]);
    ours.truncate(slot, 290);
    let straight = ours.open().expect("a cache");
    let expected = feed(&mut *ours, straight, &tokens);
    assert_eq!(feed(&mut *ours, slot, &tokens[290..]), expected);
    assert_eq!(feed(&mut *ours, fork, &tokens[270..]), expected);
    let bytes = ours.cache_bytes();
    assert_eq!(bytes, 3 * 512 * ours.cache_bytes_per_position());
    ours.close(fork);
    assert_eq!(ours.cache_bytes(), bytes / 3 * 2);
}
