//! The ways to decode that are compared, and what each needs of a daemon.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tandem_client::GenerateRequest;
use tandem_client::v1::{DraftMethod, Speculation};

/// A way to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Plain decoding.
    None,
    /// Chains drafted by a separate model.
    Draft,
    /// Chains drafted by the target's first layers.
    #[serde(rename = "self")]
    Own,
    /// Trees drafted by a separate model.
    Tree,
    /// Trees drafted by the target's first layers.
    SelfTree,
    /// What follows similar text in the prompt and the answer so far.
    Lookup,
    /// All that the pair has, as it is configured: what somebody gets who sets nothing.
    Default,
}

/// What drafts for a daemon's pair besides lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drafts {
    /// Nothing.
    Nothing,
    /// A separate model.
    Model,
    /// The target's first layers.
    Own,
}

/// What a daemon has at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Serving {
    /// What drafts besides lookup.
    pub drafts: Drafts,
    /// Whether texts are searched.
    pub lookup: bool,
}

impl fmt::Display for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.drafts, self.lookup) {
            (Drafts::Nothing, false) => "no drafter",
            (Drafts::Nothing, true) => "lookup",
            (Drafts::Model, false) => "a draft model",
            (Drafts::Model, true) => "a draft model and lookup",
            (Drafts::Own, false) => "self-drafting",
            (Drafts::Own, true) => "self-drafting and lookup",
        })
    }
}

impl Method {
    /// Every method, in the order in which they are told.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Draft,
        Self::Own,
        Self::Tree,
        Self::SelfTree,
        Self::Lookup,
        Self::Default,
    ];

    /// Its name in commands, tables and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Draft => "draft",
            Self::Own => "self",
            Self::Tree => "tree",
            Self::SelfTree => "self-tree",
            Self::Lookup => "lookup",
            Self::Default => "default",
        }
    }

    /// What it is, in words.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::None => "plain decoding",
            Self::Draft => "chains from the draft model",
            Self::Own => "chains from the target's own first layers",
            Self::Tree => "trees from the draft model",
            Self::SelfTree => "trees from the target's own first layers",
            Self::Lookup => "search in the prompt and the answer so far",
            Self::Default => "all that the pair has, as configured",
        }
    }

    /// What has to draft besides lookup; `usual` is what does in the pair as configured.
    #[must_use]
    pub const fn drafts(self, usual: Drafts) -> Drafts {
        match self {
            Self::Draft | Self::Tree => Drafts::Model,
            Self::Own | Self::SelfTree => Drafts::Own,
            Self::None | Self::Lookup | Self::Default => usual,
        }
    }

    /// What a daemon has at hand that exists for this method alone.
    #[must_use]
    pub const fn alone(self, usual: Serving) -> Serving {
        match self {
            Self::None => Serving {
                drafts: Drafts::Nothing,
                lookup: false,
            },
            Self::Lookup => Serving {
                drafts: Drafts::Nothing,
                lookup: true,
            },
            Self::Default => usual,
            Self::Draft | Self::Own | Self::Tree | Self::SelfTree => Serving {
                drafts: self.drafts(Drafts::Nothing),
                lookup: false,
            },
        }
    }

    /// Whether all drafted tokens follow one another.
    #[must_use]
    pub const fn is_chain(self) -> bool {
        matches!(self, Self::Draft | Self::Own | Self::Lookup)
    }

    /// Has a request decoded this way. No text of an earlier request helps: a benchmark asks the same again and again.
    #[must_use]
    pub(crate) fn apply(self, request: GenerateRequest) -> GenerateRequest {
        let request = request.history("");
        let drafter = match self {
            Self::None => return request.speculation(Speculation::Off),
            Self::Default => return request,
            Self::Draft | Self::Tree => DraftMethod::Model,
            Self::Own | Self::SelfTree => DraftMethod::Self_,
            Self::Lookup => DraftMethod::Lookup,
        };
        let request = request.draft_method(drafter);
        if self.is_chain() {
            request.draft_width(1)
        } else {
            request
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|method| method.name() == text);
        known.ok_or_else(|| format!("`{text}` is no method"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_everywhere() {
        for method in Method::ALL {
            assert_eq!(method.name().parse(), Ok(method));
            let json = serde_json::to_string(&method).unwrap();
            assert_eq!(json, format!("{:?}", method.name()));
        }
        assert!("both".parse::<Method>().is_err());
    }

    #[test]
    fn a_method_alone_brings_nothing_that_it_does_not_use() {
        let usual = Serving {
            drafts: Drafts::Model,
            lookup: true,
        };
        for method in Method::ALL {
            let alone = method.alone(usual);
            let uses_lookup = matches!(method, Method::Lookup | Method::Default);
            assert_eq!(alone.lookup, uses_lookup, "{method}");
            let drafts = !matches!(method, Method::None | Method::Lookup);
            assert_eq!(alone.drafts != Drafts::Nothing, drafts, "{method}");
        }
    }
}
