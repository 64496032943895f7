//! Tells systemd how the daemon is doing: sd_notify(3), where `NOTIFY_SOCKET` asks for it. Must not know what becomes of
//! it: a service manager that does not listen changes nothing.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use crate::phase::Phase;
use crate::residency::PairState;
use crate::service::Daemon;

/// What ending may take beyond the drain limit.
const MARGIN: Duration = Duration::from_secs(5);

/// Sends states to the service manager, where there is one that wants them.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<UnixDatagram>,
}

impl Notifier {
    /// Connects to what `NOTIFY_SOCKET` names; a name that leads nowhere is logged.
    #[must_use]
    pub fn from_env() -> Self {
        let named = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        let socket = named.and_then(|name| {
            connect(&name)
                .inspect_err(|error| tracing::warn!(?name, %error, "cannot use NOTIFY_SOCKET"))
                .ok()
        });
        Self { socket }
    }

    /// Sends assignments such as `READY=1`, one a line.
    fn send(&self, state: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(state.as_bytes())
        {
            tracing::debug!(%error, state, "the service manager was not told");
        }
    }
}

/// A path, or `@` and an abstract name, which only Linux has.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not hold up the daemon.
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address(name)?)?;
    Ok(socket)
}

fn address(name: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::ffi::OsStrExt as _;
        if let Some(name) = name.as_bytes().strip_prefix(b"@") {
            return SocketAddr::from_abstract_name(name);
        }
    }
    SocketAddr::from_pathname(name)
}

/// Tells until the daemon ends. Ready means that the socket answers: requests wait while pairs load.
pub(crate) async fn follow(daemon: Arc<Daemon>, notifier: Notifier) {
    let (mut phase, mut config) = (daemon.lifecycle.watch(), daemon.residency.watch_config());
    notifier.send("READY=1");
    loop {
        // Which pair is the default one can change as well.
        let drain = config.borrow_and_update().server.drain;
        let Ok(pair) = daemon.pair("") else { return };
        let mut state = pair.watch();
        let status = match &*state.borrow_and_update() {
            PairState::Warm(_) => format!("serving, default pair {}", pair.name),
            PairState::Cold(None) => format!("serving, pair {} is loaded on request", pair.name),
            PairState::Cold(Some(failure)) => {
                format!("pair {} is not loaded: {}", pair.name, failure.error)
            }
            _ => format!("loading pair {}", pair.name),
        };
        match *phase.borrow_and_update() {
            Phase::Serving => notifier.send(&format!("STATUS={}", one_line(&status))),
            Phase::Draining => {
                let limit = (drain + MARGIN).as_micros();
                let streams = daemon.lifecycle.open_streams();
                // The unit's limit may be older than the configuration.
                notifier.send(&format!(
                    "STOPPING=1\nEXTEND_TIMEOUT_USEC={limit}\nSTATUS=finishing {streams} streams"
                ));
            }
            Phase::Ended => return,
        }
        tokio::select! {
            changed = state.changed() => if changed.is_err() { return },
            changed = phase.changed() => if changed.is_err() { return },
            changed = config.changed() => if changed.is_err() { return },
        }
    }
}

/// A line feed would begin another assignment.
fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut text = [0; 256];
        let length = socket.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    }

    #[test]
    fn states_go_to_a_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier {
            socket: Some(connect(path.as_os_str()).unwrap()),
        };
        notifier.send("READY=1\nSTATUS=x");
        assert_eq!(received(&manager), "READY=1\nSTATUS=x");
        drop(manager);
        notifier.send("STOPPING=1"); // nobody is there, and nothing happens
        Notifier::default().send("READY=1");
        assert!(connect(directory.path().join("absent").as_os_str()).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn states_go_to_an_abstract_name() {
        use std::os::linux::net::SocketAddrExt as _;
        let name = format!("tandem-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        let socket = connect(OsStr::new(&format!("@{name}"))).unwrap();
        socket.send(b"READY=1").unwrap();
        assert_eq!(received(&manager), "READY=1");
    }

    #[test]
    fn a_status_is_one_assignment() {
        assert_eq!(one_line("a\nREADY=1"), "a READY=1");
    }
}
