//! What attention costs as the context grows: a step of one row of one sequence, on one thread and on several.
//!
//! The model is small but for its cache, so that the time a longer context adds is attention's. The fastest of many
//! steps counts. Threads: the first argument, or two.
#![expect(clippy::print_stdout, reason = "a bench reports to its reader")]

use std::io::Write;
use std::num::NonZeroUsize;
use std::time::Instant;

use tandem_model::backend::cpu::CpuBackend;
use tandem_model::gguf::Gguf;
use tandem_model::model::{Decoder, LanguageModel, Row};
use tandem_model::testing::TinyModel;

/// Three query heads share a key head of 64 elements.
const SHAPE: TinyModel = TinyModel {
    architecture: "llama",
    layers: 8,
    width: 192,
    inner: 64,
    heads: 3,
    kv_heads: 1,
    context_length: 8200,
    seed: 1,
    spread: 0.1,
};
const CONTEXTS: [usize; 5] = [64, 1024, 2048, 4096, 8192];
const STEPS: usize = 60;

/// Seconds of the fastest step of `rows` rows at each context.
fn steps(gguf: &Gguf, threads: NonZeroUsize, rows: usize) -> [f64; CONTEXTS.len()] {
    let backend = CpuBackend::new(threads);
    let mut model = Decoder::load(backend, gguf, SHAPE.context_length, &mut |_| {});
    let model = model.as_mut().expect("it loads");
    let slot = model.open().expect("a cache");
    let tokens: Vec<u32> = (0..512).map(|i| i % 250).collect();
    CONTEXTS.map(|context| {
        while model.cached(slot) < context {
            let len = tokens.len().min(context - model.cached(slot));
            let rows: Vec<Row> = Row::chain(slot, &tokens[..len]).collect();
            model.forward(&rows, &[]).expect("it runs");
        }
        let rows: Vec<Row> = Row::chain(slot, &tokens[..rows]).collect();
        let fastest = (0..STEPS).map(|_| {
            let start = Instant::now();
            model.forward(&rows, &[]).expect("it runs");
            let seconds = start.elapsed().as_secs_f64();
            model.truncate(slot, context);
            seconds
        });
        fastest.fold(f64::INFINITY, f64::min)
    })
}

fn main() {
    let threads = std::env::args().find_map(|argument| argument.parse().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN.saturating_add(1));
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&SHAPE.gguf()).expect("it writes");
    let gguf = Gguf::open(file.path()).expect("a sound file");
    let position = SHAPE.layers * SHAPE.kv_heads * (SHAPE.width / SHAPE.heads) * 2 * 2;
    for (threads, rows) in [(NonZeroUsize::MIN, 1), (threads, 1), (threads, 4)] {
        let seconds = steps(&gguf, threads, rows);
        println!("{threads} threads, {rows} rows");
        for (context, second) in CONTEXTS.iter().zip(seconds).skip(1) {
            let more = second - seconds[0];
            let bytes = (context - CONTEXTS[0]) * position;
            println!(
                "  {context:>5} positions: {:7.1} µs of attention, {:5.1} ns a position and layer, {:5.1} GB/s of keys and values",
                1e6 * more,
                1e9 * more / (context * SHAPE.layers) as f64,
                bytes as f64 / more / 1e9,
            );
        }
    }
}
