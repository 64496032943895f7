//! Sockets that a service manager has bound, and removes when it wants: they are checked, and never unlinked.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;

use super::lock::Lock;
use super::{ListenError, Listener, SocketHold};

impl Listener {
    /// Serves sockets that somebody else has bound. `lock_for` says which lock file goes with the path of the first one
    /// that has a path.
    ///
    /// # Errors
    /// When there is none, one is not a listening Unix stream socket, or another daemon holds the lock.
    pub fn adopt(
        sockets: Vec<OwnedFd>,
        lock_for: impl FnOnce(&Path) -> PathBuf,
    ) -> Result<Self, ListenError> {
        let listeners = sockets
            .into_iter()
            .map(check)
            .collect::<Result<Vec<_>, _>>()?;
        let path = listeners
            .iter()
            .find_map(|listener| Some(listener.local_addr().ok()?.as_pathname()?.to_owned()))
            .ok_or(ListenError::InheritedNoPath)?;
        let lock = Lock::acquire(&lock_for(&path), &path)?;
        Ok(Self {
            listeners,
            hold: SocketHold::given(path, lock),
        })
    }
}

fn check(socket: OwnedFd) -> Result<UnixListener, ListenError> {
    let descriptor = socket.as_raw_fd();
    let wrong = |why: &'static str| ListenError::Inherited { descriptor, why };
    match socket_type(&socket) {
        Ok(SocketType::STREAM) => {}
        Ok(_) => return Err(wrong("it is not a stream socket")),
        Err(_) => return Err(wrong("it is not a socket")),
    }
    // Systems of Apple have the question, and no answer.
    #[cfg(not(target_os = "macos"))]
    if !rustix::net::sockopt::socket_acceptconn(&socket).unwrap_or(false) {
        return Err(wrong("nobody called listen(2) on it"));
    }
    let listener = UnixListener::from(socket);
    listener
        .local_addr()
        .map_err(|_| wrong("it is not a Unix socket"))?;
    listener
        .set_nonblocking(true)
        .map_err(|_| wrong("it cannot be made non-blocking"))?;
    Ok(listener)
}
