//! How long pairs stay in memory, and how much of it there is: the tables `[residency]` and `[memory]`, and the keys of
//! `[pairs.NAME]` that go before the former.

use std::time::Duration;

use serde::Deserialize;

use super::{parse_duration, parse_size};

/// How long the system has to be calm before a draft that was shed comes back, where the config does not say.
const DEFAULT_RESTORE_AFTER: Duration = Duration::from_secs(10);

/// How long a pair stays loaded without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepAlive {
    /// So long; zero: not at all.
    For(Duration),
    /// Until it is no longer configured.
    Forever,
}

/// Whether and how long a pair is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidencyConfig {
    /// How long it stays there without a request.
    pub keep_alive: KeepAlive,
    /// Whether it is loaded at once; otherwise its first request does that.
    pub preload: bool,
}

/// The `[memory]` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Most memory the daemon may use.
    pub budget: Budget,
    /// How long the system has to be calm before what was given up for others comes back.
    pub restore_after: Duration,
}

/// Most memory the daemon may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// A fixed share of the machine's memory, and no more than its GPU recommends.
    Auto,
    /// What a phone of 8 GB leaves an app that must never be ended: 3.0 GB, and 1.5 GB under the limit.
    Mobile,
    /// This many bytes.
    Bytes(u64),
}

impl Budget {
    /// Share of physical memory that [`Budget::Auto`] allows, in percent: what is left suffices for a desktop.
    const AUTO_PERCENT: u64 = 60;
    const MOBILE_CAP: u64 = 3_000_000_000;
    const MOBILE_HEADROOM: u64 = 1_500_000_000;

    /// Returns the budget in bytes where there is so much memory, and a GPU recommends to use at most so much.
    #[must_use]
    pub fn bytes(self, physical: u64, recommended: Option<u64>) -> u64 {
        match self {
            Self::Auto => {
                (physical / 100 * Self::AUTO_PERCENT).min(recommended.unwrap_or(u64::MAX))
            }
            Self::Mobile => Self::MOBILE_CAP.min(physical.saturating_sub(Self::MOBILE_HEADROOM)),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// A key and what is wrong with it.
type Problem = (&'static str, String);

/// The keys of both `[residency]` and a pair, as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResidencyKeys {
    pub(super) keep_alive: Option<String>,
    pub(super) preload: Option<bool>,
}

impl ResidencyKeys {
    /// Says what these keys and, where they are left out, `default` ask for.
    pub(super) fn check(&self, default: ResidencyConfig) -> Result<ResidencyConfig, Problem> {
        let keep_alive = match self.keep_alive.as_deref() {
            None => default.keep_alive,
            Some("forever") => KeepAlive::Forever,
            Some("never") => KeepAlive::For(Duration::ZERO),
            Some(text) => parse_duration(text)
                .map(KeepAlive::For)
                .map_err(|error| ("keep_alive", format!("{error}, \"forever\" or \"never\"")))?,
        };
        Ok(ResidencyConfig {
            keep_alive,
            preload: self.preload.unwrap_or(default.preload),
        })
    }
}

impl Default for ResidencyConfig {
    fn default() -> Self {
        Self {
            keep_alive: KeepAlive::Forever,
            preload: true,
        }
    }
}

/// The keys of `[memory]`, as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryKeys {
    budget: Option<String>,
    restore_after: Option<String>,
}

impl MemoryKeys {
    pub(super) fn check(&self) -> Result<MemoryConfig, Problem> {
        let budget = match self.budget.as_deref() {
            None | Some("auto") => Budget::Auto,
            Some("mobile") => Budget::Mobile,
            Some(text) => parse_size(text)
                .map(Budget::Bytes)
                .map_err(|error| ("budget", error.to_string()))?,
        };
        let restore_after = match self.restore_after.as_deref() {
            None => DEFAULT_RESTORE_AFTER,
            Some(text) => {
                parse_duration(text).map_err(|error| ("restore_after", error.to_string()))?
            }
        };
        Ok(MemoryConfig {
            budget,
            restore_after,
        })
    }
}
