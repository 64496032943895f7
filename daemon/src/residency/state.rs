//! Where a pair is on its way into memory and out of it.
//!
//! ```text
//! Cold → Loading → Warm → Draining → Unloading → Cold
//! ```
//!
//! A reload that fits beside what is loaded goes from warm to warm. A pair that is no longer configured is removed, and
//! never comes back under the same value.

use std::sync::Arc;

use super::resident::Resident;

/// Where a pair is, with what belongs to each state.
#[derive(Clone, Debug)]
pub(crate) enum PairState {
    /// Not in memory; why, where something went wrong.
    Cold(Option<Failure>),
    /// Its files are being read, or will be as soon as others are.
    Loading,
    /// It serves.
    Warm(Arc<Resident>),
    /// Requests end on it; new ones wait for what follows.
    Draining(Arc<Resident>),
    /// Its memory is being given back.
    Unloading,
    /// It is no longer configured.
    Removed,
}

/// Why a pair cannot serve.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// What is wrong and what to do, as a sentence.
    pub(crate) error: Arc<str>,
    /// Whether the next request may try again: files were missing, or an engine that had worked was lost.
    pub(crate) retry: bool,
}

impl PairState {
    /// Returns what is loaded, whether or not it takes requests.
    pub(crate) fn resident(&self) -> Option<&Arc<Resident>> {
        match self {
            Self::Warm(resident) | Self::Draining(resident) => Some(resident),
            Self::Cold(_) | Self::Loading | Self::Unloading | Self::Removed => None,
        }
    }

    /// Whether a pair may go from here to `next`.
    pub(super) fn may_become(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Removed, _) => false,
            (_, Self::Removed) => true,
            (Self::Cold(_), next) => matches!(next, Self::Loading | Self::Cold(_)),
            (Self::Loading, next) => matches!(next, Self::Warm(_) | Self::Cold(_)),
            // Replaced, drained, or lost.
            (Self::Warm(_), next) => {
                matches!(next, Self::Warm(_) | Self::Draining(_) | Self::Cold(_))
            }
            // Unloaded, lost, or called off.
            (Self::Draining(_), next) => {
                matches!(next, Self::Unloading | Self::Cold(_) | Self::Warm(_))
            }
            (Self::Unloading, next) => matches!(next, Self::Cold(_) | Self::Loading),
        }
    }
}
