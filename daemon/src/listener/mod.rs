//! The daemon's socket: where it may be, who may use it, and that only one daemon serves it.
//!
//! Order matters and is the same each time: path length, directory, lock, what lies at the path, bind, permissions. A
//! stale socket is unlinked only under the lock and after a connection to it failed. Sockets that a service manager has
//! bound are taken as they are and stay when the daemon ends, so that connections wait for the next one. A socket of our
//! own that goes while the daemon lives is made again.

mod error;
mod hold;
mod inherit;
mod keep;
mod lock;
mod peer;
mod places;

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

pub use error::ListenError;
pub use hold::SocketHold;
pub(crate) use keep::keep;
pub use lock::UserLock;
pub use peer::SameUser;
pub(crate) use peer::process;

use tandem_proto::paths::MAX_SOCKET_PATH_BYTES;

use lock::Lock;

/// Sockets and what keeps them ours.
#[derive(Debug)]
pub struct Listener {
    /// Not empty.
    listeners: Vec<UnixListener>,
    hold: SocketHold,
}

impl Listener {
    /// Takes the lock file and binds the socket at `path`, which must be absolute; both lie in the same directory.
    ///
    /// # Errors
    /// When another daemon holds the lock, or the path, its directory or what lies there is not acceptable.
    pub fn bind(path: &Path, lock: &Path) -> Result<Self, ListenError> {
        check_length(path)?;
        let directory = path
            .parent()
            .filter(|_| path.is_absolute())
            .ok_or_else(|| ListenError::NotAbsolute(path.into()))?;
        prepare_directory(directory)?;
        let lock = Lock::acquire(lock, path)?;
        remove_stale(path)?;
        let (listener, hold) = SocketHold::make(path, lock)?;
        Ok(Self {
            listeners: vec![listener],
            hold,
        })
    }

    /// Has the lock of the user's one daemon held as long as the socket is.
    #[must_use]
    pub fn under(self, user: Option<UserLock>) -> Self {
        self.hold.set_user_lock(user);
        self
    }

    /// Returns the path of the socket, or of the first one that was inherited.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.hold.path()
    }

    /// Separates the sockets, of which there is at least one and which have to be closed as soon as nobody accepts any
    /// more, from what has to stay until the daemon ends.
    #[must_use]
    pub fn into_parts(self) -> (Vec<UnixListener>, SocketHold) {
        (self.listeners, self.hold)
    }
}

fn check_length(path: &Path) -> Result<(), ListenError> {
    let bytes = path.as_os_str().len();
    if bytes > MAX_SOCKET_PATH_BYTES {
        return Err(ListenError::PathTooLong {
            path: path.to_owned(),
            bytes,
        });
    }
    Ok(())
}

/// Creates the directory for us alone; one that exists has to be safe from others as it is, because it may be shared
/// on purpose and is not ours to change.
fn prepare_directory(directory: &Path) -> Result<(), ListenError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|source| ListenError::io("create the directory", directory, source))?;
    let meta =
        fs::metadata(directory).map_err(|source| ListenError::io("look at", directory, source))?;
    let own = rustix::process::geteuid().as_raw();
    if meta.uid() != own && meta.uid() != 0 {
        return Err(ListenError::ForeignOwner {
            path: directory.to_owned(),
            owner: meta.uid(),
            own,
        });
    }
    let others_may_write = meta.mode() & 0o022 != 0;
    let sticky = meta.mode() & 0o1000 != 0;
    if others_may_write && !sticky {
        return Err(ListenError::OpenDirectory {
            path: directory.to_owned(),
            mode: meta.mode() & 0o7777,
        });
    }
    Ok(())
}

/// Unlinks a socket that nobody listens on. Anything else at the path stays and is an error.
fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(ListenError::io("look at", path, source)),
    };
    let own = rustix::process::geteuid().as_raw();
    if meta.file_type().is_symlink() {
        return Err(ListenError::Symlink(path.to_owned()));
    }
    if !meta.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    if meta.uid() != own {
        return Err(ListenError::ForeignOwner {
            path: path.to_owned(),
            owner: meta.uid(),
            own,
        });
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ListenError::InUse(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            tracing::info!(socket = %path.display(), "removing a stale socket");
            fs::remove_file(path)
                .map_err(|source| ListenError::io("remove the stale socket", path, source))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ListenError::io("probe", path, source)),
    }
}
