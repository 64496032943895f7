//! Whole steps of the cpu backend: what m rows cost against one, and a prompt.
//!
//! `cargo bench -p tandem-model --bench step [-- FILTER]` measures the default pair, pulled where it is missing, or the
//! GGUF files that `TANDEM_BENCH_MODELS` lists, separated by colons. `TANDEM_BENCH_THREADS` chooses other than all
//! threads. C(m), GB/s of weights beside the machine's read bandwidth, and operations per second come last.
#![expect(clippy::print_stdout, reason = "a bench reports to its reader")]

#[path = "../../kernels/benches/common/mod.rs"]
mod bench;
#[path = "../tests/common/mod.rs"]
mod common;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bench::Times;
use criterion::{BenchmarkId, Criterion, SamplingMode};
use tandem_model::TokenId;
use tandem_model::backend::cpu::CpuBackend;
use tandem_model::gguf::Gguf;
use tandem_model::model::{Decoder, LanguageModel, Row, Slot};

/// Positions in the cache while steps are timed.
const CONTEXT: usize = 64;
const PROMPT: usize = 512;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20)
        .configure_from_args();
    let threads = bench::threads();
    let bandwidth = bench::read_bandwidth(threads);
    println!(
        "{threads} threads, which read {:.1} GB/s from memory",
        bandwidth / 1e9
    );
    for path in models() {
        measure(&mut criterion, &path, threads, bandwidth);
    }
    criterion.final_summary();
}

fn models() -> Vec<PathBuf> {
    match std::env::var_os("TANDEM_BENCH_MODELS") {
        Some(list) => std::env::split_paths(&list).collect(),
        None => vec![common::default_target(), common::default_draft()],
    }
}

fn measure(criterion: &mut Criterion, path: &Path, threads: usize, bandwidth: f64) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let gguf = Gguf::open(path).expect("a sound file");
    let backend = CpuBackend::new(NonZeroUsize::new(threads).expect("at least one"));
    let mut model = Decoder::load(backend, &gguf, 1024, &mut |_| {}).expect("it loads");
    let slot = model.open().expect("a cache");

    let cases: Vec<(usize, Times)> = (1..=16).map(|rows| (rows, Times::default())).collect();
    let mut group = criterion.benchmark_group(format!("{name}/rows"));
    group.sampling_mode(SamplingMode::Flat);
    for (rows, times) in &cases {
        group.bench_function(BenchmarkId::from_parameter(rows), |bencher| {
            let want: Vec<usize> = (0..*rows).collect();
            let tokens = tokens(*rows);
            bencher.iter_custom(|n| {
                times.take(n, || forward(&mut model, slot, CONTEXT, &tokens, &want))
            });
        });
    }
    group.finish();
    let times = Times::default();
    criterion.bench_function(&format!("{name}/prompt of {PROMPT}"), |bencher| {
        let tokens = tokens(PROMPT);
        let want = [PROMPT - 1];
        bencher.iter_custom(|n| times.take(n, || forward(&mut model, slot, 0, &tokens, &want)));
    });

    let bytes = gguf
        .tensors()
        .iter()
        .map(|tensor| tensor.bytes)
        .sum::<u64>() as usize;
    let weights = gguf.parameters() as usize;
    bench::report(&name, bytes, weights, bandwidth, &cases);
    if let Some(seconds) = times.median() {
        println!("prompt of {PROMPT}: {:.0} tok/s", PROMPT as f64 / seconds);
    }
}

fn tokens(count: usize) -> Vec<TokenId> {
    (0..count).map(|i| 100 + (37 * i % 800) as u32).collect()
}

/// Times one forward of a chain after `context` positions.
fn forward(
    model: &mut impl LanguageModel,
    slot: Slot,
    context: usize,
    tokens: &[TokenId],
    want: &[usize],
) -> Duration {
    let missing = context.saturating_sub(model.cached(slot));
    let fill: Vec<Row> = Row::chain(slot, &self::tokens(missing)).collect();
    if !fill.is_empty() {
        model.forward(&fill, &[]).expect("it runs");
    }
    model.truncate(slot, context);
    let rows: Vec<Row> = Row::chain(slot, tokens).collect();
    let start = Instant::now();
    model.forward(&rows, want).expect("it runs");
    start.elapsed()
}
