//! Times steps of a model as it is told to, so that another program can do so in turn with ours:
//! `daemon/engine/benches/peer.py` sets it beside llama.cpp.
//!
//! `cargo run --release -p tandem-model --example steps -- MODEL.gguf [THREADS|cuda|metal]` reads one order per line
//! and answers each with one line of seconds. `cuda-launches` starts every kernel by itself, `cuda-apart` only when the
//! one before has ended, and `cuda-launches-apart` both:
//!
//! ```text
//! step ROWS TIMES CONTEXT   so many steps of so many rows, all of whose logits are wanted, after CONTEXT positions
//! decode TIMES CONTEXT      so many steps of one row that follow each other
//! prompt TOKENS             one prompt in one piece, the logits of its last token wanted
//! ```
#![expect(clippy::print_stdout, reason = "the answers")]

use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Instant;

use tandem_model::TokenId;
use tandem_model::backend::Backend;
use tandem_model::backend::candle::CandleBackend;
use tandem_model::backend::cpu::CpuBackend;
use tandem_model::gguf::Gguf;
use tandem_model::model::{Decoder, LanguageModel, Row, Slot};

/// Positions that a sequence may have.
const POSITIONS: usize = 8192;

struct Timer {
    model: Box<dyn LanguageModel>,
    slot: Slot,
}

impl Timer {
    /// Makes the sequence `context` positions long, by whatever tokens.
    fn seek(&mut self, context: usize) -> Result<(), Box<dyn Error>> {
        let cached = self.model.cached(self.slot);
        self.model.truncate(self.slot, context.min(cached));
        let tokens: Vec<TokenId> = (cached..context).map(token).collect();
        for piece in tokens.chunks(512) {
            self.forward(piece, &[])?;
        }
        Ok(())
    }

    fn forward(&mut self, tokens: &[TokenId], want: &[usize]) -> Result<f64, Box<dyn Error>> {
        let rows: Vec<Row> = Row::chain(self.slot, tokens).collect();
        let start = Instant::now();
        self.model.forward(&rows, want)?;
        Ok(start.elapsed().as_secs_f64())
    }

    fn obey(&mut self, order: &[&str]) -> Result<Vec<f64>, Box<dyn Error>> {
        let number = |at: usize| -> Result<usize, Box<dyn Error>> {
            Ok(order.get(at).ok_or("too few numbers")?.parse()?)
        };
        let mut seconds = Vec::new();
        match order[0] {
            "step" => {
                let (rows, context) = (number(1)?, number(3)?);
                let tokens: Vec<TokenId> = (0..rows).map(token).collect();
                let want: Vec<usize> = (0..rows).collect();
                for _ in 0..number(2)? {
                    self.seek(context)?;
                    seconds.push(self.forward(&tokens, &want)?);
                }
            }
            "decode" => {
                self.seek(number(2)?)?;
                for _ in 0..number(1)? {
                    seconds.push(self.forward(&[token(0)], &[0])?);
                }
            }
            "prompt" => {
                let tokens: Vec<TokenId> = (0..number(1)?).map(token).collect();
                self.seek(0)?;
                seconds.push(self.forward(&tokens, &[tokens.len() - 1])?);
            }
            other => return Err(format!("no order is called `{other}`").into()),
        }
        Ok(seconds)
    }
}

/// Some token of every vocabulary, not the same one all over.
fn token(at: usize) -> TokenId {
    100 + (37 * at % 800) as TokenId
}

/// Loads the model onto a device.
fn open(device: &str, gguf: &Gguf) -> Result<Box<dyn LanguageModel>, Box<dyn Error>> {
    fn load<B: Backend>(backend: B, gguf: &Gguf) -> Result<Box<dyn LanguageModel>, Box<dyn Error>> {
        Ok(Box::new(Decoder::load(
            backend,
            gguf,
            POSITIONS,
            &mut |_| {},
        )?))
    }
    match device {
        "metal" => load(CandleBackend::metal()?, gguf),
        "cuda (candle)" => load(CandleBackend::cuda()?, gguf),
        #[cfg(feature = "cuda")]
        name if name.starts_with("cuda") => {
            let options = tandem_model::backend::cuda::Options {
                graphs: !name.contains("launches"),
                overlap: !name.contains("apart"),
            };
            load(
                tandem_model::backend::cuda::CudaBackend::with(options)?,
                gguf,
            )
        }
        threads => load(CpuBackend::new(threads.parse()?), gguf),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("name a GGUF file")?;
    let device = arguments.next().unwrap_or_else(|| "2".to_owned());
    let gguf = Gguf::open(path)?;
    let mut model = open(&device, &gguf)?;
    // What is timed is a step that comes again and again.
    model.rehearsing(true);
    let slot = model.open()?;
    let mut timer = Timer { model, slot };
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let order: Vec<&str> = line.split_whitespace().collect();
        if order.is_empty() {
            continue;
        }
        let seconds = timer.obey(&order)?;
        let words: Vec<String> = seconds.iter().map(f64::to_string).collect();
        println!("{}", words.join(" "));
        std::io::stdout().flush()?;
    }
    Ok(())
}
