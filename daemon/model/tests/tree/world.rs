//! Tiny models, trees of tokens, and what their logits should be.

use std::io::Write;

use tandem_model::TokenId;
use tandem_model::backend::candle::CandleBackend;
use tandem_model::gguf::Gguf;
use tandem_model::model::{Decoder, Exit, LanguageModel, Row, Slot};
use tandem_model::testing::{TinyModel, load};

use super::common::DEVICE;

/// Positions of a tiny model.
pub(crate) const CONTEXT: usize = 512;
/// Layers before the exit adapter's place.
pub(crate) const EXIT: usize = 2;

pub(crate) const TINY: TinyModel = TinyModel {
    architecture: "llama",
    layers: 4,
    width: 32,
    inner: 64,
    heads: 4,
    kv_heads: 2,
    context_length: CONTEXT,
    seed: 5,
    spread: 0.3,
};

pub(crate) fn open(bytes: &[u8]) -> Gguf {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("it writes");
    Gguf::open(file.path()).expect("a sound file")
}

fn written(architecture: &'static str) -> Gguf {
    let model = TinyModel {
        architecture,
        ..TINY
    };
    open(&model.gguf())
}

/// A tiny model of this architecture on the device under test.
pub(crate) fn tiny(architecture: &'static str) -> Box<dyn LanguageModel> {
    load(DEVICE, &written(architecture), CONTEXT).expect("it loads")
}

/// The same on the reference backend.
pub(crate) fn reference(architecture: &'static str) -> Box<dyn LanguageModel> {
    let gguf = written(architecture);
    let loaded = Decoder::load(CandleBackend::cpu(), &gguf, CONTEXT, &mut |_| {});
    Box::new(loaded.expect("it loads"))
}

/// A tiny llama with an exit adapter.
pub(crate) fn with_adapter(mut model: Box<dyn LanguageModel>) -> Box<dyn LanguageModel> {
    let adapter = TinyModel { seed: 9, ..TINY }.exit_adapter(EXIT);
    model
        .attach_exit(&open(&adapter), &mut |_| {})
        .expect("it fits");
    model
}

/// Tokens and the parents that they follow.
pub(crate) type Nodes = Vec<(TokenId, Option<usize>)>;

/// Numbers that are the same in every run.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }

    pub(crate) fn tokens(&mut self, count: usize) -> Vec<TokenId> {
        (0..count).map(|_| self.below(250) as TokenId).collect()
    }

    /// A tree, or a chain in one of four cases.
    pub(crate) fn nodes(&mut self, count: usize) -> Nodes {
        let chain = self.below(4) == 0;
        (0..count)
            .map(|row| {
                let parent = match chain {
                    true => row.checked_sub(1),
                    false => self.below(row + 1).checked_sub(1),
                };
                (self.below(250) as TokenId, parent)
            })
            .collect()
    }
}

pub(crate) fn rows(slot: Slot, nodes: &[(TokenId, Option<usize>)]) -> Vec<Row> {
    nodes
        .iter()
        .map(|(token, parent)| Row {
            slot,
            token: *token,
            parent: *parent,
        })
        .collect()
}

/// The rows from the root to `node`, itself last.
pub(crate) fn path(nodes: &[(TokenId, Option<usize>)], node: usize) -> Vec<usize> {
    let mut path: Vec<usize> = std::iter::successors(Some(node), |node| nodes[*node].1).collect();
    path.reverse();
    path
}

pub(crate) fn feed(model: &mut dyn LanguageModel, slot: Slot, tokens: &[TokenId]) -> Vec<f32> {
    let rows: Vec<Row> = Row::chain(slot, tokens).collect();
    let logits = model.forward(&rows, &[rows.len() - 1]).expect("it runs");
    logits.row(0).to_vec()
}

/// What a model that was never anything else says after these tokens, at the end or at an exit.
pub(crate) fn from_scratch(
    model: &mut dyn LanguageModel,
    tokens: &[TokenId],
    exit: Option<Exit>,
) -> Vec<f32> {
    let slot = model.open().expect("a cache");
    let rows: Vec<Row> = Row::chain(slot, tokens).collect();
    let want = [rows.len() - 1];
    let logits = match exit {
        None => model.forward(&rows, &want),
        Some(exit) => model.early(&rows, &want, exit),
    };
    let logits = logits.expect("it runs").row(0).to_vec();
    model.close(slot);
    logits
}

pub(crate) fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|x| x.to_bits()).collect()
}

pub(crate) fn farthest(a: &[f32], b: &[f32]) -> f32 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max)
}
