//! Drafters: whatever guesses continuations for the target to verify.
//!
//! A drafter adds to the tree of each request, asking the plan of the step before every forward of its own and for every
//! token (`policy` says what a plan may depend on). `growth` grows trees on a model's distributions, `proposal` is the
//! tree with where each node comes from.

mod agreement;
mod distributions;
mod growth;
pub mod lookup;
mod model;
mod proposal;
mod self_draft;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tandem_model::TokenId;
use tandem_model::model::{LanguageModel, ModelError, Rehearsal, Slot};

pub use agreement::{ExitEstimate, choose_exit, measure_exits};
pub use lookup::LookupDrafter;
pub use model::ModelDrafter;
pub use proposal::{Origin, Proposal};
pub use self_draft::SelfDrafter;

use crate::policy::{CatchUp, DraftKind, StepPlan};
use crate::sampling::Sampler;
use crate::{ClientKey, SequenceId};

/// What a drafter may see of a sequence it serves, and the tree it adds to.
#[derive(Debug)]
pub struct DraftRequest<'a> {
    /// Whose tokens these are.
    pub id: SequenceId,
    /// Its place in the plan of the step.
    pub seat: usize,
    /// The target's cache of the sequence; the tokens from its length on have yet to be fed.
    pub slot: Slot,
    /// Who asked, where that is known: a client's texts resemble each other.
    pub client: Option<ClientKey>,
    /// Every committed token, prompt included.
    pub tokens: &'a [TokenId],
    /// The sequence's sampler: a draft is drawn with the same transforms, and with the same noise where the request
    /// has a seed.
    pub sampler: &'a mut Sampler,
    /// What is proposed for it so far.
    pub proposal: &'a mut Proposal,
}

/// What drafters of a step share.
pub struct Drafting<'a> {
    /// The pair's target, for drafters that use its layers. What its caches hold for good does not change.
    pub target: &'a mut dyn LanguageModel,
    /// Says what pays.
    pub plan: &'a mut StepPlan,
    /// Read to tell catching up from drafting.
    pub clock: &'a dyn Fn() -> Instant,
}

impl std::fmt::Debug for Drafting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drafting")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

/// A sequence whose proposal is being verified.
#[derive(Debug)]
pub struct Expected<'a> {
    /// Whose tokens these are.
    pub id: SequenceId,
    /// Every committed token, prompt included.
    pub tokens: &'a [TokenId],
    /// Tokens that may still be generated.
    pub remaining: usize,
    /// The sequence's sampler.
    pub sampler: &'a Sampler,
    /// What is proposed.
    pub proposal: &'a Proposal,
}

/// Which texts a drafter can draft for. Others are decoded without it, and nobody else notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Tokens that its model knows: a target can have more rows than its draft, and a request can ask for them.
    pub vocabulary: usize,
    /// Tokens of the longest text that its model was trained for.
    pub positions: usize,
}

impl Reach {
    /// Every text.
    pub const ALL: Self = Self {
        vocabulary: usize::MAX,
        positions: usize::MAX,
    };

    /// Whether it reaches a text of `tokens` tokens of which the largest is `largest`, so that what follows can be drafted.
    #[must_use]
    pub fn covers(self, tokens: usize, largest: TokenId) -> bool {
        (largest as usize) < self.vocabulary && tokens <= self.positions
    }
}

/// Guesses continuations. It may propose nothing; it never needs to be told what was accepted, because the next request's
/// tokens say it.
pub trait Drafter: Send {
    /// What it is to the policy.
    fn kind(&self) -> DraftKind;

    /// Names the method in statistics, such as `model`.
    fn name(&self) -> &'static str;

    /// Adds to each request's proposal what the plan finds worthwhile.
    ///
    /// # Errors
    /// Where its model fails. The engine then goes on without it.
    fn draft(
        &mut self,
        step: Drafting<'_>,
        requests: &mut [DraftRequest<'_>],
    ) -> Result<CatchUp, ModelError>;

    /// Goes on, on the calling thread alone and until `stop` is set, from the outcome that it expects of what is being
    /// verified, so that its next draft is ready sooner. The draft itself stays the same.
    ///
    /// # Errors
    /// As [`Self::draft`].
    fn ahead(&mut self, expected: &[Expected<'_>], stop: &AtomicBool) -> Result<(), ModelError> {
        let _ = (expected, stop);
        Ok(())
    }

    /// How often its model prepared something that later forwards find done, the target aside: see
    /// [`LanguageModel::preparations`].
    fn preparations(&self) -> u64 {
        0
    }

    /// Lets its model's device prepare what the usual forwards need.
    ///
    /// # Errors
    /// Where the device fails.
    fn rehearse(&mut self, rehearsal: &Rehearsal<'_>) -> Result<(), ModelError> {
        let _ = rehearsal;
        Ok(())
    }

    /// Which texts it can draft for.
    fn reach(&self) -> Reach {
        Reach::ALL
    }

    /// How many of a sequence's `tokens` tokens, the newest aside, it has yet to take in before it can draft.
    fn behind(&self, id: SequenceId, tokens: usize) -> usize;

    /// Drops what it holds of a sequence for which it will not draft soon.
    fn park(&mut self, id: SequenceId) {
        let _ = id;
    }

    /// Forgets a sequence, which has ended.
    fn release(&mut self, id: SequenceId);

    /// Drops what it holds of texts that have ended.
    fn trim(&mut self) {}

    /// Bytes of its weights, those of the target that it uses aside.
    fn weight_bytes(&self) -> u64;

    /// How many bytes of them are mapped from a prepared file.
    fn mapped_bytes(&self) -> u64 {
        0
    }

    /// Bytes of its caches, which `target` may hold for it; the target's own aside.
    fn cache_bytes(&self, target: &dyn LanguageModel) -> u64;

    /// Bytes that one more position takes in its caches.
    fn cache_bytes_per_position(&self) -> u64;
}
