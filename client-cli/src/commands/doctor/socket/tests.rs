//! Sockets and daemons as they should not be.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use tandem_client::v1::{PairInfo, ReloadStatus};

use super::super::finding::Mark;
use super::*;

fn examine(path: &Path, may_connect: bool) -> Vec<Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(check(path, may_connect))
}

fn mark_of(findings: &[Finding], check: &str) -> Option<Mark> {
    let finding = findings.iter().find(|finding| finding.check == check)?;
    Some(finding.mark)
}

#[test]
fn no_socket_is_no_fault() {
    let home = tempfile::tempdir().unwrap();
    let findings = examine(&home.path().join("run/tandem.sock"), true);
    assert!(
        findings.iter().all(|finding| finding.mark == Mark::Ok),
        "{findings:?}"
    );
    assert!(!home.path().join("run").exists());
}

#[test]
fn a_socket_left_behind_is_a_warning_and_stays() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tandem.sock");
    drop(UnixListener::bind(&path).unwrap());
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let findings = examine(&path, true);
    assert_eq!(mark_of(&findings, "daemon"), Some(Mark::Warning));
    assert_eq!(mark_of(&findings, "permissions"), None);
    assert!(path.exists());
}

#[test]
fn a_socket_for_everybody_is_a_warning() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tandem.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let findings = examine(&path, false);
    assert_eq!(mark_of(&findings, "permissions"), Some(Mark::Warning));
}

#[test]
fn where_the_system_listens_no_connection_is_made() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tandem.sock");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let findings = examine(&path, false);
    assert_eq!(mark_of(&findings, "daemon"), Some(Mark::Skipped));
    assert!(listener.accept().is_err(), "somebody connected");
}

#[test]
fn something_else_at_the_path_fails() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tandem.sock");
    fs::write(&path, "in the way").unwrap();
    assert_eq!(mark_of(&examine(&path, true), "file"), Some(Mark::Failed));
}

#[test]
fn a_directory_that_others_may_write_fails_with_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o777)).unwrap();
    let finding = directory(home.path());
    assert_eq!(finding.mark, Mark::Failed);
    assert!(finding.advice.unwrap().contains("chmod 700"));
    fs::set_permissions(home.path(), Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(directory(home.path()).mark, Mark::Ok, "as /tmp is");
}

#[test]
fn another_version_is_a_warning() {
    let mut status = StatusResponse {
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..StatusResponse::default()
    };
    assert_eq!(version(&status).mark, Mark::Ok);
    status.server_version = "0.0.9".to_owned();
    let finding = version(&status);
    assert_eq!(finding.mark, Mark::Warning);
    assert!(finding.message.contains("0.0.9") && finding.advice.is_some());
}

#[test]
fn what_a_daemon_suffers_from_is_told() {
    let status = StatusResponse::default();
    assert_eq!(trouble(&status), []);
    assert_eq!(answers(Health::NotServing, &status).mark, Mark::Warning);
    let status = StatusResponse {
        hanging: "a step".to_owned(),
        reload: Some(ReloadStatus {
            error: "no".to_owned(),
            ..ReloadStatus::default()
        }),
        ..status
    };
    let marks: Vec<Mark> = trouble(&status)
        .iter()
        .map(|finding| finding.mark)
        .collect();
    assert_eq!(marks, [Mark::Failed, Mark::Warning]);
    let mut failed = PairStatus {
        info: Some(PairInfo {
            name: "x".to_owned(),
            ..PairInfo::default()
        }),
        ..PairStatus::default()
    };
    assert_eq!(pair(&failed).mark, Mark::Ok);
    failed.info.as_mut().unwrap().error = "the file is gone".to_owned();
    let finding = pair(&failed);
    assert_eq!(finding.mark, Mark::Warning);
    assert!(finding.message.contains("the file is gone"));
}
