//! Why the daemon cannot listen.

use std::io;
use std::path::{Path, PathBuf};

use tandem_proto::paths::MAX_SOCKET_PATH_BYTES;

/// Why the daemon cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The path does not fit into a socket address.
    #[error(
        "the socket path {} has {bytes} bytes, and the system allows {MAX_SOCKET_PATH_BYTES}; choose a shorter one with --socket",
        path.display()
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        bytes: usize,
    },
    /// The path depends on the working directory.
    #[error("the socket path {} is not absolute", .0.display())]
    NotAbsolute(PathBuf),
    /// Another daemon serves this socket.
    #[error("another tandemd (pid {pid}) already serves {}; end it first with `tandem daemon stop`, or choose another path with --socket", socket.display())]
    AlreadyRunning {
        /// What both want.
        socket: PathBuf,
        /// The process that holds the lock, as it wrote there; `unknown` in the moment before it did.
        pid: String,
    },
    /// Some process listens on the socket without holding our lock.
    #[error("a program that is not a tandemd answers at {}; end it, or choose another path with --socket", .0.display())]
    InUse(PathBuf),
    /// Following a link could replace a file elsewhere.
    #[error("{} is a symbolic link; remove it, or choose another path with --socket", .0.display())]
    Symlink(PathBuf),
    /// Something is at the path that is not ours to remove.
    #[error("{} exists and is not a socket; move it away, or choose another path with --socket", .0.display())]
    NotASocket(PathBuf),
    /// The file or directory belongs to somebody else.
    #[error("{} belongs to user {owner}, and this daemon runs as user {own}", path.display())]
    ForeignOwner {
        /// The file or directory.
        path: PathBuf,
        /// Its owner's uid.
        owner: u32,
        /// Our uid.
        own: u32,
    },
    /// Others could put their own socket in place of ours.
    #[error("others may write to the directory {} (mode {mode:04o}); run `chmod 700` on it, or choose another path with --socket", path.display())]
    OpenDirectory {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// What the service manager passed on cannot be served.
    #[error(
        "the service manager passed on descriptor {descriptor}, but {why}; its unit or property list has to name a Unix stream socket"
    )]
    Inherited {
        /// The number of the descriptor.
        descriptor: i32,
        /// What it is instead.
        why: &'static str,
    },
    /// A socket without a path cannot be found by clients, nor be locked.
    #[error(
        "the service manager passed on no socket with a path; its unit or property list has to name one"
    )]
    InheritedNoPath,
    /// The service manager's sockets are not there.
    #[error("cannot take the service manager's sockets: {0}")]
    Activation(io::Error),
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl ListenError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
