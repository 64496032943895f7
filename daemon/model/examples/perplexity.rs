//! The cpu backend's perplexity beside that of plain f32 arithmetic, for any model.
//!
//! `python3 tests/golden/make_perplexity.py MODEL.gguf GOLDEN.json` writes the reference, and
//! `cargo run --release -p tandem-model --example perplexity -- MODEL.gguf GOLDEN.json` compares.
#![expect(clippy::print_stdout, reason = "the answer")]

#[path = "../tests/common/perplexity.rs"]
mod score;

use std::error::Error;
use std::num::NonZeroUsize;

use tandem_model::backend::cpu::CpuBackend;
use tandem_model::gguf::Gguf;
use tandem_model::model::Decoder;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(model), Some(golden)) = (arguments.next(), arguments.next()) else {
        return Err("name a GGUF file and its golden data".into());
    };
    let (tokens, expected) = score::golden(&std::fs::read_to_string(golden)?);
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let mut model = Decoder::load(
        CpuBackend::new(threads),
        &Gguf::open(model)?,
        4096,
        &mut |_| {},
    )?;
    let ours = score::perplexity(&mut model, &tokens);
    println!(
        "{} tokens: perplexity {ours:.5}, reference {expected:.5}: {:+.3} %",
        tokens.len(),
        1e2 * (ours / expected - 1.0)
    );
    Ok(())
}
