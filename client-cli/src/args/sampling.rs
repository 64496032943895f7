//! How the next token is chosen, as arguments.

use clap::Args;
use tandem_client::v1;

#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(super) struct SamplingArgs {
    /// Flatten (above 1) or sharpen (below 1) the distribution, at least 0; 0 is greedy [default: 0]
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// Keep this many most likely tokens; 0 keeps all [default: 0]
    #[arg(long, value_name = "N")]
    top_k: Option<u32>,
    /// Keep the smallest set of most likely tokens with this mass, above 0 to 1 [default: 1]
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Drop tokens less likely than this fraction of the most likely one, 0 to 1 [default: 0]
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,
    /// Divide positive and multiply negative logits of tokens seen in prompt or output, above 0 [default: 1]
    #[arg(long, value_name = "X")]
    repetition_penalty: Option<f32>,
    /// Subtract once from the logit of each generated token, -2 to 2 [default: 0]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    presence_penalty: Option<f32>,
    /// Subtract from a token's logit for each time it was generated, -2 to 2 [default: 0]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,
    /// Add to the logit of a token, -100 to 100; repeatable
    #[arg(long, value_name = "ID=BIAS", value_parser = logit_bias)]
    logit_bias: Vec<(u32, f32)>,
    /// Make the text a function of the prompt, the parameters and this number alone [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Generate at most this many tokens [default: what is left of the context]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// End before this text; repeatable, at most 16
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// Go on past the model's own end tokens
    #[arg(long)]
    ignore_eos: bool,
    /// With --json, print the log-probability of each token and those of so many likeliest tokens, at most 20
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=20))]
    logprobs: Option<u32>,
}

impl SamplingArgs {
    pub(super) fn params(&self) -> v1::SamplingParams {
        v1::SamplingParams {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: self.logit_bias.iter().copied().collect(),
            seed: self.seed,
            max_tokens: self.max_tokens,
            stop: self.stop.clone(),
            stop_token_ids: Vec::new(),
            ignore_eos: self.ignore_eos,
            logprobs: self.logprobs,
        }
    }
}

fn logit_bias(text: &str) -> Result<(u32, f32), String> {
    let (id, bias) = text
        .split_once('=')
        .ok_or("expected ID=BIAS, such as 42=-1.5")?;
    let id = id
        .trim()
        .parse()
        .map_err(|_| format!("`{id}` is no token id"))?;
    let bias = bias
        .trim()
        .parse()
        .map_err(|_| format!("`{bias}` is no number"))?;
    Ok((id, bias))
}
