//! What stalls of late add up to. A trigger says when there is a shortage and never when it is over.

use std::time::{Duration, Instant};

use crate::platform::Pressure;

/// The last time that each level was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    hold: Duration,
    warn: Option<Instant>,
    critical: Option<Instant>,
}

impl Recent {
    /// Lets what was seen count for `hold`.
    pub(super) fn new(hold: Duration) -> Self {
        Self {
            hold,
            warn: None,
            critical: None,
        }
    }

    /// Takes in a level that was seen.
    pub(super) fn saw(&mut self, level: Pressure, now: Instant) {
        match level {
            Pressure::Normal => {}
            Pressure::Warn => self.warn = Some(now),
            Pressure::Critical => self.critical = Some(now),
        }
    }

    /// Returns the level now.
    pub(super) fn level(&self, now: Instant) -> Pressure {
        if self.left(self.critical, now).is_some() {
            Pressure::Critical
        } else if self.left(self.warn, now).is_some() {
            Pressure::Warn
        } else {
            Pressure::Normal
        }
    }

    /// Returns how long it takes until the level can fall; `None`: it is normal.
    pub(super) fn until_fall(&self, now: Instant) -> Option<Duration> {
        self.left(self.critical, now)
            .or_else(|| self.left(self.warn, now))
    }

    fn left(&self, seen: Option<Instant>, now: Instant) -> Option<Duration> {
        let left = self
            .hold
            .saturating_sub(now.saturating_duration_since(seen?));
        Some(left).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_fall_one_after_the_other_when_their_time_is_over() {
        let hold = Duration::from_secs(5);
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut recent = Recent::new(hold);
        assert_eq!(recent.level(begin), Pressure::Normal);
        assert_eq!(
            recent.until_fall(begin),
            None,
            "nothing to wait for when idle"
        );

        recent.saw(Pressure::Critical, at(0));
        recent.saw(Pressure::Warn, at(2));
        assert_eq!(recent.level(at(4)), Pressure::Critical);
        assert_eq!(recent.until_fall(at(4)), Some(Duration::from_secs(1)));
        assert_eq!(recent.level(at(5)), Pressure::Warn);
        assert_eq!(recent.until_fall(at(5)), Some(Duration::from_secs(2)));
        recent.saw(Pressure::Warn, at(6));
        assert_eq!(recent.level(at(10)), Pressure::Warn, "seen again");
        assert_eq!(recent.level(at(11)), Pressure::Normal);
        assert_eq!(recent.until_fall(at(11)), None);
    }
}
