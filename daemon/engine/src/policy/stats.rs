//! What speculation did: counters and seconds that add up over requests, pairs and the whole service.

use super::acceptance::DEPTHS;

/// Counters of speculation. Seconds of a step with several requests are shared equally among them, so that sums over
/// requests are the machine's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpeculationStats {
    /// Steps that committed tokens.
    pub steps: u64,
    /// Of these, steps that verified drafted tokens.
    pub drafted_steps: u64,
    /// Of the drafted steps, those that only tried whether drafting pays again.
    pub probe_steps: u64,
    /// Steps that could have drafted and did not because the ledger was exhausted.
    pub forced_bypasses: u64,
    /// Steps that could have drafted and did not because no draft was expected to save time.
    pub declined_steps: u64,
    /// Steps without a draft, whatever the reason.
    pub bypassed_steps: u64,
    /// Steps in which the draft was continued while the target verified it.
    pub pipelined_steps: u64,
    /// Forwards of a draft that were found done, because an earlier step had gone on.
    pub foreseen_rounds: u64,
    /// Tokens committed.
    pub committed_tokens: u64,
    /// Tokens committed by drafted steps, the recovered or bonus token counted.
    pub drafted_step_tokens: u64,
    /// Tokens drafted and verified.
    pub drafted_tokens: u64,
    /// Drafted tokens accepted.
    pub accepted_tokens: u64,
    /// Accepted tokens by depth; deeper ones than are told apart count as the last.
    pub accepted_per_position: [u64; DEPTHS],
    /// Seconds spent drafting, catching up included.
    pub draft_seconds: f64,
    /// Seconds of the target's forwards.
    pub verify_seconds: f64,
    /// Seconds spent deciding which tokens stand.
    pub accept_seconds: f64,
    /// Seconds spent bringing caches in line with what stands.
    pub cache_update_seconds: f64,
    /// Seconds that plain decoding would have taken for the committed tokens, at the costs of their time.
    pub plain_seconds: f64,
    /// Tokens that the plans of the drafted steps expected.
    pub expected_tokens: f64,
    /// The same for seconds.
    pub expected_seconds: f64,
    /// Seconds that plain decoding would take for the expected tokens.
    pub expected_plain_seconds: f64,
    /// Seconds booked as lost against plain decoding; negative: gained. Ledgers forget old gains, this does not.
    pub ledger_seconds: f64,
}

impl SpeculationStats {
    /// Adds what another request or pair did.
    pub fn merge(&mut self, other: &Self) {
        self.steps += other.steps;
        self.drafted_steps += other.drafted_steps;
        self.probe_steps += other.probe_steps;
        self.forced_bypasses += other.forced_bypasses;
        self.declined_steps += other.declined_steps;
        self.bypassed_steps += other.bypassed_steps;
        self.pipelined_steps += other.pipelined_steps;
        self.foreseen_rounds += other.foreseen_rounds;
        self.committed_tokens += other.committed_tokens;
        self.drafted_step_tokens += other.drafted_step_tokens;
        self.drafted_tokens += other.drafted_tokens;
        self.accepted_tokens += other.accepted_tokens;
        for (count, other) in self
            .accepted_per_position
            .iter_mut()
            .zip(other.accepted_per_position)
        {
            *count += other;
        }
        self.draft_seconds += other.draft_seconds;
        self.verify_seconds += other.verify_seconds;
        self.accept_seconds += other.accept_seconds;
        self.cache_update_seconds += other.cache_update_seconds;
        self.plain_seconds += other.plain_seconds;
        self.expected_tokens += other.expected_tokens;
        self.expected_seconds += other.expected_seconds;
        self.expected_plain_seconds += other.expected_plain_seconds;
        self.ledger_seconds += other.ledger_seconds;
    }

    /// Seconds of all steps.
    #[must_use]
    pub fn elapsed_seconds(&self) -> f64 {
        self.draft_seconds + self.verify_seconds + self.accept_seconds + self.cache_update_seconds
    }

    /// Measured speed over that of plain decoding; 1 before the first step.
    #[must_use]
    pub fn measured_speedup(&self) -> f64 {
        ratio(self.plain_seconds, self.elapsed_seconds())
    }

    /// Speed over that of plain decoding as the plans expected it; 1 before the first step.
    #[must_use]
    pub fn expected_speedup(&self) -> f64 {
        ratio(self.expected_plain_seconds, self.expected_seconds)
    }

    /// Share of steps without a draft; 0 before the first step.
    #[must_use]
    pub fn bypass_fraction(&self) -> f64 {
        self.bypassed_steps as f64 / (self.steps as f64).max(1.0)
    }

    /// Tokens committed per drafted step, the recovered or bonus token counted; 0 where nothing was drafted.
    #[must_use]
    pub fn mean_acceptance_length(&self) -> f64 {
        self.drafted_step_tokens as f64 / (self.drafted_steps as f64).max(1.0)
    }
}

fn ratio(plain: f64, actual: f64) -> f64 {
    if actual > 0.0 { plain / actual } else { 1.0 }
}
