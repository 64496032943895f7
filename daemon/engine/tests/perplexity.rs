//! Quantized activations cost next to nothing: the perplexity of a text is that of plain f32 arithmetic.

mod common;
#[path = "common/perplexity.rs"]
mod score;

use std::num::NonZeroUsize;

use tandem_engine::backend::cpu::CpuBackend;
use tandem_engine::gguf::Gguf;
use tandem_engine::model::Decoder;

/// Of the reference.
const TOLERANCE: f64 = 0.005;

#[test]
fn perplexity_is_that_of_unquantized_activations() {
    let (tokens, expected) = score::golden(include_str!("golden/perplexity-smollm2.json"));
    let gguf = Gguf::open(common::default_target()).expect("the default target");
    let backend = CpuBackend::new(NonZeroUsize::new(2).expect("two"));
    let mut model = Decoder::load(backend, &gguf, 4096, &mut |_| {}).expect("it loads");
    let ours = score::perplexity(&mut model, &tokens);
    let off = ours / expected - 1.0;
    assert!(
        off.abs() < TOLERANCE,
        "perplexity is {ours:.5}, off the reference's {expected:.5} by {:.3} %",
        1e2 * off
    );
}
