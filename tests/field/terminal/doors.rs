//! Whose daemon a command talks to.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::said;
use crate::default_daemon;

#[tokio::test]
async fn a_socket_that_others_could_replace_is_not_taken() {
    let daemon = default_daemon().await;
    let run = ["run", "--max-tokens", "1", "hi"];
    let shared = daemon.home().path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
    let link = shared.join("s");
    symlink(daemon.home().socket(), &link).unwrap();

    let mut command = daemon.tandem(&run);
    let output = command.env("TANDEM_SOCKET", &link).output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    let said = said(&output);
    assert!(
        said.contains("others may write") && said.contains("shared"),
        "{said}"
    );
    assert!(
        !said.contains("daemon start"),
        "a daemon would not help: {said}"
    );

    // A link of ours in a place of ours is a way like another.
    set_permissions(&shared, Permissions::from_mode(0o700)).unwrap();
    let mut command = daemon.tandem(&run);
    let output = command.env("TANDEM_SOCKET", &link).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
