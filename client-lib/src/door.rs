//! The way to the daemon: whose socket it is, who could have put it there, and who answers.
//!
//! Prompts go through it, so a socket of another user is none, wherever a variable or a link leads. The path is judged before the
//! connection, and the process behind it after, since the path may change in between; both before a byte is sent.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::Uri;

/// Why a socket is not used, although it may be there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UntrustedSocket {
    /// The socket, its directory or a link to it belongs to somebody else.
    #[error(
        "`{}` belongs to {}, and this is {}: a daemon serves its own user only; {ADVICE}",
        path.display(), user(*owner), user(*own)
    )]
    ForeignOwner {
        /// What belongs to somebody else.
        path: PathBuf,
        /// The number of that user.
        owner: u32,
        /// Our own.
        own: u32,
    },
    /// Others could replace the socket by one of theirs.
    #[error(
        "others may write to `{}` (mode {mode:04o}), and so put a socket of theirs there; run `chmod go-w` on it, or set \
         TANDEM_SOCKET to a path elsewhere",
        path.display()
    )]
    OpenDirectory {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The process that listens is somebody else's.
    #[error(
        "what listens on `{}` is a process of {}, and this is {}; {ADVICE}",
        socket.display(), user(*owner), user(*own)
    )]
    ForeignPeer {
        /// The socket.
        socket: PathBuf,
        /// The number of that user.
        owner: u32,
        /// Our own.
        own: u32,
    },
    /// The system lets us not get at our own socket.
    #[error(
        "`{}` is in the way to `{}`: its mode {mode:04o} keeps this user out; run `chmod u+rwX` on it",
        path.display(), socket.display()
    )]
    Closed {
        /// The socket.
        socket: PathBuf,
        /// What keeps us out.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
}

const ADVICE: &str = "TANDEM_SOCKET, TANDEM_HOME, XDG_RUNTIME_DIR or HOME leads there, and has to lead to a place of this user";

/// Whom we trust: ourselves, and root, which could read our memory anyway.
#[derive(Clone, Copy, Debug)]
struct Trust {
    own: u32,
    root: u32,
}

impl Trust {
    fn here() -> Self {
        Self {
            own: rustix::process::geteuid().as_raw(),
            root: 0,
        }
    }

    fn covers(self, uid: u32) -> bool {
        uid == self.own || uid == self.root
    }

    /// Judges what lies at a path and who could put something else there, with what it links to.
    fn path(self, socket: &Path) -> Result<(), Refusal> {
        let meta = fs::symlink_metadata(socket)?;
        self.place(socket, &meta)?;
        if meta.is_symlink() {
            let real = fs::canonicalize(socket)?;
            self.place(&real, &fs::symlink_metadata(&real)?)?;
        }
        Ok(())
    }

    fn place(self, path: &Path, meta: &Metadata) -> Result<(), Refusal> {
        self.owner(path, meta)?;
        let directory = path.parent().unwrap_or(path);
        let meta = fs::metadata(directory)?;
        self.owner(directory, &meta)?;
        let (others_may_write, sticky) = (meta.mode() & 0o022 != 0, meta.mode() & 0o1000 != 0);
        if others_may_write && !sticky {
            return Err(Refusal::Untrusted(UntrustedSocket::OpenDirectory {
                path: directory.to_owned(),
                mode: meta.mode() & 0o7777,
            }));
        }
        Ok(())
    }

    fn owner(self, path: &Path, meta: &Metadata) -> Result<(), UntrustedSocket> {
        if self.covers(meta.uid()) {
            return Ok(());
        }
        Err(UntrustedSocket::ForeignOwner {
            path: path.to_owned(),
            owner: meta.uid(),
            own: self.own,
        })
    }

    fn peer(self, socket: &Path, stream: &UnixStream) -> Result<(), Refusal> {
        let owner = stream.peer_cred()?.uid();
        if self.covers(owner) {
            return Ok(());
        }
        Err(Refusal::Untrusted(UntrustedSocket::ForeignPeer {
            socket: socket.to_owned(),
            owner,
            own: self.own,
        }))
    }

    /// Finds what kept us out: the first thing on the way that is not ours, or that is closed to us.
    fn closed(self, socket: &Path) -> Option<UntrustedSocket> {
        let reached = socket
            .ancestors()
            .find_map(|path| Some((path, fs::symlink_metadata(path).ok()?)));
        let (path, meta) = reached?;
        // What root has closed is not for this user to open.
        if meta.uid() != self.own {
            return Some(UntrustedSocket::ForeignOwner {
                path: path.to_owned(),
                owner: meta.uid(),
                own: self.own,
            });
        }
        let ours = meta.file_type().is_socket() || meta.is_dir();
        ours.then(|| UntrustedSocket::Closed {
            socket: socket.to_owned(),
            path: path.to_owned(),
            mode: meta.mode() & 0o7777,
        })
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Untrusted(#[from] UntrustedSocket),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Refusal {
    fn boxed(self) -> Box<dyn std::error::Error + Send + Sync> {
        match self {
            Self::Untrusted(error) => error.into(),
            Self::Io(error) => error.into(),
        }
    }
}

/// Connects to a socket that is ours, or root's.
async fn connect(socket: &Path, trust: Trust) -> Result<UnixStream, Refusal> {
    let attempt = async {
        trust.path(socket)?;
        let stream = UnixStream::connect(socket).await?;
        trust.peer(socket, &stream)?;
        Ok(stream)
    };
    match attempt.await {
        Err(Refusal::Io(error)) if error.kind() == ErrorKind::PermissionDenied => Err(trust
            .closed(socket)
            .map_or(Refusal::Io(error), Refusal::from)),
        result => result,
    }
}

/// Returns what a channel connects by.
pub(crate) fn connector(
    socket: Arc<Path>,
) -> impl tower::Service<
    Uri,
    Response = TokioIo<UnixStream>,
    Error = Box<dyn std::error::Error + Send + Sync>,
    Future: Send,
> + Send
+ 'static {
    tower::service_fn(move |_: Uri| {
        let socket = socket.clone();
        async move {
            let stream = connect(&socket, Trust::here()).await;
            stream.map(TokioIo::new).map_err(Refusal::boxed)
        }
    })
}

/// Names a user for people, where this machine's list has the name.
fn user(uid: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    });
    match name {
        Some(name) => format!("{name} (user {uid})"),
        None => format!("user {uid}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use tempfile::TempDir;

    use super::*;

    /// Trust of a user that owns nothing here, whoever runs this.
    fn stranger() -> Trust {
        let own = Trust::here().own;
        Trust {
            own: own + 1,
            root: own + 2,
        }
    }

    /// A socket that we listen on, in a directory of its own.
    fn socket() -> (TempDir, PathBuf, UnixListener) {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path).expect("a socket can be bound");
        (directory, path, listener)
    }

    fn refused(result: Result<UnixStream, Refusal>) -> UntrustedSocket {
        match result {
            Err(Refusal::Untrusted(error)) => error,
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[tokio::test]
    async fn our_own_socket_is_taken_and_a_strangers_is_not() {
        let (_directory, path, listener) = socket();
        connect(&path, Trust::here()).await.expect("it is ours");
        let _ours = listener.accept().expect("one connection was made");

        let error = refused(connect(&path, stranger()).await);
        let own = Trust::here().own;
        assert!(
            matches!(&error, UntrustedSocket::ForeignOwner { owner, .. } if *owner == own),
            "{error:?}"
        );
        let said = error.to_string();
        assert!(
            said.contains(&format!("user {own}")) && said.contains("TANDEM_SOCKET"),
            "{said}"
        );
        listener.set_nonblocking(true).expect("it can be changed");
        let none = listener.accept().expect_err("nothing was sent to it");
        assert_eq!(none.kind(), ErrorKind::WouldBlock);
    }

    #[tokio::test]
    async fn who_listens_is_asked_of_the_system_too() {
        let (one, _other) = UnixStream::pair().expect("a pair can be made");
        assert!(Trust::here().peer(Path::new("/s"), &one).is_ok());
        match stranger().peer(Path::new("/s"), &one) {
            Err(Refusal::Untrusted(UntrustedSocket::ForeignPeer { owner, .. })) => {
                assert_eq!(owner, Trust::here().own);
            }
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[tokio::test]
    async fn a_directory_that_others_write_to_is_refused_unless_it_is_sticky() {
        let (directory, path, _listener) = socket();
        let mode = |mode| {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode))
                .expect("it is ours");
        };
        for open in [0o777, 0o770, 0o722] {
            mode(open);
            let error = refused(connect(&path, Trust::here()).await);
            assert!(matches!(error, UntrustedSocket::OpenDirectory { mode, .. } if mode == open));
        }
        mode(0o1777);
        connect(&path, Trust::here())
            .await
            .expect("sticky: others cannot replace it");
    }

    #[tokio::test]
    async fn a_link_is_judged_by_itself_and_by_what_it_leads_to() {
        let (directory, path, _listener) = socket();
        let (elsewhere, link) = (tempfile::tempdir().expect("a directory"), "link");
        let link = elsewhere.path().join(link);
        symlink(&path, &link).expect("a link can be made");
        connect(&link, Trust::here()).await.expect("both are ours");
        let error = refused(connect(&link, stranger()).await);
        assert!(matches!(&error, UntrustedSocket::ForeignOwner { path, .. } if *path == link));
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("ours");
        let error = refused(connect(&link, Trust::here()).await);
        assert!(
            matches!(error, UntrustedSocket::OpenDirectory { .. }),
            "{error:?}"
        );
    }

    /// Where the system says no, it does not say why.
    #[test]
    fn what_keeps_us_out_is_found_on_the_way() {
        let (directory, path, _listener) = socket();
        let missing = directory.path().join("none/tandem.sock");
        for socket in [&path, &missing] {
            let foreign = stranger().closed(socket).expect("something is there");
            assert!(
                matches!(foreign, UntrustedSocket::ForeignOwner { .. }),
                "{foreign}"
            );
            let ours = Trust::here().closed(socket).expect("something is there");
            assert!(ours.to_string().contains("chmod"), "{ours}");
        }
    }

    #[tokio::test]
    async fn what_is_not_there_is_an_ordinary_error() {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let missing = connect(&directory.path().join("s"), Trust::here()).await;
        assert!(matches!(missing, Err(Refusal::Io(error)) if error.kind() == ErrorKind::NotFound));
    }
}
