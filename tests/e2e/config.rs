//! What a daemon refuses to start with.

use crate::home;

#[tokio::test]
async fn an_unknown_key_in_the_config() {
    let mut daemon = home().config("[server]\nmax_queu = 3").spawn();
    assert_eq!(daemon.exit().await.code(), Some(78), "{}", daemon.log());
    let log = daemon.log();
    for part in ["config.toml:2", "max_queu", "did you mean \"max_queue\""] {
        assert!(log.contains(part), "{part} is missing in {log}");
    }
}

#[tokio::test]
async fn a_socket_path_that_no_system_takes() {
    let home = home();
    let long = home.path().join("x".repeat(120));
    let output = home
        .command()
        .args(["daemon", "run"])
        .env("TANDEM_SOCKET", &long)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        message.contains("103") && message.contains(long.to_str().unwrap()),
        "{message}"
    );
}
