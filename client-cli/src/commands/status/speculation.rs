//! What drafts for a pair and what came of it, in words.

use tandem_client::v1::{DraftMethod, PairInfo, SpeculationStats};

use super::{model, row};
use crate::json;
use crate::summary::speedup;

/// Words what `MemoryStatus::draft_weights` are in a pair.
pub(super) fn weights(info: &PairInfo) -> &'static str {
    if drafts_itself(info) {
        "exit adapter"
    } else {
        "draft"
    }
}

fn drafts_itself(info: &PairInfo) -> bool {
    info.draft_methods()
        .any(|method| method == DraftMethod::Self_)
}

/// Words what drafts besides lookup.
pub(super) fn draft(info: &PairInfo) -> String {
    let file = info.draft.as_ref().map(model);
    if !drafts_itself(info) {
        return file.unwrap_or_else(|| "none".to_owned());
    }
    let layers = match info.exit_layer {
        0 => "the target's first layers".to_owned(),
        layers => format!("the target's first {layers} layers"),
    };
    match file {
        Some(adapter) => format!("{layers} and the exit adapter {adapter}"),
        None => layers,
    }
}

/// Words which drafters are at work, and why others are not.
pub(super) fn methods(info: &PairInfo) -> String {
    let methods: Vec<String> = info.draft_methods().map(json::draft_method).collect();
    let on = methods.join(", ");
    match (on.as_str(), info.speculation_off_reason.as_str()) {
        ("", "") => "off".to_owned(),
        ("", reason) => format!("off: {reason}"),
        (on, "") => format!("on: {on}"),
        (on, reason) => format!("on: {on} only, because {reason}"),
    }
}

/// Adds what speculation did, where it did anything.
pub(super) fn add_rows(text: &mut String, stats: Option<&SpeculationStats>) {
    let Some(stats) = stats.filter(|stats| stats.draft_tokens > 0) else {
        return;
    };
    row(
        text,
        "drafted",
        &format!(
            "{} tokens in {} of {} steps ({:.0} % without), {} probes, {} forced bypasses",
            stats.draft_tokens,
            stats.drafted_steps,
            stats.steps,
            stats.bypass_fraction * 100.0,
            stats.probe_steps,
            stats.forced_bypasses
        ),
    );
    let positions: Vec<String> = stats
        .accepted_per_position
        .iter()
        .map(u64::to_string)
        .collect();
    row(
        text,
        "accepted",
        &format!(
            "{} tokens, by position {}; mean acceptance length {:.2}",
            stats.accepted_tokens,
            positions.join(" "),
            stats.mean_acceptance_length
        ),
    );
    row(
        text,
        "time",
        &format!(
            "draft {:.2} s, verify {:.2} s, accept {:.2} s, cache update {:.2} s",
            stats.draft_seconds,
            stats.verify_seconds,
            stats.accept_seconds,
            stats.cache_update_seconds
        ),
    );
    let (word, seconds) = if stats.ledger_seconds > 0.0 {
        ("lost", stats.ledger_seconds)
    } else {
        ("gained", -stats.ledger_seconds)
    };
    row(
        text,
        "speed",
        &format!(
            "{}, {:.2} expected of drafted steps; {seconds:.2} s {word}",
            speedup(stats.measured_speedup),
            stats.expected_speedup
        ),
    );
}

#[cfg(test)]
mod tests {
    use tandem_client::v1::ModelInfo;

    use super::*;

    fn pair(methods: &[DraftMethod], exit_layer: u32, reason: &str) -> PairInfo {
        PairInfo {
            draft_methods: methods.iter().map(|method| (*method).into()).collect(),
            exit_layer,
            speculation_off_reason: reason.to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn drafters_are_named_with_the_reason_why_others_are_not() {
        let both = pair(&[DraftMethod::Model, DraftMethod::Lookup], 0, "");
        assert_eq!(methods(&both), "on: model, lookup");
        let lookup = pair(&[DraftMethod::Lookup], 0, "the pair has no draft");
        assert_eq!(
            methods(&lookup),
            "on: lookup only, because the pair has no draft"
        );
        assert_eq!(methods(&pair(&[], 0, "a reason")), "off: a reason");
        assert_eq!(draft(&lookup), "none");
    }

    #[test]
    fn self_drafting_names_its_layers_and_its_adapter() {
        let mut own = pair(&[DraftMethod::Self_], 6, "");
        assert_eq!(draft(&own), "the target's first 6 layers");
        assert_eq!(weights(&own), "exit adapter");
        own.draft = Some(ModelInfo {
            source: "./exit.gguf".to_owned(),
            ..Default::default()
        });
        assert!(
            draft(&own).starts_with("the target's first 6 layers and the exit adapter ./exit.gguf")
        );
    }

    #[test]
    fn statistics_come_in_rows() {
        let mut text = String::new();
        add_rows(&mut text, Some(&SpeculationStats::default()));
        assert_eq!(text, "", "nothing was drafted");
        let stats = SpeculationStats {
            steps: 100,
            drafted_steps: 80,
            probe_steps: 3,
            bypass_fraction: 0.2,
            draft_tokens: 240,
            accepted_tokens: 180,
            accepted_per_position: vec![70, 60, 50],
            mean_acceptance_length: 3.25,
            draft_seconds: 0.5,
            verify_seconds: 2.0,
            ledger_seconds: -1.5,
            measured_speedup: 1.6,
            expected_speedup: 1.7,
            ..Default::default()
        };
        add_rows(&mut text, Some(&stats));
        for part in [
            "240 tokens in 80 of 100 steps (20 % without), 3 probes, 0 forced bypasses",
            "180 tokens, by position 70 60 50; mean acceptance length 3.25",
            "draft 0.50 s, verify 2.00 s, accept 0.00 s, cache update 0.00 s",
            "1.60 times plain decoding, 1.70 expected of drafted steps; 1.50 s gained",
        ] {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
    }
}
