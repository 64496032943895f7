//! The arguments of `tandem bench`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tandem_bench::{Extent, Method, Topic};

/// What to measure, on whom, and where results go.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Take a first look: one prompt of each category and short answers, about two minutes with the default pair
    #[arg(long)]
    pub(super) quick: bool,
    /// Compare only these methods [default: all]
    #[arg(long, value_name = "METHOD", value_delimiter = ',', value_parser = methods())]
    methods: Vec<Method>,
    /// Fill only these tables: 1 a long prompt, 2 speed, 3 memory, 4 parts of a step, 5 cost by rows [default: all]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=5))]
    tables: Vec<u8>,

    /// Ask these prompts: JSON objects, one a line, with "prompt" and perhaps "category"; or plain text with a line `---`
    /// between prompts, `--- NAME` before those of a category [default: those that come with Tandem]
    #[arg(long, value_name = "FILE", help_heading = "Texts")]
    pub(super) prompts: Option<PathBuf>,
    /// Ask only prompts of these categories; of those that come with Tandem: code, json, extraction, edit, summary, maths,
    /// story, language
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Texts"
    )]
    pub(super) category: Vec<String>,
    /// Ask each prompt so often with each method [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Texts")]
    rounds: Option<u16>,
    /// End answers after so many tokens [default: 128; 48 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(8..=100_000), help_heading = "Texts")]
    tokens: Option<u32>,
    /// Fill a context of so many tokens for the memory table [default: that of the long prompt and its answer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=1_000_000), help_heading = "Texts")]
    pub(super) context: Option<u32>,

    /// Measure this pair of the configuration [default: the default pair]
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        help_heading = "Models"
    )]
    pub(super) pair: String,
    /// Measure this target instead: a GGUF file, or a model of the hub that was fetched
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["running", "pair"], help_heading = "Models")]
    pub(super) target: Option<String>,
    /// Let this model draft; `none` for none [default: the pair's; with --target, none]
    #[arg(
        long,
        value_name = "MODEL",
        conflicts_with = "running",
        help_heading = "Models"
    )]
    pub(super) draft: Option<String>,
    /// Let the target draft for itself with this exit adapter; `none` for none [default: the pair's, or the one that comes
    /// with the default target]
    #[arg(
        long,
        value_name = "MODEL",
        conflicts_with = "running",
        help_heading = "Models"
    )]
    pub(super) exit_adapter: Option<String>,
    /// Measure the daemon that runs, as it is configured; methods that it does not have stay empty
    #[arg(long, help_heading = "Models")]
    pub(super) running: bool,

    /// Write all samples as JSON
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(super) json: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(super) markdown: Option<PathBuf>,
    /// Write charts as SVG into this directory
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub(super) plot: Option<PathBuf>,
    /// Show what changed since this report, beyond noise
    #[arg(long, value_name = "OLD.json", help_heading = "Results")]
    pub(super) compare: Option<PathBuf>,
    /// Measure nothing, and show this report
    #[arg(long, value_name = "REPORT.json", conflicts_with_all = ["running", "quick", "target"], help_heading = "Results")]
    pub(super) from: Option<PathBuf>,
    /// Print no progress on standard error
    #[arg(short, long, help_heading = "Results")]
    pub(super) quiet: bool,
}

fn methods() -> impl TypedValueParser<Value = Method> {
    let names = Method::ALL.map(|method| PossibleValue::new(method.name()).help(method.meaning()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Method>())
}

impl Args {
    pub(super) fn methods(&self) -> Vec<Method> {
        if self.methods.is_empty() {
            Method::ALL.to_vec()
        } else {
            self.methods.clone()
        }
    }

    pub(super) fn topics(&self) -> Vec<Topic> {
        let wants = |tables: &[u8]| {
            self.tables.is_empty() || tables.iter().any(|table| self.tables.contains(table))
        };
        [
            (Topic::Long, wants(&[1, 3])),
            (Topic::Speed, wants(&[2, 4])),
            (Topic::Cost, wants(&[5])),
        ]
        .into_iter()
        .filter_map(|(topic, wanted)| wanted.then_some(topic))
        .collect()
    }

    pub(super) fn extent(&self) -> Extent {
        let mut extent = if self.quick {
            Extent::QUICK
        } else {
            Extent::FULL
        };
        if let Some(rounds) = self.rounds {
            let rounds = usize::from(rounds);
            (extent.rounds, extent.long_rounds, extent.cost_rounds) = (rounds, rounds, rounds);
            // Whoever says how often means it.
            extent.limit = None;
        }
        if let Some(tokens) = self.tokens {
            extent.tokens = tokens;
            extent.cost_tokens = extent.cost_tokens.min(tokens);
        }
        extent
    }
}
