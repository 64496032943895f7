use std::io::Write;
use std::num::NonZeroUsize;

use crate::backend::cpu::CpuBackend;
use crate::gguf::Gguf;
use crate::model::{Decoder, Exit, LanguageModel, Row, Slot};
use crate::testing::TinyModel;

fn decoder() -> Decoder<CpuBackend> {
    let model = TinyModel {
        layers: 4,
        ..TinyModel::default()
    };
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&model.gguf()).expect("it writes");
    let gguf = Gguf::open(file.path()).expect("a sound file");
    let backend = CpuBackend::new(NonZeroUsize::MIN);
    Decoder::load(backend, &gguf, 64, &mut |_| {}).expect("it loads")
}

fn rows(slot: Slot, tokens: &[u32]) -> Vec<Row> {
    Row::chain(slot, tokens).collect()
}

#[test]
fn only_rows_that_were_not_run_early_start_at_the_embedding() {
    let mut model = decoder();
    let [one, other, plain] = [0; 3].map(|_| model.open().expect("a cache"));
    let early = |model: &mut Decoder<CpuBackend>, slot, layers| {
        let rows = rows(slot, &[1, 2, 3]);
        model
            .early(&rows, &[2], Exit::Layer(layers))
            .expect("it runs");
    };
    // (layers of the second tree, tokens of the two and of a slot without a tree, layers behind, rows begun anew)
    let cases: [(usize, [&[u32]; 3], usize, usize); 5] = [
        (3, [&[1, 2, 3], &[1, 2, 3], &[]], 3, 0),
        (3, [&[1, 2, 3, 4], &[1, 2, 9], &[5, 6]], 3, 1 + 1 + 2),
        (3, [&[9], &[1], &[]], 3, 1),
        (2, [&[1, 2], &[1, 2], &[]], 3, 2),
        (3, [&[8], &[9], &[7]], 0, 3),
    ];
    for (layers, tokens, resume, fresh) in cases {
        early(&mut model, one, 3);
        early(&mut model, other, layers);
        let batch: Vec<Row> = [one, other, plain]
            .into_iter()
            .zip(tokens)
            .flat_map(|(slot, tokens)| rows(slot, tokens))
            .collect();
        model.forward(&batch, &[0]).expect("it runs");
        let step = model.step();
        assert_eq!(
            (step.resume, step.tokens.len()),
            (resume, fresh),
            "{tokens:?}"
        );
    }
    assert_eq!(model.cached(one), 3 + 4 + 1 + 2 + 1);
}
