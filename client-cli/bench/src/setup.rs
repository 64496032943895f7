//! What is measured, and on whom.

use std::time::Duration;

use tandem_client::Client;
use toml::Table;

use crate::daemon::Program;
use crate::method::Method;
use crate::pair::PairChoice;
use crate::prompts::Prompt;

/// What is measured, and on whom.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Who is measured.
    pub service: Service,
    /// What is compared; plain decoding is always part of it.
    pub methods: Vec<Method>,
    /// What is asked.
    pub prompts: Vec<Prompt>,
    /// Whether the prompts are those that come with Tandem.
    pub shipped_prompts: bool,
    /// What is measured.
    pub topics: Vec<Topic>,
    /// How often and how long.
    pub extent: Extent,
    /// Context of the memory table, in tokens; `None`: that of the long answer.
    pub context: Option<u32>,
}

/// Who is measured.
#[derive(Clone, Debug)]
pub enum Service {
    /// A daemon that runs, as it is configured.
    Running {
        /// Its client.
        client: Client,
        /// The pair; empty: the default pair.
        pair: String,
    },
    /// Daemons of our own.
    Private {
        /// How they are started.
        program: Program,
        /// What they serve.
        pair: PairChoice,
        /// Tables of their configuration that say how models are computed.
        settings: Table,
    },
}

/// Something that is measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Time to first token, sustained speed and footprint with a long prompt: tables 1 and 3.
    Long,
    /// Speed over plain decoding, and the parts of a step: tables 2 and 4.
    Speed,
    /// Cost of a step by its rows: table 5.
    Cost,
}

/// How often and how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Prompts of each category.
    pub prompts: usize,
    /// Times that each prompt is asked with each method.
    pub rounds: usize,
    /// Most tokens of an answer.
    pub tokens: u32,
    /// Times that the long prompt is asked with each method.
    pub long_rounds: usize,
    /// Most tokens of the answer to it.
    pub long_tokens: u32,
    /// Times that each draft length is measured.
    pub cost_rounds: usize,
    /// Tokens that each of these measurements generates.
    pub cost_tokens: u32,
    /// No further round of anything begins later than this after it began.
    pub limit: Option<Duration>,
    /// Whether this is the short form.
    pub quick: bool,
}

impl Extent {
    /// For figures to publish: about a quarter of an hour with the default pair on two cores.
    pub const FULL: Self = Self {
        prompts: usize::MAX,
        rounds: 3,
        tokens: 128,
        long_rounds: 3,
        long_tokens: 250,
        cost_rounds: 8,
        cost_tokens: 64,
        limit: None,
        quick: false,
    };
    /// For a first look: under two minutes with the default pair on two cores.
    pub const QUICK: Self = Self {
        prompts: 1,
        rounds: 3,
        tokens: 48,
        long_rounds: 1,
        long_tokens: 250,
        cost_rounds: 3,
        cost_tokens: 48,
        limit: Some(Duration::from_secs(20)),
        quick: true,
    };
}
