//! The client's deadline, from the `grpc-timeout` header.
//!
//! tonic reads it too, but stops counting once a stream has begun and reports CANCELLED; here it covers the whole stream
//! and ends it with DEADLINE_EXCEEDED.

use std::time::{Duration, Instant};

use tonic::metadata::MetadataMap;

use crate::errors;

/// The server's own timer is this much shorter, so that its answer, which has details, arrives before the client gives
/// up by itself and before tonic's timer.
const HEAD_START: Duration = Duration::from_millis(2);

/// When the client stops waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    /// When.
    pub(crate) at: Instant,
    /// How long that was from arrival.
    pub(crate) limit: Duration,
}

impl Deadline {
    /// Reads the header of a call that arrived at `arrival`. `None`: the client waits for ever.
    pub(crate) fn from_metadata(
        metadata: &MetadataMap,
        arrival: Instant,
    ) -> Result<Option<Self>, tonic::Status> {
        let Some(value) = metadata.get("grpc-timeout") else {
            return Ok(None);
        };
        let limit = value.to_str().ok().and_then(parse_timeout).ok_or_else(|| {
            errors::invalid_field(
                "grpc-timeout",
                "has to be up to eight digits and a unit of H, M, S, m, u or n",
            )
        })?;
        // A deadline too far away for the clock is none.
        Ok(arrival
            .checked_add(limit.saturating_sub(HEAD_START))
            .map(|at| Self { at, limit }))
    }
}

/// Parses the value of the header: 1 to 8 digits and a unit.
fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(value * 3600)),
        "M" => Some(Duration::from_secs(value * 60)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

/// Waits until `deadline`, or for ever without one, and returns how long that was from arrival.
pub(crate) async fn passed(deadline: Option<Deadline>) -> Duration {
    match deadline {
        Some(deadline) => {
            tokio::time::sleep_until(deadline.at.into()).await;
            deadline.limit
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_the_protocol() {
        for (text, limit) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("30S", Duration::from_secs(30)),
            ("1500m", Duration::from_millis(1500)),
            ("00000007u", Duration::from_micros(7)),
            ("99999999n", Duration::from_nanos(99_999_999)),
        ] {
            assert_eq!(parse_timeout(text), Some(limit), "{text}");
        }
    }

    #[test]
    fn nothing_else() {
        for text in [
            "",
            "S",
            "1",
            "1s",
            "123456789S",
            "-1S",
            "+1S",
            "1.5S",
            "1 S",
            "1é",
            "é",
        ] {
            assert_eq!(parse_timeout(text), None, "{text}");
        }
    }

    #[test]
    fn the_header_counts_from_arrival() {
        let arrival = Instant::now();
        let mut metadata = MetadataMap::new();
        assert_eq!(Deadline::from_metadata(&metadata, arrival).unwrap(), None);
        metadata.insert("grpc-timeout", "250m".parse().unwrap());
        let deadline = Deadline::from_metadata(&metadata, arrival)
            .unwrap()
            .unwrap();
        assert_eq!(deadline.limit, Duration::from_millis(250));
        assert_eq!(deadline.at, arrival + Duration::from_millis(248));
        metadata.insert("grpc-timeout", "soon".parse().unwrap());
        let status = Deadline::from_metadata(&metadata, arrival).unwrap_err();
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
    }
}
