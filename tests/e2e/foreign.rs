//! Another user of the machine is refused by the daemon itself, whatever the file permissions say.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use hyper_util::rt::TokioIo;
use rustix::thread::{Uid, set_thread_res_uid};
use tandem_tests::grpc::{Client, generate, request};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_types::StatusExt as _;

use crate::default_daemon;

/// The user "nobody" on Linux.
const NOBODY: u32 = 65_534;

/// Connects as another user. Linux keeps users per thread, and a socket's peer is who connected it, so one thread gives
/// up its rights, connects, and hands the connection over.
fn connect_as_nobody(socket: &Path) -> std::io::Result<UnixStream> {
    let socket = socket.to_owned();
    let connecting = std::thread::spawn(move || {
        let nobody = Uid::from_raw(NOBODY);
        set_thread_res_uid(nobody, nobody, nobody)?;
        UnixStream::connect(socket)
    });
    connecting.join().expect("connecting does not panic")
}

async fn channel_over(stream: UnixStream) -> Channel {
    stream.set_nonblocking(true).unwrap();
    let mut stream = Some(TokioIo::new(
        tokio::net::UnixStream::from_std(stream).unwrap(),
    ));
    let connector = tower::service_fn(move |_| {
        let stream = stream
            .take()
            .ok_or_else(|| std::io::Error::other("there is one connection only"));
        async move { stream }
    });
    Endpoint::from_static("http://localhost")
        .connect_with_connector(connector)
        .await
        .unwrap()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn nobody_else_gets_at_the_socket() {
    let daemon = default_daemon().await;
    let socket = daemon.home().socket();
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
}

#[tokio::test]
#[ignore = "needs root, who alone can become somebody else; `.ci/run root` runs it"]
async fn another_user_is_refused() {
    assert!(rustix::process::geteuid().is_root(), "this needs root");
    let daemon = default_daemon().await;
    let socket = daemon.home().socket();
    let denied = connect_as_nobody(&socket).expect_err("the directory keeps others out");
    assert_eq!(denied.kind(), std::io::ErrorKind::PermissionDenied);

    for directory in socket
        .ancestors()
        .skip(1)
        .take_while(|path| path.starts_with(daemon.home().path()))
    {
        set_permissions(directory, Permissions::from_mode(0o711)).unwrap();
    }
    set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
    refuses_others(&socket).await;
    generate(&mut daemon.client().await, request("Hello", 2))
        .await
        .expect("its own user is served");
}

/// Checks that the daemon behind a socket that is open to all refuses another user, and says why.
pub(crate) async fn refuses_others(socket: &Path) {
    let mut foreign = Client::new(channel_over(connect_as_nobody(socket).unwrap()).await);
    let status = generate(&mut foreign, request("Hello", 2))
        .await
        .expect_err("the daemon keeps others out");
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    assert_eq!(
        status.get_details_error_info().unwrap().reason,
        "FOREIGN_USER"
    );
}
