//! One model on the device, held against the floats that its weights stand for, on the reference backend, and against itself
//! to the bit.

use tandem_model::TokenId;
use tandem_model::backend::candle::CandleBackend;
use tandem_model::check::FORMATS;
use tandem_model::gguf::Gguf;
use tandem_model::hardware::Device;
use tandem_model::model::{Decoder, LanguageModel, Row, Slot};
use tandem_model::testing::{
    Format, TinyModel, Weights, chain, forward, in_formats, invariance, load, open,
};

use super::common::DEVICE;

/// Rows of the steps after the prompt.
const STEPS: [usize; 6] = [1, 3, 8, 12, 17, 33];

/// Positions of every model.
const CONTEXT: usize = 2048;

/// Two layers, whose matrices every format's blocks divide.
pub(crate) const LLAMA: TinyModel = TinyModel {
    architecture: "llama",
    layers: 2,
    width: 256,
    inner: 512,
    heads: 8,
    kv_heads: 2,
    context_length: CONTEXT,
    seed: 3,
    spread: 0.0,
};

/// Logits of all rows of a run, row after row.
type Said = Vec<f32>;

/// A model, and what is done with it.
pub(crate) struct Case {
    pub(crate) model: TinyModel,
    pub(crate) vocabulary: usize,
    /// Tokens of the first step: more than two of the chunks that attention is cut into.
    pub(crate) prompt: usize,
}

impl Case {
    pub(crate) const fn of(model: TinyModel) -> Self {
        Self {
            model,
            vocabulary: 257,
            prompt: 270,
        }
    }

    /// How far a product is off by the device's roundings, relative to itself.
    ///
    /// The CPU's integer kernels round activations to 8 bits of the largest of up to 256, which is about three times their
    /// size: 3 / 127 / √12. All else computes with halves at the least. A half is off by 2⁻¹² of itself on average, an
    /// activation, a weight and a scale together by less than 2⁻¹¹.
    fn rounding(format: Format) -> f32 {
        match DEVICE {
            Device::Cpu(_) if !format.takes_floats() => 3.0 / 127.0 / 12_f32.sqrt(),
            _ => 1.0 / 2048.0,
        }
    }

    /// Checks the model with matrices in the formats that `format` names.
    pub(crate) fn check(&self, format: impl Fn(&str) -> Format) {
        let written = |weights| open(&in_formats(&self.model, self.vocabulary, &format, weights));
        let weights = written(Weights::Blocks);
        let own = format("blk.0.ffn_up.weight");
        if DEVICE == Device::Metal && !FORMATS.contains(&own) {
            let refused = load(DEVICE, &weights, CONTEXT).err();
            let refused = refused.map_or(String::new(), |error| error.to_string());
            assert!(refused.contains("only the cpu backend"), "{refused}");
            return;
        }
        let mut device = on_the_device(&weights);
        let tokens = tokens(self.prompt + 130, self.vocabulary);
        let found = self.said(&mut *device, &tokens);
        let [expected, disturbed] = [0.0, Self::rounding(own)].map(|off| {
            let floats = written(Weights::Floats(off));
            let model = Decoder::load(CandleBackend::cpu(), &floats, CONTEXT, &mut |_| {});
            self.said(&mut model.expect("it loads"), &tokens)
        });
        // What so much of a disturbance does to this very model is what a sound device may do to it, three times over.
        let allowed = 3.0 * distance(&disturbed, &expected);
        let error = distance(&found, &expected);
        assert!(
            error < allowed && allowed < 0.5,
            "logits are off by {error:.5} of their size, where {allowed:.5} is allowed"
        );
        if device.batch_invariant() {
            let differing = invariance(&mut *device, &tokens).expect("it runs");
            assert!(differing.is_empty(), "{differing:#?}");
        }
    }

    /// What a model says of a prompt, of steps after it, of a tree, and of what follows a path of that.
    fn said(&self, model: &mut dyn LanguageModel, tokens: &[TokenId]) -> Said {
        let slot = model.open().expect("a cache");
        let (mut said, mut at) = (Vec::new(), 0);
        for rows in std::iter::once(self.prompt).chain(STEPS) {
            said.extend(chain(model, slot, &tokens[at..at + rows], rows).expect("it runs"));
            at += rows;
        }
        let rows = tree(slot, &tokens[at..]);
        said.extend(forward(model, &rows, rows.len()).expect("it runs"));
        model.keep(slot, at, &[1, 3, 4]).expect("it keeps");
        said.extend(chain(model, slot, &tokens[at..at + 5], 5).expect("it runs"));
        model.close(slot);
        said.concat()
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

pub(crate) fn on_the_device(gguf: &Gguf) -> Box<dyn LanguageModel> {
    load(DEVICE, gguf, CONTEXT).expect("it loads")
}

pub(crate) fn tokens(count: usize, vocabulary: usize) -> Vec<TokenId> {
    let token = |i: u32| (i.wrapping_mul(2_654_435_761) >> 8) % vocabulary as u32;
    (0..count as u32).map(token).collect()
}

/// How far logits are from others, relative to these.
fn distance(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let differences: Vec<f32> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
    rms(&differences) / rms(expected)
}

fn rms(values: &[f32]) -> f64 {
    let squares = values.iter().map(|x| f64::from(*x).powi(2));
    (squares.sum::<f64>() / values.len() as f64).sqrt()
}
