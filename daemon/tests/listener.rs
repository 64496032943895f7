//! The rules of the socket, on a real file system.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
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
fn a_foreign_owner_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
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
