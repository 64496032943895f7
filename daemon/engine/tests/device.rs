//! The device under test on small random models: every format, every architecture, every shape of a step. It is held against
//! the floats that the weights stand for, on the reference backend, and against itself to the bit.

mod common;

use common::DEVICE;
use tandem_engine::TokenId;
use tandem_engine::backend::candle::CandleBackend;
use tandem_engine::gguf::Gguf;
use tandem_engine::model::{Decoder, LanguageModel, Row, Slot};
use tandem_engine::pair::Device;
use tandem_engine::testing::{
    Format, TinyModel, chain, forward, in_formats, invariance, load, open,
};

/// Rows of the steps after the prompt.
const STEPS: [usize; 6] = [1, 3, 8, 12, 17, 33];

/// Two layers, whose matrices every format's blocks divide.
const LLAMA: TinyModel = TinyModel {
    architecture: "llama",
    layers: 2,
    width: 256,
    inner: 512,
    heads: 8,
    kv_heads: 2,
    context_length: 2048,
    seed: 3,
    spread: 0.0,
};

/// A model, and what is done with it.
struct Case {
    model: TinyModel,
    vocabulary: usize,
    /// Tokens of the first step: more than two of the chunks that attention is cut into.
    prompt: usize,
}

impl Case {
    const fn of(model: TinyModel) -> Self {
        Self {
            model,
            vocabulary: 257,
            prompt: 270,
        }
    }

    /// What each product may add, relative to what it adds to.
    ///
    /// The CPU's integer kernels round activations to 8 bits of the largest of up to 256: 3 / 127 / √12 of their size. All
    /// else computes with halves at the least: of an activation, of a weight, of a key or value; a half is off by 2⁻¹² of
    /// itself on average, and four of these in a product by 2⁻¹⁰ at the most.
    fn rounding(format: impl Fn(&str) -> Format) -> f64 {
        let integers = !format("blk.0.ffn_up.weight").takes_floats();
        match DEVICE {
            Device::Cpu(_) if integers => 3.0 / 127.0 / 12.0_f64.sqrt(),
            _ => 1.0 / 1024.0,
        }
    }

    /// Checks the model with matrices in the formats that `format` names.
    fn check(&self, format: impl Fn(&str) -> Format) {
        let [weights, floats] = in_formats(&self.model, self.vocabulary, &format);
        let (weights, floats) = (open(&weights), open(&floats));
        let mut device = on_the_device(&weights);
        let mut reference =
            Decoder::load(CandleBackend::cpu(), &floats, 2048, &mut |_| {}).expect("it loads");
        // Roundings of products in a row add up as their squares do.
        let products = 7 * self.model.layers + 1;
        let bound = Self::rounding(&format) * (products as f64).sqrt();
        let tokens = tokens(self.prompt + 130, self.vocabulary);
        let expected = self.said(&mut reference, &tokens);
        let found = self.said(&mut *device, &tokens);
        let spread = rms(expected.iter().flat_map(|(_, rows)| rows.iter().flatten()));
        assert!(spread > 0.1, "or this tests nothing: {spread}");
        let mut worst = 0.0_f64;
        for ((step, found), (_, expected)) in found.iter().zip(&expected) {
            for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
                let differences: Vec<f32> =
                    found.iter().zip(expected).map(|(a, b)| a - b).collect();
                let error = rms(&differences) / spread;
                assert!(
                    error < bound,
                    "{step}: row {row} is off by {error:.5}, where {bound:.5} is allowed"
                );
                worst = worst.max(error);
            }
        }
        if std::env::var_os("SHOW").is_some() {
            eprintln!("worst {worst:.5} of {bound:.5}: {:.2}", worst / bound);
        }
        if device.batch_invariant() {
            let differing = invariance(&mut *device, &tokens).expect("it runs");
            assert!(differing.is_empty(), "{differing:#?}");
        }
    }

    /// What a model says of a prompt, of steps after it, of a tree, and of what follows a path of that.
    fn said(
        &self,
        model: &mut dyn LanguageModel,
        tokens: &[TokenId],
    ) -> Vec<(String, Vec<Vec<f32>>)> {
        let slot = model.open().expect("a cache");
        let (mut said, mut at) = (Vec::new(), 0);
        for rows in std::iter::once(self.prompt).chain(STEPS) {
            let logits = chain(model, slot, &tokens[at..at + rows], rows).expect("it runs");
            said.push((format!("a step of {rows} rows at {at}"), logits));
            at += rows;
        }
        let rows = tree(slot, &tokens[at..]);
        let logits = forward(model, &rows, rows.len()).expect("it runs");
        said.push((format!("a tree at {at}"), logits));
        model.keep(slot, at, &[1, 3, 4]).expect("it keeps");
        let logits = chain(model, slot, &tokens[at..at + 5], 5).expect("it runs");
        said.push(("what follows a path".to_owned(), logits));
        model.close(slot);
        said
    }
}

/// Two roots; the second has two children, and the second of these has one.
fn tree(slot: Slot, tokens: &[TokenId]) -> Vec<Row> {
    let parents = [None, None, Some(1), Some(1), Some(3)];
    let row = |(token, parent): (&TokenId, Option<usize>)| Row {
        slot,
        token: *token,
        parent,
    };
    tokens.iter().zip(parents).map(row).collect()
}

fn on_the_device(gguf: &Gguf) -> Box<dyn LanguageModel> {
    load(DEVICE, gguf, 2048).expect("it loads")
}

fn tokens(count: usize, vocabulary: usize) -> Vec<TokenId> {
    let token = |i: u32| (i.wrapping_mul(2_654_435_761) >> 8) % vocabulary as u32;
    (0..count as u32).map(token).collect()
}

fn rms<'a>(values: impl IntoIterator<Item = &'a f32>) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += f64::from(*value).powi(2);
        count += 1;
    }
    (sum / f64::from(count)).sqrt()
}

/// A test for each case, so that what is broken is named.
macro_rules! cases {
    ($($name:ident: $case:expr, $format:expr;)*) => {
        $(#[test]
        fn $name() {
            let format: fn(&str) -> Format = $format;
            $case.check(format);
        })*
    };
}

mod formats {
    use super::*;

    cases! {
        f32: Case::of(LLAMA), |_| Format::F32;
        f16: Case::of(LLAMA), |_| Format::F16;
        bf16: Case::of(LLAMA), |_| Format::BF16;
        q4_0: Case::of(LLAMA), |_| Format::Q4_0;
        q4_1: Case::of(LLAMA), |_| Format::Q4_1;
        q5_0: Case::of(LLAMA), |_| Format::Q5_0;
        q5_1: Case::of(LLAMA), |_| Format::Q5_1;
        q8_0: Case::of(LLAMA), |_| Format::Q8_0;
        q2_k: Case::of(LLAMA), |_| Format::Q2K;
        q3_k: Case::of(LLAMA), |_| Format::Q3K;
        q4_k: Case::of(LLAMA), |_| Format::Q4K;
        q5_k: Case::of(LLAMA), |_| Format::Q5K;
        q6_k: Case::of(LLAMA), |_| Format::Q6K;
    }
}

/// Formats that candle's backend does not compute with.
mod rare_formats {
    use super::*;

    cases! {
        iq4_nl: Case::of(LLAMA), |_| Format::IQ4NL;
        iq4_xs: Case::of(LLAMA), |_| Format::IQ4XS;
        iq3_s: Case::of(LLAMA), |_| Format::IQ3S;
        iq3_xxs: Case::of(LLAMA), |_| Format::IQ3XXS;
        iq2_s: Case::of(LLAMA), |_| Format::IQ2S;
        iq2_xs: Case::of(LLAMA), |_| Format::IQ2XS;
        iq2_xxs: Case::of(LLAMA), |_| Format::IQ2XXS;
        iq1_m: Case::of(LLAMA), |_| Format::IQ1M;
        iq1_s: Case::of(LLAMA), |_| Format::IQ1S;
        tq1_0: Case::of(LLAMA), |_| Format::TQ1_0;
        tq2_0: Case::of(LLAMA), |_| Format::TQ2_0;
        mxfp4: Case::of(LLAMA), |_| Format::MXFP4;
    }
}

/// Matrices of one layer in different formats, as mixtures such as Q4_K_M have them.
mod mixtures {
    use super::*;

    cases! {
        values_and_down_in_more_bits: Case::of(LLAMA), |name| match name {
            name if name.contains("attn_v") || name.contains("ffn_down") => Format::Q6K,
            _ => Format::Q4K,
        };
        gate_and_up_differ: Case::of(LLAMA), |name| match name {
            name if name.contains("ffn_up") => Format::Q4_1,
            name if name.contains("attn_k") => Format::Q5_0,
            _ => Format::Q4_0,
        };
    }
}

/// Biases (qwen2), norms of heads (qwen3, gemma3), and a window, norms behind, GELU and another angle (gemma3); as halves, so
/// that little else than the architecture can be off.
mod architectures {
    use super::*;

    const fn of(architecture: &'static str, layers: usize) -> Case {
        Case::of(TinyModel {
            architecture,
            layers,
            width: 64,
            inner: 192,
            heads: 4,
            ..LLAMA
        })
    }

    cases! {
        llama: of("llama", 2), |_| Format::F16;
        qwen2: of("qwen2", 2), |_| Format::F16;
        qwen3: of("qwen3", 2), |_| Format::F16;
        // Layers with a window and, the sixth, one without.
        gemma3: of("gemma3", 7), |_| Format::F16;
        gemma3_quantized: of("gemma3", 7), |_| Format::Q8_0;
    }
}

/// Heads and extents that kernels divide unevenly.
mod extents {
    use super::*;

    const fn of(width: usize, inner: usize, heads: usize, kv_heads: usize) -> Case {
        Case::of(TinyModel {
            width,
            inner,
            heads,
            kv_heads,
            ..LLAMA
        })
    }

    cases! {
        one_head_of_256: of(256, 512, 1, 1), |_| Format::F16;
        seven_heads_share_a_key: of(224, 448, 14, 2), |_| Format::F16;
        as_many_keys_as_heads: of(96, 192, 12, 12), |_| Format::F16;
        three_heads_of_128: of(384, 512, 3, 1), |_| Format::F16;
        half_a_step_of_inputs_q4_0: of(96, 160, 4, 2), |_| Format::Q4_0;
        half_a_step_of_inputs_q4_1: of(96, 160, 4, 2), |_| Format::Q4_1;
        half_a_step_of_inputs_q5_0: of(96, 160, 4, 2), |_| Format::Q5_0;
        half_a_step_of_inputs_q8_0: of(96, 160, 4, 2), |_| Format::Q8_0;
        a_quarter_of_a_step_of_inputs: of(48, 80, 6, 2), |_| Format::F16;
        a_long_text: Case { prompt: 1100, ..of(32, 64, 4, 2) }, |_| Format::F16;
    }
}

/// So many outputs that a device's larger shapes of products are chosen.
mod many_outputs {
    use super::*;

    const WIDE: Case = Case {
        model: TinyModel {
            layers: 1,
            inner: 4096,
            ..LLAMA
        },
        vocabulary: 8195,
        prompt: 270,
    };

    cases! {
        q4_0: WIDE, |_| Format::Q4_0;
        q4_1: WIDE, |_| Format::Q4_1;
        q8_0: WIDE, |_| Format::Q8_0;
        f16: WIDE, |_| Format::F16;
    }
}

#[test]
fn caches_take_what_their_positions_take() {
    let [weights, _] = in_formats(&LLAMA, 257, |_| Format::Q8_0);
    let mut device = on_the_device(&open(&weights));
    let slot = device.open().expect("a cache");
    for step in tokens(1200, 257).chunks(60) {
        chain(&mut *device, slot, step, 1).expect("it runs");
        // Rounded up by less than one piece.
        let positions = device.cache_bytes() / device.cache_bytes_per_position();
        let cached = device.cached(slot) as u64;
        assert!(
            (cached..cached + 256).contains(&positions),
            "room for {positions} positions, of which {cached} are held"
        );
    }
    let fork = device.fork(slot, 300).expect("a fork");
    let both = device.cache_bytes();
    device.close(slot);
    assert!(device.cache_bytes() < both / 2);
    device.close(fork);
    assert_eq!(device.cache_bytes(), 0);
}

/// A device may refuse a tree whose rows take too much to describe; whether or not, the next step is as if it had not been.
#[test]
fn a_step_that_fails_leaves_nothing_behind() {
    let [weights, _] = in_formats(&LLAMA, 257, |_| Format::Q8_0);
    let mut device = on_the_device(&open(&weights));
    let tokens = tokens(40, 257);
    let slot = device.open().expect("a cache");
    let expected = chain(&mut *device, slot, &tokens, 1).expect("it runs");
    device.truncate(slot, 30);
    // A root, and a branch of 1,700 rows beside it, each of which sees all above it.
    let rows: Vec<Row> = (0..1700)
        .map(|at: usize| Row {
            slot,
            token: 3,
            parent: at.checked_sub(1).filter(|parent| *parent > 0),
        })
        .collect();
    for _ in 0..3 {
        match device.grow(&rows, &[1699]) {
            Ok(logits) => assert!(logits.row(0).iter().all(|x| x.is_finite())),
            Err(error) => assert!(error.to_string().contains("bytes"), "{error}"),
        }
        device.truncate(slot, 30);
        let again = chain(&mut *device, slot, &tokens[30..], 1).expect("it runs");
        assert_eq!(again, expected);
        device.truncate(slot, 30);
    }
}

#[test]
fn a_step_of_no_rows_says_nothing() {
    let [weights, _] = in_formats(&LLAMA, 257, |_| Format::Q8_0);
    let mut device = on_the_device(&open(&weights));
    let slot = device.open().expect("a cache");
    let tokens = tokens(20, 257);
    let expected = chain(&mut *device, slot, &tokens, 1).expect("it runs");
    device.truncate(slot, 10);
    device.forward(&[], &[]).expect("it does nothing");
    let rest: Vec<Row> = Row::chain(slot, &tokens[10..19]).collect();
    device.forward(&rest, &[]).expect("nobody asks");
    let last = chain(&mut *device, slot, &tokens[19..], 1).expect("it runs");
    assert_eq!(last, expected);
}
