//! When a drafter that does not pay is tried again, and when its cache is not worth keeping.

/// Plain steps before the first probe.
const FIRST: u32 = 4;
/// Most plain steps between probes.
const LONGEST: u32 = 512;
/// A better outlook than the best since the last probe, by so much, starts the back-off anew.
const RISE: f64 = 0.05;
/// Plain steps to wait per plain step that a probe is expected to lose: probes cost 1 % at most.
const LOSS_WAIT: f64 = 100.0;
/// An outlook from here on is a close call, which is decided on few observations: waiting longer than so many steps loses
/// more than probing does.
const CLOSE: f64 = 0.96;
const CLOSE_INTERVAL: u32 = 8;
/// Steps without a chosen draft after which the drafter's cache is dropped.
const PARK_AFTER: u32 = 256;

/// How a step used a drafter for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It could not have drafted: no match, no room, speculation off.
    Absent,
    /// It could have and did not: it does not pay.
    Declined,
    /// It was asked although it does not look like paying, to see whether that is still so.
    Probe,
    /// It was asked because it pays.
    Chosen,
}

/// Exponential back-off: after 4 steps that decline a drafter, then 8, up to 512.
///
/// The outlook is the best expected speed with the drafter over the speed without. When it rises, because probes were
/// accepted or costs changed, the back-off starts anew. The rise is measured from the best outlook since the last probe, so
/// that noise in the costs is no rise, and must be so large that one lucky probe is none where probes are dear.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    waited: u32,
    interval: u32,
    outlook: f64,
    idle: u32,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            waited: 0,
            interval: FIRST,
            outlook: 0.0,
            idle: 0,
        }
    }
}

impl Probe {
    /// Whether to probe now, where a probe is expected to lose so many plain steps, catching up included.
    #[must_use]
    pub(super) fn due(&self, lost_steps: f64) -> bool {
        f64::from(self.waited) >= f64::from(self.interval) + LOSS_WAIT * lost_steps
    }

    /// Whether the drafter has not paid for so long that keeping its cache for this request is a waste of memory.
    #[must_use]
    pub(super) fn parked(&self) -> bool {
        self.idle >= PARK_AFTER
    }

    /// Learns how a step used the drafter, and with what outlook.
    pub(super) fn record(&mut self, used: Use, outlook: f64) {
        match used {
            Use::Absent => return,
            Use::Chosen => {
                *self = Self::default();
                return;
            }
            Use::Declined => self.waited = self.waited.saturating_add(1),
            Use::Probe => {
                self.waited = 0;
                self.interval = (self.interval * 2).min(LONGEST);
                self.outlook = self.outlook.min(outlook);
            }
        }
        self.idle = self.idle.saturating_add(1);
        if outlook > self.outlook + RISE {
            self.outlook = outlook;
            self.interval = FIRST;
        }
        if outlook >= CLOSE {
            self.interval = self.interval.min(CLOSE_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes(steps: usize, outlook: impl Fn(usize) -> f64) -> Vec<usize> {
        let mut probe = Probe::default();
        let mut seen = Vec::new();
        for step in 0..steps {
            let due = probe.due(0.0);
            seen.extend(due.then_some(step));
            probe.record(if due { Use::Probe } else { Use::Declined }, outlook(step));
        }
        seen
    }

    #[test]
    fn hopeless_text_is_probed_ever_less() {
        let seen = probes(2000, |_| 0.7);
        assert!(seen.len() <= 10, "{seen:?}");
        assert!(
            seen.windows(3).all(|w| w[2] - w[1] >= w[1] - w[0]),
            "{seen:?}"
        );
    }

    #[test]
    fn a_rising_outlook_is_probed_at_once_and_a_wavering_one_is_not() {
        let rising = probes(1100, |step| if step < 1000 { 0.7 } else { 0.9 });
        assert!(
            rising.iter().filter(|&&step| step >= 1000).count() >= 3,
            "{rising:?}"
        );
        let wavering = probes(2000, |step| 0.7 + 0.04 * f64::from(u8::from(step % 7 == 0)));
        assert!(wavering.len() <= 12, "{wavering:?}");
    }

    #[test]
    fn a_drafter_that_is_not_chosen_for_long_is_parked_until_it_is() {
        let mut probe = Probe::default();
        for _ in 0..PARK_AFTER {
            assert!(!probe.parked());
            probe.record(Use::Declined, 0.5);
        }
        assert!(probe.parked() && probe.due(0.0) && !probe.due(10.0));
        probe.record(Use::Chosen, 1.2);
        assert!(!probe.parked());
    }
}
