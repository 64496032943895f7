//! What a draft thinks of each token that its target chose: the traces that `policy/tests` replay.
//!
//! `cargo run --release -p tandem-engine --example draft_traces -- TARGET.gguf DRAFT.gguf TOKENS PROMPT.txt…` prints a line
//! `# name` for each prompt, and one for each token: its place among the draft's likeliest four, 4 where it is none of them,
//! and their probabilities in thousandths.
#![expect(clippy::print_stdout, reason = "the traces")]

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;

use tandem_model::TokenId;
use tandem_model::backend::cpu::CpuBackend;
use tandem_model::gguf::Gguf;
use tandem_model::model::{Decoder, LanguageModel, Row};
use tandem_model::tokenizer::{SpecialTokens, Tokenizer};

/// Likeliest tokens that are told apart.
const LEADING: usize = 4;

fn load(path: &str) -> Result<(Gguf, Decoder<CpuBackend>), Box<dyn Error>> {
    let gguf = Gguf::open(Path::new(path))?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let model = Decoder::load(CpuBackend::new(threads), &gguf, 4096, &mut |_| {})?;
    Ok((gguf, model))
}

/// The likeliest tokens of a row of logits, the likeliest first.
fn leading(logits: &[f32]) -> [(TokenId, f64); LEADING] {
    let mut order: Vec<(TokenId, f32)> = (0..).zip(logits.iter().copied()).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sum: f64 = order
        .iter()
        .map(|(_, x)| f64::from(x - order[0].1).exp())
        .sum();
    std::array::from_fn(|i| {
        let (token, logit) = order[i];
        (token, f64::from(logit - order[0].1).exp() / sum)
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, draft, tokens, prompts @ ..] = &arguments[..] else {
        return Err("name a target, a draft, a number of tokens and prompts".into());
    };
    let (gguf, mut target) = load(target)?;
    let tokenizer = Tokenizer::from_gguf(&gguf)?;
    let (_, mut draft) = load(draft)?;
    for path in prompts {
        let text = std::fs::read_to_string(path)?;
        let mut all = tokenizer.encode(&text, SpecialTokens::Parse);
        let prompt = all.len();
        let slot = target.open()?;
        let mut fed = 0;
        for _ in 0..tokens.parse::<usize>()? {
            let rows: Vec<Row> = Row::chain(slot, &all[fed..]).collect();
            fed = all.len();
            let [(next, _), ..] = leading(target.forward(&rows, &[rows.len() - 1])?.row(0));
            all.push(next);
            if tokenizer.end_tokens().contains(&next) {
                break;
            }
        }
        target.close(slot);
        let slot = draft.open()?;
        let rows: Vec<Row> = Row::chain(slot, &all[..all.len() - 1]).collect();
        let want: Vec<usize> = (prompt - 1..rows.len()).collect();
        let logits = draft.forward(&rows, &want)?;
        let name = Path::new(path).file_stem().unwrap_or_default();
        println!("# {}", name.to_string_lossy());
        for (row, token) in all[prompt..].iter().enumerate() {
            let leading = leading(logits.row(row));
            let place = leading.iter().position(|(likely, _)| likely == token);
            print!("{}", place.unwrap_or(LEADING));
            leading
                .iter()
                .for_each(|(_, prob)| print!(" {:.0}", 1e3 * prob));
            println!();
        }
        draft.close(slot);
    }
    Ok(())
}
