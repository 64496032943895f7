//! Whole steps of the cpu backend beside candle's: tokens per second, and what m rows cost against one.
//!
//! Set `TANDEM_TEST_MODELS` to the folder of the default pair. Threads: the first argument, or two.
#![expect(clippy::print_stdout, reason = "a bench reports to its reader")]

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use tandem_engine::backend::Backend;
use tandem_engine::backend::candle::CandleBackend;
use tandem_engine::backend::cpu::CpuBackend;
use tandem_engine::gguf::Gguf;
use tandem_engine::model::{Decoder, LanguageModel, Row, Slot};

/// Positions in the cache while steps are timed.
const CONTEXT: usize = 64;

fn rows(slot: Slot, count: usize) -> Vec<Row> {
    (0..count)
        .map(|i| Row {
            slot,
            token: 100 + 37 * i as u32,
            parent: i.checked_sub(1),
        })
        .collect()
}

/// Seconds of a step of `count` rows, all of whose logits are wanted: the median of `times`.
fn step(model: &mut dyn LanguageModel, slot: Slot, count: usize, times: usize) -> f64 {
    let rows = rows(slot, count);
    let want: Vec<usize> = (0..count).collect();
    let mut seconds: Vec<f64> = (0..times)
        .map(|_| {
            model.truncate(slot, CONTEXT);
            let start = Instant::now();
            model.forward(&rows, &want).expect("it runs");
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[times / 2]
}

fn load<B: Backend>(backend: B, gguf: &Gguf) -> (Decoder<B>, Slot) {
    let start = Instant::now();
    let mut model = Decoder::load(backend, gguf, 1024, &mut |_| {}).expect("it loads");
    let loaded = start.elapsed();
    let slot = model.open().expect("a cache");
    model.forward(&rows(slot, CONTEXT), &[]).expect("it runs");
    println!("  {:<14} loaded in {loaded:.2?}", model.backend());
    (model, slot)
}

fn main() {
    let threads = std::env::args().find_map(|argument| argument.parse().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN.saturating_add(1));
    let folder = std::env::var("TANDEM_TEST_MODELS").map(PathBuf::from);
    let folder = folder.expect("TANDEM_TEST_MODELS names the folder of the default pair");
    for file in [
        "smollm2-135m-instruct-q4_1.gguf",
        "smollm2-draft-20m-q8_0.gguf",
    ] {
        println!("{file}, {threads} threads, {CONTEXT} positions");
        let gguf = Gguf::open(folder.join(file)).expect("a sound file");
        let (mut ours, slot) = load(CpuBackend::new(threads), &gguf);
        let one = step(&mut ours, slot, 1, 60);
        println!("  decode: {:.1} tok/s", 1.0 / one);
        for count in 1..=16 {
            let seconds = step(&mut ours, slot, count, 30);
            println!(
                "  C({count}) = {:.2}  ({:.2} ms)",
                seconds / one,
                1e3 * seconds
            );
        }
        let fresh = ours.open().expect("a cache");
        let start = Instant::now();
        ours.forward(&rows(fresh, 512), &[511]).expect("it runs");
        println!(
            "  prompt of 512: {:.0} tok/s",
            512.0 / start.elapsed().as_secs_f64()
        );
        // Last, because its threads do not rest between steps.
        let (mut peer, slot) = load(CandleBackend::cpu(), &gguf);
        let peer_one = step(&mut peer, slot, 1, 9);
        println!("  candle decodes {:.1} tok/s", 1.0 / peer_one);
    }
}
