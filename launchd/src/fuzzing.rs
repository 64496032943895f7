//! For the fuzzer: everything that this crate reads of what others wrote, without a manager to run.

use std::path::Path;

use crate::agent::InstalledAgent;
use crate::printed::Printed;
use crate::{systemctl, units};

/// What is read.
#[derive(Clone, Copy, Debug)]
pub enum Read {
    /// An agent's property list.
    Agent,
    /// What `launchctl print` prints.
    Printed,
    /// What `systemctl show` prints.
    Shown,
    /// A service's unit.
    Unit,
}

impl Read {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Printed, Self::Shown, Self::Unit];
}

/// Reads `bytes` as the verbs do; returns which parts were understood.
#[must_use]
pub fn read(what: Read, bytes: &[u8]) -> String {
    // Commands' output is read so.
    let text = String::from_utf8_lossy(bytes);
    let parts = match what {
        Read::Agent => match InstalledAgent::parse(bytes, Path::new("a.plist")) {
            Ok(agent) => [agent.program, agent.socket, agent.log_file].map(|it| it.is_some()),
            Err(error) => return error.to_string(),
        },
        Read::Printed => {
            let printed = Printed::parse(&text);
            [printed.pid.is_some(), !printed.last_end.is_empty(), false]
        }
        Read::Shown => {
            let shown = systemctl::parse(&text);
            [shown.is_active(), shown.pid.is_some(), shown.enabled]
        }
        Read::Unit => [units::program(&text).is_some(), false, false],
    };
    format!("{what:?} {parts:?}")
}
