//! What the engine thread is doing, for those who watch whether it goes on.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock;

/// Written by the engine thread before everything it does; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Mutex<Option<Doing>>>);

/// One thing that the engine thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doing {
    what: What,
    pair: String,
    since: Instant,
}

/// Kinds of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A step, with so many running and waiting requests; its number.
    Step {
        number: u64,
        running: usize,
        waiting: usize,
    },
    Submit,
    Shed,
    Restore,
    Trim,
}

impl Progress {
    pub(super) fn begin(&self, what: What, pair: &str) {
        let mut doing = lock(&self.0);
        // The name's memory is used again: this happens before every step.
        match &mut *doing {
            Some(doing) => {
                doing.what = what;
                doing.since = Instant::now();
                if doing.pair != pair {
                    pair.clone_into(&mut doing.pair);
                }
            }
            None => {
                *doing = Some(Doing {
                    what,
                    pair: pair.to_owned(),
                    since: Instant::now(),
                });
            }
        }
    }

    /// Notes that there is nothing to do.
    pub(super) fn rest(&self) {
        *lock(&self.0) = None;
    }

    /// Returns what has been going on for longer than `limit` at `now`.
    pub(crate) fn hanging(&self, now: Instant, limit: Duration) -> Option<Doing> {
        let doing = lock(&self.0);
        doing
            .as_ref()
            .filter(|doing| now.saturating_duration_since(doing.since) > limit)
            .cloned()
    }
}

impl Doing {
    /// Returns the pair it is done for.
    pub(crate) fn pair(&self) -> &str {
        &self.pair
    }
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = &self.pair;
        match self.what {
            What::Step {
                number,
                running,
                waiting,
            } => write!(
                f,
                "step {number} of pair \"{pair}\", with {running} running and {waiting} waiting requests"
            ),
            What::Submit => write!(f, "taking in a request for pair \"{pair}\""),
            What::Shed => write!(f, "shedding the draft of pair \"{pair}\""),
            What::Restore => write!(f, "putting the draft of pair \"{pair}\" back"),
            What::Trim => write!(f, "dropping the texts that pair \"{pair}\" searches"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_named() {
        let progress = Progress::default();
        let limit = Duration::from_secs(60);
        let far = Instant::now() + Duration::from_secs(3600);
        assert_eq!(progress.hanging(far, limit), None, "nothing goes on");
        let what = What::Step {
            number: 7,
            running: 2,
            waiting: 1,
        };
        progress.begin(what, "code");
        assert_eq!(progress.hanging(Instant::now(), limit), None);
        let doing = progress.hanging(far, limit).expect("an hour is too long");
        assert_eq!(
            doing.to_string(),
            "step 7 of pair \"code\", with 2 running and 1 waiting requests"
        );
        let past = Instant::now().checked_sub(Duration::from_secs(5));
        assert_eq!(
            past.and_then(|past| progress.hanging(past, limit)),
            None,
            "a clock that was set back says nothing"
        );
        progress.begin(What::Submit, "chat");
        assert_eq!(progress.hanging(Instant::now(), limit), None, "it goes on");
        progress.rest();
        assert_eq!(progress.hanging(far, limit), None);
    }
}
