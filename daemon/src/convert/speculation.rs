//! What speculation did, as it is sent.

use tandem_engine::RequestStats;
use tandem_engine::policy::{DraftKind, SpeculationStats, StepCost};
use tandem_proto::v1;

use super::count;

/// Writes what speculation did for one request.
pub(super) fn request_speculation(stats: RequestStats) -> v1::SpeculationStats {
    let enabled = stats.drafter.is_some();
    let reason = stats.off_reason.clone().unwrap_or_default();
    // One field where nothing could draft, another where something did: a reason for being off is no word about being on.
    let (off_reason, plain_reason) = match enabled {
        true => (String::new(), reason),
        false if reason.is_empty() => ("no step was taken".to_owned(), String::new()),
        false => (reason, String::new()),
    };
    v1::SpeculationStats {
        enabled,
        off_reason,
        plain_reason,
        mean_acceptance_length: stats.mean_acceptance_length(),
        bypass_fraction: stats.bypass_fraction(),
        drafter: stats.drafter.unwrap_or_default().to_owned(),
        steps: stats.steps,
        drafted_steps: stats.drafted_steps,
        draft_tokens: stats.draft_tokens,
        accepted_tokens: stats.accepted_tokens,
        accepted_per_position: stats.accepted_per_position,
        ..costs(&stats.speculation)
    }
}

/// Writes what speculation did for one pair, or for all.
pub(crate) fn pair_speculation(stats: &SpeculationStats) -> v1::SpeculationStats {
    let deepest = stats
        .accepted_per_position
        .iter()
        .rposition(|count| *count > 0);
    let positions = deepest.map_or(0, |deepest| deepest + 1);
    v1::SpeculationStats {
        enabled: stats.drafted_tokens > 0,
        steps: stats.steps,
        drafted_steps: stats.drafted_steps,
        draft_tokens: stats.drafted_tokens,
        accepted_tokens: stats.accepted_tokens,
        mean_acceptance_length: stats.mean_acceptance_length(),
        accepted_per_position: stats.accepted_per_position[..positions].to_vec(),
        bypass_fraction: stats.bypass_fraction(),
        ..costs(stats)
    }
}

/// Costs and gains, the same for requests and pairs.
fn costs(stats: &SpeculationStats) -> v1::SpeculationStats {
    v1::SpeculationStats {
        probe_steps: stats.probe_steps,
        forced_bypasses: stats.forced_bypasses,
        declined_steps: stats.declined_steps,
        draft_seconds: stats.draft_seconds,
        verify_seconds: stats.verify_seconds,
        accept_seconds: stats.accept_seconds,
        cache_update_seconds: stats.cache_update_seconds,
        ledger_seconds: stats.ledger_seconds,
        measured_speedup: stats.measured_speedup(),
        expected_speedup: stats.expected_speedup(),
        pipelined_steps: stats.pipelined_steps,
        foreseen_rounds: stats.foreseen_rounds,
        ..Default::default()
    }
}

/// Writes what steps cost.
pub(crate) fn step_costs(costs: &[StepCost]) -> Vec<v1::StepCost> {
    let step = |cost: &StepCost| v1::StepCost {
        positions: count(cost.positions),
        rows: count(cost.rows),
        seconds: cost.seconds,
        samples: cost.samples,
    };
    costs.iter().map(step).collect()
}

/// Writes kinds of drafter.
pub(crate) fn draft_methods(kinds: impl IntoIterator<Item = DraftKind>) -> Vec<i32> {
    let method = |kind| match kind {
        DraftKind::Model => v1::DraftMethod::Model,
        DraftKind::SelfDraft => v1::DraftMethod::Self_,
        DraftKind::Lookup => v1::DraftMethod::Lookup,
    };
    kinds.into_iter().map(|kind| method(kind).into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two requests, of which the first gained and the second lost.
    fn stats() -> [SpeculationStats; 2] {
        let mut first = SpeculationStats {
            steps: 10,
            drafted_steps: 8,
            probe_steps: 1,
            bypassed_steps: 2,
            drafted_step_tokens: 24,
            drafted_tokens: 20,
            accepted_tokens: 16,
            draft_seconds: 0.5,
            verify_seconds: 1.0,
            accept_seconds: 0.25,
            cache_update_seconds: 0.25,
            plain_seconds: 4.0,
            expected_seconds: 1.0,
            expected_plain_seconds: 3.0,
            ledger_seconds: -2.0,
            ..Default::default()
        };
        first.accepted_per_position[..3].copy_from_slice(&[8, 5, 3]);
        let second = SpeculationStats {
            steps: 10,
            bypassed_steps: 10,
            forced_bypasses: 4,
            verify_seconds: 2.0,
            plain_seconds: 2.0,
            ledger_seconds: 0.5,
            ..Default::default()
        };
        [first, second]
    }

    #[test]
    fn a_pair_is_the_sum_of_its_requests() {
        let [mut sum, second] = stats();
        sum.merge(&second);
        let pair = pair_speculation(&sum);
        assert!(pair.enabled);
        assert_eq!(
            (pair.steps, pair.drafted_steps, pair.probe_steps),
            (20, 8, 1)
        );
        assert_eq!((pair.draft_tokens, pair.accepted_tokens), (20, 16));
        assert_eq!(pair.accepted_per_position, [8, 5, 3], "no empty positions");
        assert_eq!((pair.bypass_fraction, pair.forced_bypasses), (0.6, 4));
        assert_eq!(pair.mean_acceptance_length, 3.0);
        assert_eq!((pair.draft_seconds, pair.verify_seconds), (0.5, 3.0));
        assert_eq!(
            (pair.accept_seconds, pair.cache_update_seconds),
            (0.25, 0.25)
        );
        assert_eq!(pair.ledger_seconds, -1.5);
        assert_eq!((pair.measured_speedup, pair.expected_speedup), (1.5, 3.0));
    }

    #[test]
    fn a_request_counts_the_step_that_read_its_prompt() {
        let [speculation, _] = stats();
        let request = RequestStats {
            steps: 12,
            drafted_steps: 9,
            drafter: Some("self"),
            speculation: Box::new(speculation),
            ..Default::default()
        };
        let sent = request_speculation(request);
        assert_eq!((sent.steps, sent.bypass_fraction), (12, 0.25));
        assert_eq!((sent.drafter.as_str(), sent.enabled), ("self", true));
        assert_eq!((sent.measured_speedup, sent.ledger_seconds), (2.0, -2.0));
    }

    #[test]
    fn a_reason_to_be_off_and_being_on_exclude_each_other() {
        for drafter in [None, Some("lookup")] {
            for reason in [None, Some("a reason")] {
                let sent = request_speculation(RequestStats {
                    drafter,
                    off_reason: reason.map(str::to_owned),
                    ..Default::default()
                });
                assert_eq!(sent.enabled, sent.off_reason.is_empty(), "{sent:?}");
                assert!(sent.enabled || sent.plain_reason.is_empty(), "{sent:?}");
                let said = format!("{}{}", sent.off_reason, sent.plain_reason);
                assert!(reason.is_none() || said == "a reason", "{sent:?}");
            }
        }
    }

    #[test]
    fn nothing_drafted_is_plain_speed() {
        let none = pair_speculation(&SpeculationStats::default());
        assert_eq!((none.measured_speedup, none.expected_speedup), (1.0, 1.0));
        assert!(!none.enabled && none.accepted_per_position.is_empty());
    }
}
