//! What a benchmark found: raw samples and the circumstances. Tables, charts and comparisons are functions of this, so a
//! report that was written can be shown and compared later.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::energy::Source;
use crate::method::{Method, Serving};
use crate::quiet::Quiet;

/// Version of the format; rises with changes that older readers would misread.
pub const SCHEMA: u32 = 1;

/// What a benchmark found. Times are in seconds, memory in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of the format.
    pub schema: u32,
    /// Version of the daemon.
    pub tandem: String,
    /// Seconds since 1970 at the begin.
    pub taken_at: u64,
    /// Where it was measured.
    pub machine: Machine,
    /// What was measured.
    pub pair: Pair,
    /// How it was measured.
    pub settings: Settings,
    /// Methods that could not be measured, with the reason.
    pub absent: Vec<Absent>,
    /// How quiet the machine was.
    pub quiet: Quiet,
    /// Where joules come from.
    pub energy: Source,
    /// Whether all methods gave the same texts.
    pub texts: Texts,
    /// Answers to the prompts.
    pub runs: Vec<Run>,
    /// Answers to the long prompt.
    pub long: Vec<Long>,
    /// Memory by what the daemon had at hand.
    pub memory: Vec<Memory>,
    /// Steps by rows.
    pub steps: Vec<Step>,
    /// Drafts of a fixed length.
    pub chains: Vec<Chain>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system and architecture.
    pub system: String,
    /// The processor, as it names itself.
    pub processor: String,
    /// Logical processors.
    pub cores: usize,
    /// Physical memory.
    pub memory_bytes: u64,
}

/// A pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Where models are computed.
    pub backend: String,
    /// Whether rows do not depend on their neighbours, so that texts have to be equal.
    pub batch_invariant: bool,
    /// The target.
    pub target: Model,
    /// The draft model.
    pub draft: Option<Model>,
    /// The exit adapter, where the target drafts for itself with one.
    pub exit_adapter: Option<Model>,
    /// Layers after which the target drafts for itself; 0: it does not.
    pub exit_layer: u32,
    /// Most the daemon may use.
    pub budget_bytes: u64,
    /// What the pair has as it is configured; `None`: the daemon served already.
    pub usual: Option<Serving>,
}

/// A model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its name in its file.
    pub name: String,
    /// Such as `Q4_1`.
    pub quantization: String,
    /// Parameters.
    pub parameters: u64,
    /// Bytes of weights.
    pub weight_bytes: u64,
}

/// How it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Whether it was the short form.
    pub quick: bool,
    /// Whether daemons were private; else everything ran on one that served already.
    pub private: bool,
    /// Whether the prompts came with Tandem.
    pub shipped_prompts: bool,
    /// Prompts asked.
    pub prompts: usize,
    /// Most tokens of an answer.
    pub tokens: u32,
    /// Seconds that it took in all.
    pub seconds: f64,
}

/// A method that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    /// The method.
    pub method: Method,
    /// Why.
    pub reason: String,
}

/// Whether all methods gave the same texts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Texts {
    /// Answers that were compared with the first to the same prompt.
    pub compared: usize,
    /// Those that differed: method and prompt.
    pub different: Vec<String>,
}

/// What speculation did for one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speculation {
    /// Decoding steps: the one that read the end of the prompt is not counted.
    pub steps: u64,
    /// Of these, steps that verified a draft.
    pub drafted_steps: u64,
    /// Tokens drafted.
    pub drafted: u64,
    /// Drafted tokens accepted.
    pub accepted: u64,
    /// Tokens per drafted step, the recovered or bonus token counted.
    pub mean_length: f64,
    /// Spent drafting.
    pub draft: f64,
    /// Spent in the target's forwards.
    pub verify: f64,
    /// Spent deciding which tokens stand.
    pub accept: f64,
    /// Spent bringing caches in line.
    pub cache_update: f64,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// How it was decoded.
    pub method: Method,
    /// Kind of text.
    pub category: String,
    /// Index of the prompt.
    pub prompt: usize,
    /// Which time, from 0.
    pub round: usize,
    /// Tokens of the answer.
    pub tokens: u32,
    /// To the first token.
    pub first_token: f64,
    /// From the first token to the last.
    pub decode: f64,
    /// Energy of the machine meanwhile, prefill included.
    pub joules: Option<f64>,
    /// Share of the answer's tokens that end a sequence of eight which occurred in it before.
    pub repeated: f64,
    /// What speculation did.
    pub speculation: Speculation,
}

/// One answer to the long prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Long {
    /// How it was decoded.
    pub method: Method,
    /// Whether it was the first request of a daemon.
    pub cold: bool,
    /// From the start of the daemon's process until it served, where it was cold.
    pub start: Option<f64>,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the answer.
    pub tokens: u32,
    /// To the first token.
    pub first_token: f64,
    /// From the first token to the last.
    pub decode: f64,
    /// Energy of the machine meanwhile, prefill included.
    pub joules: Option<f64>,
    /// What speculation did.
    pub speculation: Speculation,
}

/// Memory of a daemon at the end of a request. All but the peak is as the daemon accounts for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// What the daemon had at hand; `None`: it served already, with whatever it has.
    pub serving: Option<Serving>,
    /// Tokens of prompt and answer when it was read.
    pub context: u32,
    /// Most dirty memory seen.
    pub peak_footprint: u64,
    /// Clean, mapped weights.
    pub mapped_weights: u64,
    /// Most the daemon may use.
    pub budget: u64,
    /// The target's weights.
    pub weights: u64,
    /// The target's cache.
    pub kv: u64,
    /// Weights of the draft model or the exit adapter.
    pub draft_weights: u64,
    /// Cache of the draft model or the exit adapter, and the texts that are searched.
    pub draft_kv: u64,
}

/// What a step of so many rows took in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Which round, from 0.
    pub round: usize,
    /// Rows: drafted tokens and one more.
    pub rows: u32,
    /// Seconds of the target's forward and what is done with it.
    pub seconds: f64,
    /// Steps that the daemon measured in the round.
    pub samples: u32,
}

/// Drafts of a fixed length in one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// What drafted: `draft` or `self`.
    pub method: Method,
    /// Kind of text.
    pub category: String,
    /// Tokens drafted in each step.
    pub length: u32,
    /// Steps that drafted.
    pub drafted_steps: u64,
    /// Tokens drafted.
    pub drafted: u64,
    /// Accepted, by position in the draft.
    pub accepted: Vec<u64>,
    /// Seconds spent drafting.
    pub seconds: f64,
}

impl Run {
    /// Tokens per second after the first; `None` where there was no second one.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        rate(self.tokens, self.decode)
    }
}

impl Long {
    /// Tokens per second after the first; `None` where there was no second one.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        rate(self.tokens, self.decode)
    }
}

fn rate(tokens: u32, seconds: f64) -> Option<f64> {
    (tokens > 1 && seconds > 0.0).then(|| f64::from(tokens - 1) / seconds)
}

impl Report {
    /// Methods that were measured, in their order.
    #[must_use]
    pub fn methods(&self) -> Vec<Method> {
        let measured = |method: &Method| {
            self.runs.iter().any(|run| run.method == *method)
                || self.long.iter().any(|run| run.method == *method)
        };
        Method::ALL.into_iter().filter(measured).collect()
    }

    /// Categories in the order in which they were asked.
    #[must_use]
    pub fn categories(&self) -> Vec<&str> {
        let mut categories: Vec<&str> = Vec::new();
        let named = self.runs.iter().map(|run| run.category.as_str());
        for category in named.chain(self.chains.iter().map(|chain| chain.category.as_str())) {
            if !categories.contains(&category) {
                categories.push(category);
            }
        }
        categories
    }

    /// Reads a report.
    ///
    /// # Errors
    /// Where the file cannot be read, or is no report that this version understands.
    pub fn read(path: &Path) -> Result<Self, BenchError> {
        let text = fs::read_to_string(path).map_err(BenchError::file("read", path))?;
        Self::parse(&text).map_err(|problem| BenchError::Report {
            path: path.to_owned(),
            problem,
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let version: Version = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if version.schema != SCHEMA {
            return Err(format!(
                "it has format {}, and this version of tandem reads format {SCHEMA}",
                version.schema
            ));
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Writes the report as JSON.
    ///
    /// # Errors
    /// Where the file cannot be written.
    ///
    /// # Panics
    /// Never: every report can be written as JSON.
    pub fn write(&self, path: &Path) -> Result<(), BenchError> {
        let mut text = serde_json::to_string_pretty(self)
            .expect("a report has no maps with keys other than text");
        text.push('\n');
        fs::write(path, text).map_err(BenchError::file("write", path))
    }
}
