//! A row's logits are the same to the bit whatever it is computed with, by every format and instruction set.

use std::sync::Arc;

use super::*;
use crate::backend::cpu::pool::Pool;
use crate::backend::cpu::simd::Isa;

/// Positions: past a chunk of attention, so that its results are folded.
const LEN: usize = 150;
/// The row that is looked at beside others.
const PROBE: usize = 140;

/// A backend for every instruction set that this CPU has.
fn backends(threads: usize) -> Vec<CpuBackend> {
    let kernels = tandem_kernels::Isa::available();
    let others = Isa::all();
    (0..kernels.len().max(others.len()))
        .map(|i| {
            let threads = NonZeroUsize::new(threads).expect("at least one");
            let pool = Arc::new(Pool::new(threads));
            CpuBackend::with(
                pool,
                others[i.min(others.len() - 1)],
                kernels[i.min(kernels.len() - 1)],
            )
        })
        .collect()
}

/// Feeds a chain in parts of `len` and returns the logits of all its rows.
fn in_parts(
    model: &mut dyn LanguageModel,
    slot: Slot,
    tokens: &[TokenId],
    len: usize,
) -> Vec<Vec<f32>> {
    let parts = tokens.chunks(len);
    parts.flat_map(|part| feed(model, slot, part)).collect()
}

fn bits(rows: &[Vec<f32>]) -> Vec<u32> {
    rows.iter().flatten().map(|x| x.to_bits()).collect()
}

/// Logits of the row at [`PROBE`] beside `own` rows that follow it and rows of other sequences before and behind.
fn beside(
    model: &mut dyn LanguageModel,
    tokens: &[TokenId],
    own: usize,
    others: [usize; 2],
) -> Vec<f32> {
    let slot = model.open().expect("a cache");
    feed(model, slot, &tokens[..PROBE]);
    let mut rows = Vec::new();
    let mut add = |model: &mut dyn LanguageModel, len: usize| {
        let other = (len > 0).then(|| model.open().expect("a cache"));
        rows.extend(
            other
                .iter()
                .flat_map(|slot| Row::chain(*slot, &tokens[9..9 + len])),
        );
        (rows.len(), other)
    };
    let (at, first) = add(model, others[0]);
    let chain = Row::chain(slot, &tokens[PROBE..PROBE + 1 + own]).collect::<Vec<_>>();
    let second = (others[1] > 0).then(|| model.open().expect("a cache"));
    rows.extend(chain);
    rows.extend(
        second
            .iter()
            .flat_map(|slot| Row::chain(*slot, &tokens[3..3 + others[1]])),
    );
    let logits = model
        .forward(&rows, &[at])
        .expect("it runs")
        .row(0)
        .to_vec();
    for slot in [Some(slot), first, second].into_iter().flatten() {
        model.close(slot);
    }
    logits
}

/// Compares all ways of computing the same rows, for one format.
fn check(architecture: &str, format: GgmlDType, neighbours: impl Iterator<Item = usize> + Clone) {
    let gguf = model(architecture, format);
    let tokens = tokens(LEN);
    let alone: Vec<_> = backends(1)
        .into_iter()
        .map(|backend| {
            let (mut model, slot) = decoder(backend, &gguf);
            bits(&in_parts(&mut model, slot, &tokens, 1))
        })
        .collect();
    for (threads, len) in [(1, 512), (2, 7), (3, 64), (5, 1)] {
        for (number, backend) in backends(threads).into_iter().enumerate() {
            let what = format!("{architecture} {format:?}, instruction set {number}");
            let (mut model, slot) = decoder(backend, &gguf);
            let got = bits(&in_parts(&mut model, slot, &tokens, len));
            assert!(
                got == alone[number],
                "{what}: {threads} threads, parts of {len}"
            );
            if len == 64 {
                let width = alone[number].len() / LEN;
                let expected = &alone[number][PROBE * width..][..width];
                for count in neighbours.clone() {
                    let own = count.min(LEN - PROBE - 1) / 2;
                    let before = (count - own) / 3;
                    let others = [before, count - own - before];
                    let got = beside(&mut model, &tokens, own, others);
                    assert!(
                        bits(&[got]) == expected,
                        "{what}: {threads} threads, beside {own} of its own and {others:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn rows_are_the_same_in_every_format() {
    for format in FORMATS {
        check("llama", format, [1, 2, 4, 7, 8, 16, 31, 63].into_iter());
    }
}

#[test]
fn rows_are_the_same_on_every_architecture() {
    for architecture in ["qwen2", "qwen3", "gemma3"] {
        check(architecture, GgmlDType::Q4_0, [1, 3, 9, 63].into_iter());
    }
}

#[test]
fn rows_are_the_same_beside_any_number_of_others() {
    check("llama", GgmlDType::Q8_0, 1..64);
}
