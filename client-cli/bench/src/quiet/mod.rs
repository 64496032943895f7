//! Whether the machine is quiet enough to be measured: what others compute on it, and how steady our own work runs.
//!
//! Linux tells who uses the processors. Elsewhere there is the load average, and a probe that works everywhere: the same
//! piece of arithmetic over and over on all processors, whose slowest tenth says how much is taken away.

mod cpu;
mod probe;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use cpu::Times;

/// How long the machine is watched before anything runs.
const WATCH: Duration = Duration::from_millis(800);
/// Share of the machine that others may use.
const MOST_OTHERS: f64 = 0.05;
/// Share of the machine that a hypervisor may take away.
const MOST_STOLEN: f64 = 0.01;
/// How much slower the slowest tenth of equal pieces of work may be than the median.
const MOST_UNSTEADY: f64 = 0.10;
/// Runnable processes per processor.
const MOST_LOAD: f64 = 0.5;

/// How quiet the machine was. Shares are of all its processors, 0 to 1; what the system does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quiet {
    /// Load average of the last minute, before.
    pub load: Option<f64>,
    /// Used by others before.
    pub others_before: Option<f64>,
    /// Used by others meanwhile.
    pub others_meanwhile: Option<f64>,
    /// Taken away by a hypervisor meanwhile.
    pub stolen: Option<f64>,
    /// Slowness of the slowest tenth of equal pieces of work, over the median, before.
    pub unsteady_before: f64,
    /// The same after.
    pub unsteady_after: f64,
}

impl Quiet {
    /// What is wrong, as sentences; empty on a quiet machine.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        let mut warnings = self.before(cores);
        if let Some(share) = self.others_meanwhile.filter(|share| *share > MOST_OTHERS) {
            warnings.push(format!(
                "other processes used {:.0} % of the machine while it was measured",
                share * 100.0
            ));
        }
        if let Some(share) = self.stolen.filter(|share| *share > MOST_STOLEN) {
            warnings.push(format!(
                "the hypervisor took {:.1} % of the machine's time",
                share * 100.0
            ));
        }
        if self.unsteady_after > MOST_UNSTEADY {
            warnings.push(format!(
                "afterwards, one in ten equal pieces of work took {:.0} % longer than the median",
                self.unsteady_after * 100.0
            ));
        }
        warnings
    }

    fn before(&self, cores: f64) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(share) = self.others_before.filter(|share| *share > MOST_OTHERS) {
            warnings.push(format!(
                "other processes used {:.0} % of the machine before anything was measured",
                share * 100.0
            ));
        } else if self.others_before.is_none()
            && let Some(load) = self.load.filter(|load| *load > MOST_LOAD * cores)
        {
            warnings.push(format!(
                "the load average was {load:.1} on {cores} processors before anything was measured"
            ));
        }
        if self.unsteady_before > MOST_UNSTEADY {
            warnings.push(format!(
                "one in ten equal pieces of work took {:.0} % longer than the median",
                self.unsteady_before * 100.0
            ));
        }
        warnings
    }
}

/// Watches the machine from before the first measurement to after the last.
#[derive(Debug)]
pub(crate) struct Watch {
    quiet: Quiet,
    begin: Option<Times>,
}

impl Watch {
    /// Looks at the machine for about a second; `ours` are processes that work for us already.
    pub(crate) fn begin(ours: &[u32]) -> Self {
        let load = cpu::load();
        let before = Times::read(ours);
        std::thread::sleep(WATCH);
        let others_before = shares(before, Times::read(ours)).map(|shares| shares.others);
        Self {
            quiet: Quiet {
                load,
                others_before,
                unsteady_before: probe::unsteady(),
                ..Quiet::default()
            },
            begin: Times::read(ours),
        }
    }

    /// What is wrong before anything was measured.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.quiet.warnings()
    }

    /// Looks again; `ours` are processes that worked for us and still live.
    pub(crate) fn end(self, ours: &[u32]) -> Quiet {
        let shares = shares(self.begin, Times::read(ours));
        Quiet {
            others_meanwhile: shares.map(|shares| shares.others),
            stolen: shares.map(|shares| shares.stolen),
            unsteady_after: probe::unsteady(),
            ..self.quiet
        }
    }
}

#[derive(Clone, Copy)]
struct Shares {
    others: f64,
    stolen: f64,
}

fn shares(begin: Option<Times>, end: Option<Times>) -> Option<Shares> {
    let (begin, end) = (begin?, end?);
    let all = end.all - begin.all;
    (all > 0.0).then(|| Shares {
        others: ((end.busy - begin.busy - (end.ours - begin.ours)) / all).clamp(0.0, 1.0),
        stolen: ((end.stolen - begin.stolen) / all).clamp(0.0, 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_machine_is_no_reason_to_warn() {
        let quiet = Quiet {
            load: Some(0.1),
            others_before: Some(0.01),
            others_meanwhile: Some(0.02),
            stolen: Some(0.0),
            unsteady_before: 0.02,
            unsteady_after: 0.05,
        };
        assert_eq!(quiet.warnings(), Vec::<String>::new());
    }

    #[test]
    fn every_disturbance_is_named_with_its_size() {
        let noisy = Quiet {
            load: Some(900.0),
            others_before: Some(0.25),
            others_meanwhile: Some(0.5),
            stolen: Some(0.031),
            unsteady_before: 0.4,
            unsteady_after: 0.6,
        };
        let warnings = noisy.warnings().join("\n");
        for part in ["25 %", "50 %", "3.1 %", "40 %", "60 %"] {
            assert!(warnings.contains(part), "{part} is missing in:\n{warnings}");
        }
        assert!(!warnings.contains("load"), "the better figure is there");
        let load = Quiet {
            others_before: None,
            ..noisy
        };
        assert!(
            load.warnings()
                .join("\n")
                .contains("load average was 900.0")
        );
    }

    #[test]
    fn others_are_what_is_busy_and_not_ours() {
        let begin = Times {
            all: 1000.0,
            busy: 100.0,
            stolen: 0.0,
            ours: 50.0,
        };
        let end = Times {
            all: 2000.0,
            busy: 800.0,
            stolen: 20.0,
            ours: 650.0,
        };
        let found = shares(Some(begin), Some(end)).unwrap();
        assert!((found.others - 0.1).abs() < 1e-9 && (found.stolen - 0.02).abs() < 1e-9);
        assert!(shares(Some(end), Some(end)).is_none() && shares(None, Some(end)).is_none());
    }
}
