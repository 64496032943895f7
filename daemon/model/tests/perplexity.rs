//! Rounded activations cost next to nothing: on the device under test the perplexity of a text is that of plain f32
//! arithmetic.

mod common;
#[path = "common/perplexity.rs"]
mod score;

use tandem_model::hardware::Device;

/// Of the reference. The mean over 2,785 tokens strays in proportion to the rounding of activations: the CPU's 8 bits of
/// the largest of a block are off by about 0.5 % of a value, the halves of other devices by less than a tenth of that. The
/// bound shrinks by half as much.
const TOLERANCE: f64 = match common::DEVICE {
    Device::Cpu(_) => 0.005,
    _ => 0.001,
};

#[test]
fn perplexity_is_that_of_unrounded_activations() {
    let (tokens, expected) = score::golden(include_str!("golden/perplexity-smollm2.json"));
    let mut model = common::model_on_device(&common::default_target(), 4096);
    let ours = score::perplexity(&mut *model, &tokens);
    let off = ours / expected - 1.0;
    assert!(
        off.abs() < TOLERANCE,
        "perplexity is {ours:.5}, off the reference's {expected:.5} by {:.3} %",
        1e2 * off
    );
}
