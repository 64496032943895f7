//! What drafts for a pair, and how much: the keys of `[pairs.NAME]` and `[speculation]` that say so.

use serde::Deserialize;
use tandem_engine::policy::{MAX_DRAFT_LENGTH, Pipelined, Policy};
use tandem_models::ModelRef;

/// Layers of the largest models by far; the pair's target says how many it has.
const MAX_LAYERS: usize = 1024;
/// A few hundred thousand tokens of text, which is what an editing session has; small beside any model.
const DEFAULT_LOOKUP_HISTORY: u64 = 8 << 20;

/// What drafts for a pair, besides lookup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DraftConfig {
    /// Nothing.
    #[default]
    None,
    /// A separate model.
    Model(ModelRef),
    /// The target's first layers and a trained exit adapter, which says how many layers.
    Adapter(ModelRef),
    /// The target's first layers, so many, without an adapter.
    Layer(usize),
    /// The target's first layers without an adapter, as many as is found best when the pair is loaded.
    MeasuredLayer,
}

/// The `[speculation]` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeculationConfig {
    /// How draft lengths are chosen.
    pub policy: Policy,
    /// When a draft is continued while the target verifies it.
    pub pipelined: Pipelined,
    /// Most bytes of finished texts, over all clients of a pair, that lookup searches; `None`: lookup is off.
    pub lookup_history: Option<u64>,
}

impl DraftConfig {
    /// Returns the file it needs besides the target's.
    #[must_use]
    pub fn file(&self) -> Option<&ModelRef> {
        match self {
            Self::Model(model) | Self::Adapter(model) => Some(model),
            Self::None | Self::Layer(_) | Self::MeasuredLayer => None,
        }
    }
}

impl std::fmt::Display for DraftConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Model(model) => write!(f, "{model}"),
            Self::Adapter(model) => write!(f, "self, with the exit adapter {model}"),
            Self::Layer(layers) => write!(f, "self, after {layers} layers"),
            Self::MeasuredLayer => {
                f.write_str("self, after as many layers as is measured to be best")
            }
        }
    }
}

/// The keys of a pair that say what drafts, as they are written.
#[derive(Debug)]
pub(super) struct DraftKeys {
    pub(super) draft: Option<String>,
    pub(super) exit_adapter: Option<String>,
    pub(super) exit_layer: Option<usize>,
}

impl DraftKeys {
    /// Says what drafts for `target`; `model` reads a reference.
    ///
    /// # Errors
    /// With the key and what is wrong with it.
    pub(super) fn check(
        self,
        target: &ModelRef,
        model: &dyn Fn(&str) -> Result<ModelRef, String>,
    ) -> Result<DraftConfig, (&'static str, String)> {
        let own = self.draft.as_deref() == Some("self");
        for (key, given) in [
            ("exit_adapter", self.exit_adapter.is_some()),
            ("exit_layer", self.exit_layer.is_some()),
        ] {
            if given && !own {
                return Err((key, "means nothing without draft = \"self\"".to_owned()));
            }
        }
        match (
            self.draft.as_deref(),
            self.exit_adapter.as_deref(),
            self.exit_layer,
        ) {
            (None | Some("none"), ..) => Ok(DraftConfig::None),
            (Some("self"), None | Some("none"), Some(layers)) => {
                if (1..=MAX_LAYERS).contains(&layers) {
                    Ok(DraftConfig::Layer(layers))
                } else {
                    Err((
                        "exit_layer",
                        format!("{layers} is not from 1 to {MAX_LAYERS}"),
                    ))
                }
            }
            (Some("self"), Some(_), Some(_)) => Err((
                "exit_layer",
                "the exit adapter says after how many layers it follows; leave out one of the two"
                    .to_owned(),
            )),
            (Some("self"), Some("none"), None) => Ok(DraftConfig::MeasuredLayer),
            (Some("self"), Some(text), None) => model(text)
                .map(DraftConfig::Adapter)
                .map_err(|problem| ("exit_adapter", problem)),
            (Some("self"), None, None) if *target == ModelRef::default_target() => {
                Ok(DraftConfig::Adapter(ModelRef::default_exit_adapter()))
            }
            (Some("self"), None, None) => Ok(DraftConfig::MeasuredLayer),
            (Some(text), ..) => model(text)
                .map(DraftConfig::Model)
                .map_err(|problem| ("draft", problem)),
        }
    }
}

/// The table as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpeculationKeys {
    policy: Option<PolicyName>,
    draft_length: Option<usize>,
    pipelined: Option<PipelinedName>,
    lookup: Option<bool>,
    lookup_history: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PolicyName {
    #[default]
    Goodput,
    Threshold,
    Fixed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PipelinedName {
    #[default]
    Auto,
    Always,
    Never,
}

impl From<PipelinedName> for Pipelined {
    fn from(name: PipelinedName) -> Self {
        match name {
            PipelinedName::Auto => Self::Auto,
            PipelinedName::Always => Self::Always,
            PipelinedName::Never => Self::Never,
        }
    }
}

impl SpeculationKeys {
    /// # Errors
    /// With the key and what is wrong with it.
    pub(super) fn check(self) -> Result<SpeculationConfig, (&'static str, String)> {
        let policy = match (self.policy.unwrap_or_default(), self.draft_length) {
            (PolicyName::Fixed, Some(length)) if (1..=MAX_DRAFT_LENGTH).contains(&length) => {
                Policy::Fixed(length)
            }
            (PolicyName::Fixed, Some(length)) => {
                let problem = format!("{length} is not from 1 to {MAX_DRAFT_LENGTH}");
                return Err(("draft_length", problem));
            }
            (PolicyName::Fixed, None) => {
                let problem = "is missing; policy = \"fixed\" drafts that many tokens a step";
                return Err(("draft_length", problem.to_owned()));
            }
            (PolicyName::Goodput | PolicyName::Threshold, Some(_)) => {
                let problem = "means nothing without policy = \"fixed\"";
                return Err(("draft_length", problem.to_owned()));
            }
            (PolicyName::Goodput, None) => Policy::Goodput,
            (PolicyName::Threshold, None) => Policy::Threshold,
        };
        let history = match self.lookup_history.as_deref() {
            Some(text) => {
                super::parse_size(text).map_err(|error| ("lookup_history", error.to_string()))?
            }
            None => DEFAULT_LOOKUP_HISTORY,
        };
        Ok(SpeculationConfig {
            policy,
            pipelined: self.pipelined.unwrap_or_default().into(),
            lookup_history: self.lookup.unwrap_or(true).then_some(history),
        })
    }
}

#[cfg(test)]
mod tests;
