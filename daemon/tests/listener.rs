//! The rules of the socket, on a real file system.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use tandem_daemon::listener::{ListenError, Listener};
use tempfile::TempDir;

fn directory() -> TempDir {
    tempfile::Builder::new()
        .prefix("tl")
        .tempdir()
        .expect("a directory")
}

fn bind(socket: &Path) -> Result<Listener, ListenError> {
    Listener::bind(socket, &socket.with_extension("lock"))
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("exists").mode() & 0o777
}

#[test]
fn only_the_user_can_reach_it() {
    let base = directory();
    let socket = base.path().join("new/run/tandem.sock");
    let listener = bind(&socket).expect("bound");
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(&base.path().join("new/run")), 0o700);
    assert_eq!(mode(&base.path().join("new")), 0o700);
    assert_eq!(mode(&socket.with_extension("lock")), 0o600);
    UnixStream::connect(&socket).expect("accepts");
    drop(listener);
    assert!(!socket.exists(), "removed on a clean end");
}

#[test]
fn a_second_daemon_is_told_who_holds_the_lock() {
    let base = directory();
    let socket = base.path().join("s");
    let first = bind(&socket).expect("bound");
    let error = bind(&socket).expect_err("locked");
    assert!(matches!(error, ListenError::AlreadyRunning { .. }));
    assert!(
        error
            .to_string()
            .contains(&format!("pid {}", std::process::id())),
        "{error}"
    );
    UnixStream::connect(&socket).expect("the first still accepts");
    drop(first);
    bind(&socket).expect("free again");
}

#[test]
fn a_stale_socket_is_replaced() {
    let base = directory();
    let socket = base.path().join("s");
    drop(UnixListener::bind(&socket).expect("bound"));
    assert!(socket.exists());
    let listener = bind(&socket).expect("replaced");
    UnixStream::connect(listener.path()).expect("accepts");
}

#[test]
fn a_socket_that_answers_is_left_alone() {
    let base = directory();
    let socket = base.path().join("s");
    let _other = UnixListener::bind(&socket).expect("bound");
    assert!(matches!(bind(&socket), Err(ListenError::InUse(_))));
    UnixStream::connect(&socket).expect("still there");
}

#[test]
fn links_and_files_are_left_alone() {
    let base = directory();
    let file = base.path().join("file");
    fs::write(&file, "precious").expect("written");
    assert!(matches!(bind(&file), Err(ListenError::NotASocket(_))));
    let link = base.path().join("link");
    symlink(&file, &link).expect("linked");
    assert!(matches!(bind(&link), Err(ListenError::Symlink(_))));
    let dangling = base.path().join("dangling");
    symlink(base.path().join("nowhere"), &dangling).expect("linked");
    assert!(matches!(bind(&dangling), Err(ListenError::Symlink(_))));
    assert_eq!(fs::read_to_string(&file).expect("readable"), "precious");
}

#[test]
fn a_lock_file_that_is_a_link_is_not_followed() {
    let base = directory();
    let file = base.path().join("file");
    fs::write(&file, "precious").expect("written");
    symlink(&file, base.path().join("s.lock")).expect("linked");
    assert!(matches!(
        bind(&base.path().join("s")),
        Err(ListenError::Io { .. })
    ));
    assert_eq!(fs::read_to_string(&file).expect("readable"), "precious");
}

#[test]
fn a_path_that_does_not_fit_is_named() {
    let long = PathBuf::from(format!("/tmp/{}", "x".repeat(99)));
    let error = bind(&long).expect_err("too long").to_string();
    assert!(
        error.contains("104 bytes") && error.contains("103") && error.contains("xxx"),
        "{error}"
    );
    assert!(matches!(
        bind(Path::new("relative.sock")),
        Err(ListenError::NotAbsolute(_))
    ));
}

#[test]
fn a_directory_that_others_may_write_to_is_refused() {
    let base = directory();
    let open = base.path().join("open");
    fs::create_dir(&open).expect("made");
    fs::set_permissions(&open, Permissions::from_mode(0o777)).expect("set");
    let error = bind(&open.join("s")).expect_err("open").to_string();
    assert!(
        error.contains("0777") && error.contains("chmod 700"),
        "{error}"
    );
    fs::set_permissions(&open, Permissions::from_mode(0o1777)).expect("set");
    bind(&open.join("s")).expect("sticky, like /tmp");
}

#[test]
fn a_socket_that_was_replaced_is_not_removed() {
    let base = directory();
    let socket = base.path().join("s");
    let listener = bind(&socket).expect("bound");
    fs::rename(&socket, base.path().join("ours")).expect("moved");
    let _theirs = UnixListener::bind(&socket).expect("bound");
    drop(listener);
    assert!(socket.exists(), "somebody else's");
}

#[test]
#[ignore = "needs root, who alone can give files away; `.ci/run root` runs it"]
fn a_foreign_owner_is_refused() {
    assert!(rustix::process::geteuid().is_root(), "this needs root");
    let base = directory();
    let socket = base.path().join("s");
    drop(UnixListener::bind(&socket).expect("bound"));
    std::os::unix::fs::chown(&socket, Some(65534), None).expect("root may");
    assert!(matches!(
        bind(&socket),
        Err(ListenError::ForeignOwner { owner: 65534, .. })
    ));
    let foreign = base.path().join("d");
    fs::create_dir(&foreign).expect("made");
    std::os::unix::fs::chown(&foreign, Some(65534), None).expect("root may");
    assert!(matches!(
        bind(&foreign.join("s")),
        Err(ListenError::ForeignOwner { .. })
    ));
}

fn adopt(sockets: Vec<OwnedFd>) -> Result<Listener, ListenError> {
    Listener::adopt(sockets, |path| path.with_extension("lock"))
}

#[test]
fn an_inherited_socket_is_served_and_left_in_place() {
    let base = directory();
    let paths = ["a", "b"].map(|name| base.path().join(name));
    let sockets = paths
        .iter()
        .map(|path| UnixListener::bind(path).expect("bound").into())
        .collect();
    let listener = adopt(sockets).expect("adopted");
    assert_eq!(listener.path(), paths[0]);
    let error = adopt(vec![listening(&base.path().join("c"))]).map(|other| other.path().to_owned());
    assert!(error.is_ok(), "another socket has another lock: {error:?}");
    let (listeners, hold) = listener.into_parts();
    assert_eq!(listeners.len(), 2);
    for path in &paths {
        UnixStream::connect(path).expect("accepts");
    }
    assert!(
        matches!(bind(&paths[0]), Err(ListenError::AlreadyRunning { .. })),
        "a daemon started by hand finds the lock taken"
    );
    drop((listeners, hold));
    for path in &paths {
        assert!(path.exists(), "{} is its maker's", path.display());
    }
}

#[test]
fn what_is_inherited_has_to_be_a_listening_unix_socket() {
    let base = directory();
    let path = base.path().join("s");
    let why = |socket: OwnedFd| match adopt(vec![socket]) {
        Err(error @ ListenError::Inherited { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let file = fs::File::create(base.path().join("f")).expect("made");
    assert!(why(file.into()).contains("not a socket"));
    let datagram = UnixDatagram::bind(base.path().join("d")).expect("bound");
    assert!(why(datagram.into()).contains("not a stream socket"));
    let tcp = TcpListener::bind("127.0.0.1:0").expect("bound");
    assert!(why(tcp.into()).contains("not a Unix socket"));
    let (connected, _other) = UnixStream::pair().expect("a pair");
    #[cfg(target_os = "linux")]
    assert!(why(connected.into()).contains("listen(2)"));
    #[cfg(not(target_os = "linux"))]
    drop(connected);

    assert!(matches!(adopt(vec![]), Err(ListenError::InheritedNoPath)));
    drop(adopt(vec![listening(&path)]).expect("adopted"));
    let held = bind(&base.path().join("other")).expect("bound");
    let second = Listener::adopt(vec![listening(&base.path().join("t"))], |_| {
        base.path().join("other.lock")
    });
    assert!(matches!(second, Err(ListenError::AlreadyRunning { .. })));
    drop(held);
}

fn listening(path: &Path) -> OwnedFd {
    UnixListener::bind(path).expect("bound").into()
}
