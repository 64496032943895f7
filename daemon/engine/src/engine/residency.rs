//! What an engine gives back and takes again while it runs: its draft, what it remembers, room for caches. Each takes effect
//! between two steps, and changes no text.

use super::Engine;
use crate::draft::Drafter;
use crate::pair::{LoadError, LoadedDraft};
use crate::policy::DraftKind;

/// What shedding took out of an engine. Its memory is freed when this drops, which may take a while and need not hold up
/// the engine.
pub struct ShedDraft {
    drafters: Vec<Box<dyn Drafter>>,
    weight_bytes: u64,
    mapped_bytes: u64,
    cache_bytes: u64,
}

impl ShedDraft {
    /// Bytes of its weights, mapped or not.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    /// How many bytes of its weights are mapped from a prepared file, and hence in no footprint.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes
    }

    /// Bytes of its caches.
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        self.cache_bytes
    }
}

impl std::fmt::Debug for ShedDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShedDraft")
            .field("drafters", &self.drafters.len())
            .field("weight_bytes", &self.weight_bytes)
            .field("cache_bytes", &self.cache_bytes)
            .finish_non_exhaustive()
    }
}

/// Bytes of cache, each request at its full length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheClaims {
    /// Of the requests that run.
    pub running: u64,
    /// Of the request that is to run next, where nothing but room for its cache is missing.
    pub next: Option<u64>,
}

impl Engine {
    /// Takes out every drafter that computes, with its caches, from the next step on. `reason` is what requests are told
    /// that decode plainly for that.
    pub fn shed_draft(&mut self, reason: impl Into<String>) -> ShedDraft {
        let computes =
            |drafter: &mut Box<dyn Drafter>| DraftKind::COMPUTING.contains(&drafter.kind());
        let drafters: Vec<_> = self.drafters.extract_if(.., computes).collect();
        let shed = ShedDraft {
            weight_bytes: drafters.iter().map(|drafter| drafter.weight_bytes()).sum(),
            mapped_bytes: drafters.iter().map(|drafter| drafter.mapped_bytes()).sum(),
            cache_bytes: drafters
                .iter()
                .map(|drafter| drafter.cache_bytes(&*self.target))
                .sum(),
            drafters,
        };
        self.target.detach_exit();
        self.off_reason = Some(reason.into());
        shed
    }

    /// Puts a draft back that was shed, from the next step on; requests that run use it too. An exit adapter can only
    /// come while no request runs, because it would miss what their caches hold: until then the draft is returned.
    ///
    /// # Errors
    /// Where an exit adapter cannot be read. The engine goes on as before.
    pub fn restore_draft(&mut self, draft: LoadedDraft) -> Result<Option<LoadedDraft>, LoadError> {
        if draft.needs_empty_caches() && !self.running.is_empty() {
            return Ok(Some(draft));
        }
        self.shed_draft("the draft is being put back");
        self.drafters.push(draft.attach(&mut *self.target)?);
        self.off_reason = None;
        Ok(None)
    }

    /// Lets no more requests run at once than do now, or one where none does; or as many as usual again.
    pub fn hold(&mut self, hold: bool) {
        self.held = match (hold, self.held) {
            (true, None) => Some(self.running.len().max(1)),
            (true, held) => held,
            (false, _) => None,
        };
    }

    /// Forgets what only serves to be faster later: finished texts.
    pub fn trim(&mut self) {
        for drafter in &mut self.drafters {
            drafter.trim();
        }
    }

    /// Sets the bytes that caches may ever come to take, and how many of these may be taken now. A request that needs
    /// more than the former is refused; one that needs more than the latter waits.
    pub fn set_cache_budget(&mut self, budget: u64, room: u64) {
        self.options.cache_budget = budget;
        self.cache_room = room.min(budget);
    }

    /// What requests take and what the next one will take.
    #[must_use]
    pub fn cache_claims(&self) -> CacheClaims {
        let may_begin = self.running.len() < self.most_at_once();
        let next = self.waiting.front().filter(|_| may_begin);
        CacheClaims {
            running: self.reserved(),
            next: next.map(|next| self.cache_bytes(next.positions())),
        }
    }
}
