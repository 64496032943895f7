//! Figures in words: a finished request in one line, sizes, times, and how far a load is.

use std::time::Duration;

use tandem_client::v1::{
    GenerateComplete, LoadProgress, LoadStage, ReloadResponse, SpeculationStats, Timings,
};

/// Words what a request took and what speculation did for it.
pub(crate) fn line(complete: &GenerateComplete) -> String {
    let timings = complete.timings.unwrap_or_default();
    let speculation = complete.speculation.clone().unwrap_or_default();
    let tokens = complete.usage.unwrap_or_default().completion_tokens;
    let mut parts = vec![format!(
        "TTFT {:.0} ms",
        milliseconds(timings.time_to_first_token)
    )];
    if timings.load.is_some() {
        parts.push(format!(
            "loaded first, {:.0} ms",
            milliseconds(timings.load)
        ));
    }
    if let Some(rate) = tokens_per_second(tokens, &timings) {
        parts.push(format!("{rate:.1} tokens/s"));
    }
    parts.push(format!(
        "{tokens} {}",
        if tokens == 1 { "token" } else { "tokens" }
    ));
    if speculation.draft_tokens > 0 {
        parts.push(format!(
            "drafted {}, accepted {}, mean acceptance length {:.1}",
            speculation.draft_tokens,
            speculation.accepted_tokens,
            speculation.mean_acceptance_length
        ));
        parts.push(speedup(speculation.measured_speedup));
    }
    parts.push(speculation_state(&speculation));
    parts.join(" · ")
}

/// Words what a reload changed.
pub(crate) fn reload(changes: &ReloadResponse) -> String {
    let lists = [
        ("added", &changes.added),
        ("removed", &changes.removed),
        ("changed", &changes.changed),
        ("loaded again", &changes.retried),
        ("restart to apply", &changes.restart_needed),
    ];
    let mut said: Vec<String> = lists
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what} {}", names.join(", ")))
        .collect();
    if !changes.failed.is_empty() {
        let failed = changes.failed.iter().map(|failed| failed.pair.as_str());
        let failed: Vec<&str> = failed.collect();
        said.push(format!("still not loaded {}", failed.join(", ")));
    }
    match said.is_empty() {
        true => "no pair changed".to_owned(),
        false => said.join("; "),
    }
}

/// Words a speed against that of plain decoding.
pub(crate) fn speedup(ratio: f64) -> String {
    format!("{ratio:.2} times plain decoding")
}

/// Returns the decoding rate: the first token belongs to the prefill, so one token has none.
pub(crate) fn tokens_per_second(tokens: u32, timings: &Timings) -> Option<f64> {
    let seconds = milliseconds(timings.decode) / 1000.0;
    (tokens > 1 && seconds > 0.0).then(|| f64::from(tokens - 1) / seconds)
}

fn speculation_state(stats: &SpeculationStats) -> String {
    match (stats.enabled, stats.draft_tokens) {
        (false, _) if stats.off_reason.is_empty() => "speculation off".to_owned(),
        (false, _) => format!("speculation off: {}", stats.off_reason),
        (true, _) if stats.plain_reason.is_empty() => "speculation on".to_owned(),
        (true, 0) => format!("speculation on, nothing drafted: {}", stats.plain_reason),
        (true, _) => format!("speculation on in part: {}", stats.plain_reason),
    }
}

/// Converts a duration of the service; an absent or impossible one counts as none.
pub(crate) fn milliseconds<D: TryInto<Duration>>(duration: Option<D>) -> f64 {
    duration
        .and_then(|duration| duration.try_into().ok())
        .unwrap_or_default()
        .as_secs_f64()
        * 1000.0
}

/// Writes bytes for people, in binary units.
pub(crate) fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["B", "KiB", "MiB"] {
        if value < 1024.0 {
            return format!("{value:.0} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} GiB")
}

/// Writes a time for people, in its two largest units.
pub(crate) fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (
        seconds / 86400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    ) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

/// Writes how long ago something was.
pub(crate) fn age(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 86400, seconds / 3600, seconds / 60) {
        (0, 0, 0) => format!("{seconds} s ago"),
        (0, 0, minutes) => format!("{minutes} min ago"),
        (0, hours, _) => format!("{hours} h ago"),
        (days, ..) => format!("{days} d ago"),
    }
}

/// Words what loading is doing.
pub(crate) fn load_stage(load: &LoadProgress) -> &'static str {
    match load.stage() {
        LoadStage::Identifying => "identifying the model file",
        LoadStage::Waiting => "waiting for another process that prepares the weights",
        LoadStage::Preparing => "preparing weights",
        LoadStage::Checking => "checking prepared weights",
        LoadStage::Reading => "reading weights",
        LoadStage::Unspecified => "loading",
    }
}

/// How far the stage is, where that is known.
pub(crate) fn load_percent(load: &LoadProgress) -> Option<u64> {
    let done = u128::from(load.done_bytes) * 100;
    let percent = done.checked_div(u128::from(load.total_bytes))?;
    u64::try_from(percent.min(100)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_client::v1::Usage;

    fn complete(tokens: u32, speculation: SpeculationStats) -> GenerateComplete {
        GenerateComplete {
            usage: Some(Usage {
                prompt_tokens: 4,
                completion_tokens: tokens,
            }),
            timings: Some(Timings {
                time_to_first_token: Duration::from_millis(84).try_into().ok(),
                decode: Duration::from_secs(2).try_into().ok(),
                ..Default::default()
            }),
            speculation: Some(speculation),
            ..Default::default()
        }
    }

    #[test]
    fn with_speculation() {
        let stats = SpeculationStats {
            enabled: true,
            draft_tokens: 96,
            accepted_tokens: 71,
            mean_acceptance_length: 2.84,
            measured_speedup: 1.354,
            ..Default::default()
        };
        assert_eq!(
            line(&complete(129, stats)),
            "TTFT 84 ms · 64.0 tokens/s · 129 tokens · drafted 96, accepted 71, mean acceptance length 2.8 · \
             1.35 times plain decoding · speculation on"
        );
    }

    #[test]
    fn without_speculation() {
        let stats = SpeculationStats {
            off_reason: "the pair has no draft".to_owned(),
            ..Default::default()
        };
        assert_eq!(
            line(&complete(1, stats)),
            "TTFT 84 ms · 1 token · speculation off: the pair has no draft"
        );
    }

    #[test]
    fn drafting_that_ended_early_names_the_reason() {
        let stats = SpeculationStats {
            enabled: true,
            draft_tokens: 3,
            plain_reason: "5 of 8 steps were plain".to_owned(),
            ..Default::default()
        };
        assert!(
            line(&complete(2, stats.clone()))
                .ends_with("speculation on in part: 5 of 8 steps were plain")
        );
        let none = SpeculationStats {
            draft_tokens: 0,
            ..stats
        };
        assert!(line(&complete(2, none)).contains("on, nothing drafted: 5 of 8"));
    }

    #[test]
    fn a_reload_names_what_changed() {
        let mut changes = ReloadResponse::default();
        assert_eq!(reload(&changes), "no pair changed");
        changes.added = vec!["a".to_owned(), "b".to_owned()];
        changes.restart_needed = vec!["server.max_message_bytes".to_owned()];
        assert_eq!(
            reload(&changes),
            "added a, b; restart to apply server.max_message_bytes"
        );
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(90 << 20), "90 MiB");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
        assert_eq!(clock(Duration::from_secs(61)), "1 min 1 s");
        assert_eq!(clock(Duration::from_secs(90_000)), "1 d 1 h");
        assert_eq!(age(Duration::from_secs(3_700)), "1 h ago");
    }

    #[test]
    fn a_load_says_what_it_does_and_how_far_it_is() {
        let load = |done_bytes, total_bytes| LoadProgress {
            model: "target".to_owned(),
            stage: LoadStage::Preparing.into(),
            done_bytes,
            total_bytes,
        };
        assert_eq!(load_stage(&load(0, 0)), "preparing weights");
        assert_eq!(load_percent(&load(0, 0)), None);
        assert_eq!(load_percent(&load(43, 100)), Some(43));
        assert_eq!(load_percent(&load(u64::MAX, 7)), Some(100));
    }
}
