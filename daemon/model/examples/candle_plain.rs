//! Plain decoding of a llama by candle's own quantized model, to set beside ours on the same machine.
//!
//! `cargo run --release -p tandem-model --features candle-cuda --example candle_plain -- MODEL.gguf cuda TOKENS [CONTEXT]`, or `cpu`
//! without the feature: feeds CONTEXT tokens (128), decodes TOKENS greedily, one at a time, each chosen on the host, and prints
//! tokens per second as the median of the second half. `steps` answers `decode TOKENS CONTEXT` with the times of the same steps.
#![expect(clippy::print_stdout, reason = "the answer")]

use std::error::Error;
use std::fs::File;
use std::time::Instant;

use candle_core::quantized::gguf_file::Content;
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::{MAX_SEQ_LEN, ModelWeights};

/// The likeliest token after these, of which the first is at `position`.
fn next(
    model: &mut ModelWeights,
    device: &Device,
    tokens: &[u32],
    position: usize,
) -> Result<u32, Box<dyn Error>> {
    let rows = Tensor::new(tokens, device)?.unsqueeze(0)?;
    let logits = model.forward(&rows, position)?.flatten_all()?;
    let logits = logits.to_vec1::<f32>()?;
    let likeliest = (0..).zip(&logits).max_by(|a, b| a.1.total_cmp(b.1));
    Ok(likeliest.ok_or("no logits")?.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, name, count, context @ ..] = &arguments[..] else {
        return Err("name a GGUF file, cpu or cuda, and a number of tokens".into());
    };
    let device = match name.as_str() {
        "cpu" => Device::Cpu,
        "cuda" => Device::new_cuda(0)?,
        other => return Err(format!("the device is `{other}` and should be cpu or cuda").into()),
    };
    let count: usize = count.parse()?;
    let context: usize = context.first().map_or(Ok(128), |context| context.parse())?;
    if count == 0 || context == 0 || count + context > MAX_SEQ_LEN {
        return Err(format!("TOKENS and CONTEXT are 1 to {MAX_SEQ_LEN} together").into());
    }
    let mut file = File::open(path)?;
    let content = Content::read(&mut file)?;
    let mut model = ModelWeights::from_gguf(content, &mut file, &device)?;
    // The tokens that `steps` feeds.
    let prompt: Vec<u32> = (0..context as u32).map(|at| 100 + 37 * at % 800).collect();
    let mut token = next(&mut model, &device, &prompt, 0)?;
    let mut seconds = Vec::with_capacity(count);
    for position in context..context + count {
        let start = Instant::now();
        token = next(&mut model, &device, &[token], position)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    let last = &mut seconds[count / 2..];
    last.sort_by(f64::total_cmp);
    println!(
        "candle on {name}: {:.1} tok/s, median of the last {} of {count} tokens after {context} positions",
        1.0 / last[last.len() / 2],
        last.len(),
    );
    Ok(())
}
