//! What a benchmark found: raw samples and the circumstances. Tables, charts and comparisons are functions of this, so a
//! report that was written can be shown and compared later.

mod samples;

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::energy::Source;
use crate::method::{Method, Serving};
use crate::quiet::Quiet;

pub use samples::{Chain, Long, Memory, Run, Speculation, Step};

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

    /// Rows of each measured step, and what it took over a step of one row in the same round.
    pub(crate) fn row_costs(&self) -> impl Iterator<Item = (u32, f64)> {
        self.steps.iter().filter_map(|step| {
            let is_one = |one: &&Step| (one.rows, one.round) == (1, step.round);
            let one = self.steps.iter().find(is_one)?;
            Some((step.rows, step.seconds / one.seconds))
        })
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
