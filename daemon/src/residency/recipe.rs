//! What a loaded pair is made of.

use tandem_models::ModelRef;

use crate::config::{Config, DraftConfig, EngineConfig, PairConfig, SpeculationConfig};

/// Everything of the configuration that shows in a loaded pair: where two are equal, loading again would change nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recipe {
    pub(crate) target: ModelRef,
    pub(crate) draft: DraftConfig,
    pub(crate) context_length: Option<usize>,
    pub(crate) engine: EngineConfig,
    pub(crate) speculation: SpeculationConfig,
    pub(crate) max_sequences: usize,
}

impl Recipe {
    pub(crate) fn new(config: &Config, pair: &PairConfig) -> Self {
        Self {
            target: pair.target.clone(),
            draft: pair.draft.clone(),
            context_length: pair.context_length,
            engine: config.engine.clone(),
            speculation: config.speculation,
            max_sequences: config.server.max_concurrent,
        }
    }
}
