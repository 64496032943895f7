//! Whether the draft goes on while the target verifies. Where it has a device or cores of its own that makes its next draft
//! free; where it has not, it slows the target down. Nobody can tell but by trying, so it is tried, ever less often where
//! it fails.

/// When a draft is continued while the target verifies it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pipelined {
    /// Where it is measured to gain.
    #[default]
    Auto,
    /// At every step. For experiments.
    Always,
    /// At none.
    Never,
}

/// Drafted steps before the first trial: costs must be known before anything is compared with them.
const FIRST_WAIT: f64 = 48.0;
/// Most drafted steps between trials.
const LONGEST_WAIT: f64 = 16_384.0;
/// Steps of a trial.
const TRIAL: u32 = 16;
/// Plain steps that a trial may lose before it ends.
const TRIAL_LOSS: f64 = 1.0;
/// Steps to wait per plain step that a trial lost: trials cost half a percent at most.
const WAIT_PER_LOSS: f64 = 200.0;
/// Steps over which it is watched while it is in use.
const MEMORY: f64 = 64.0;
/// While in use, one step in so many goes without, so that the cost of verifying alone stays known.
const WITHOUT: u32 = 8;

#[derive(Clone, Copy, Debug)]
enum State {
    /// Not in use for so many more drafted steps.
    Waiting { left: f64 },
    /// On trial.
    Trying { steps: u32 },
    /// In use.
    Using { steps: u32 },
}

/// The experiment, for one pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipelining {
    mode: Pipelined,
    state: State,
    wait: f64,
    /// Plain steps gained: in all of a trial, per step while in use.
    gained: f64,
}

impl Default for Pipelining {
    fn default() -> Self {
        Self::new(Pipelined::default())
    }
}

impl Pipelining {
    pub(super) fn new(mode: Pipelined) -> Self {
        Self {
            mode,
            state: State::Waiting { left: FIRST_WAIT },
            wait: FIRST_WAIT,
            gained: 0.0,
        }
    }

    /// Whether to go on drafting while the target verifies the coming step; `governed`: whether the policy alone says how
    /// much is drafted in it.
    pub(super) fn due(&self, governed: bool) -> bool {
        match (self.mode, self.state) {
            (Pipelined::Always, _) => true,
            (Pipelined::Never, _) | (Pipelined::Auto, State::Waiting { .. }) => false,
            (Pipelined::Auto, State::Trying { .. }) => governed,
            (Pipelined::Auto, State::Using { steps }) => governed && steps % WITHOUT != 0,
        }
    }

    /// Learns of a drafted step. `saved` are the plain steps' worth of forwards that it found done, `lost` those by which
    /// verifying took longer because the draft went on meanwhile.
    pub(super) fn record(&mut self, saved: f64, lost: f64) {
        let gained = saved - lost;
        self.state = match self.state {
            State::Waiting { left } if left > 1.0 => State::Waiting { left: left - 1.0 },
            State::Waiting { .. } => {
                self.gained = 0.0;
                State::Trying { steps: 0 }
            }
            State::Trying { steps } => {
                self.gained += gained;
                match (steps + 1 < TRIAL, self.gained) {
                    (true, gained) if gained > -TRIAL_LOSS => State::Trying { steps: steps + 1 },
                    (false, gained) if gained > 0.0 => {
                        self.gained = gained / f64::from(TRIAL);
                        State::Using { steps: 1 }
                    }
                    _ => self.give_up(),
                }
            }
            State::Using { steps } => {
                self.gained += (gained - self.gained) / MEMORY;
                if self.gained > 0.0 {
                    State::Using {
                        steps: steps.wrapping_add(1),
                    }
                } else {
                    self.wait = FIRST_WAIT;
                    self.give_up()
                }
            }
        };
    }

    fn give_up(&mut self) -> State {
        let lost = (-self.gained).max(0.0);
        // A step that was held up can seem to lose any amount.
        let earned = (2.0 * self.wait).max(WAIT_PER_LOSS * lost);
        self.wait = earned.min(LONGEST_WAIT);
        State::Waiting { left: self.wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs so many drafted steps, in which going on costs `cost` and saves `saving`; says in which it went on.
    fn run(
        pipelining: &mut Pipelining,
        steps: usize,
        gain: impl Fn(usize) -> (f64, f64),
    ) -> Vec<usize> {
        let (mut went_on, mut before) = (Vec::new(), false);
        for step in 0..steps {
            let due = pipelining.due(true);
            let (saving, cost) = gain(step);
            let saved = if before { saving } else { 0.0 };
            pipelining.record(saved, if due { cost } else { 0.0 });
            went_on.extend(due.then_some(step));
            before = due;
        }
        went_on
    }

    #[test]
    fn it_is_used_where_it_gains_and_the_cost_without_stays_known() {
        let went_on = run(&mut Pipelining::default(), 2000, |_| (0.1, 0.02));
        let share = went_on.len() as f64 / 2000.0;
        assert!((0.8..0.9).contains(&share), "{share}");
    }

    #[test]
    fn a_step_that_was_held_up_for_long_makes_it_wait_and_no_longer_than_ever() {
        let mut pipelining = Pipelining::default();
        let went_on = run(&mut pipelining, 200, |_| (0.0, 1e6));
        assert!(!went_on.is_empty() && went_on.len() < 200);
        assert!(pipelining.wait <= LONGEST_WAIT, "{}", pipelining.wait);
    }

    #[test]
    fn where_it_loses_trials_cost_less_than_a_hundredth() {
        for cost in [0.01, 0.05, 0.5, 3.0] {
            let went_on = run(&mut Pipelining::default(), 20_000, |_| (0.0, cost));
            let lost = went_on.len() as f64 * cost;
            assert!(lost <= 200.0 + cost, "{cost}: {lost} plain steps");
            assert!(went_on.len() >= 3, "{cost}: it is tried again");
        }
    }

    #[test]
    fn what_begins_to_lose_ends_and_what_begins_to_gain_is_found() {
        let mut pipelining = Pipelining::default();
        let gain = |step| {
            if step < 3000 {
                (0.0, 0.05)
            } else {
                (0.2, 0.05)
            }
        };
        let went_on = run(&mut pipelining, 12_000, gain);
        assert!(
            went_on.iter().any(|step| *step > 11_000),
            "{}",
            went_on.len()
        );
        let went_on = run(&mut pipelining, 2000, |_| (0.0, 0.2));
        assert!(went_on.len() < 300, "{}", went_on.len());
    }

    #[test]
    fn experiments_are_left_alone() {
        let mut pipelining = Pipelining::default();
        while !pipelining.due(true) {
            pipelining.record(0.0, 0.0);
        }
        assert!(!pipelining.due(false));
        assert!(Pipelining::new(Pipelined::Always).due(false));
    }

    #[test]
    fn it_can_be_had_always_and_never() {
        assert_eq!(
            run(&mut Pipelining::new(Pipelined::Always), 9, |_| (0.0, 9.0)).len(),
            9
        );
        assert_eq!(
            run(&mut Pipelining::new(Pipelined::Never), 900, |_| (9.0, 0.0)).len(),
            0
        );
    }
}
