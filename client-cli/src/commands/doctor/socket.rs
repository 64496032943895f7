//! The socket: where it is, who could get at it, and what answers there.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tandem_client::v1::{PairStatus, Residency, StatusResponse};
use tandem_client::{Client, Health, Retry};

use super::finding::Finding;
use crate::json::enum_name;
use crate::summary::bytes;

const SECTION: &str = "socket";
/// Longest path that every system takes, in bytes.
const LONGEST: usize = 103;
/// How long the daemon may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checks the socket at `path`, and the daemon behind it. A connection may start a daemon; then none is made.
pub(super) async fn check(path: &Path, may_connect: bool) -> Vec<Finding> {
    let mut findings = vec![length(path), directory(path.parent().unwrap_or(path))];
    let is_there = match file(path) {
        Ok(None) => {
            findings.push(Finding::ok(
                SECTION,
                "daemon",
                "none runs: there is no socket",
            ));
            return findings;
        }
        Ok(Some(meta)) => meta,
        Err(finding) => {
            findings.push(finding);
            return findings;
        }
    };
    findings.extend(permissions(&is_there));
    if !may_connect {
        let message = "the system listens for it; a connection would start it";
        findings.push(Finding::skipped(SECTION, "daemon", message));
        return findings;
    }
    if let Some(finding) = nobody(path) {
        findings.push(finding);
        return findings;
    }
    findings.extend(daemon(path).await);
    findings
}

fn length(path: &Path) -> Finding {
    let length = path.as_os_str().len();
    let seen = format!("{}, {length} of {LONGEST} bytes", path.display());
    Finding::ok(SECTION, "path", seen)
        .value("path", path.display().to_string())
        .value("path_bytes", length)
}

/// As the daemon judges it before it binds.
fn directory(directory: &Path) -> Finding {
    let shown = directory.display();
    let check = "directory";
    let meta = match fs::metadata(directory) {
        Ok(meta) => meta,
        Err(problem) if problem.kind() == ErrorKind::NotFound => {
            return Finding::ok(SECTION, check, format!("{shown} is made by the daemon"));
        }
        Err(problem) => {
            return Finding::failed(SECTION, check, format!("cannot look at {shown}: {problem}"))
                .advise("give it back to your user, or set TANDEM_SOCKET to a path elsewhere");
        }
    };
    let (mode, own) = (meta.mode() & 0o7777, rustix::process::geteuid().as_raw());
    let finding = if meta.uid() != own && meta.uid() != 0 {
        let owner = meta.uid();
        let message = format!("{shown} belongs to user {owner}, and this is user {own}");
        Finding::failed(SECTION, check, message)
            .advise("give it back to your user, or set TANDEM_SOCKET to a path elsewhere")
    } else if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        let message = format!("others may write to {shown} (mode {mode:04o})");
        Finding::failed(SECTION, check, message).advise(format!("run `chmod 700 {shown}`"))
    } else {
        Finding::ok(SECTION, check, format!("{shown}, mode {mode:04o}"))
    };
    finding.value("mode", format!("{mode:04o}"))
}

/// Returns what lies at the path, where that is a socket.
fn file(path: &Path) -> Result<Option<Metadata>, Finding> {
    let failed = |message: String| {
        Finding::failed(SECTION, "file", message)
            .advise("move it away, or set TANDEM_SOCKET to a path elsewhere")
    };
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => Ok(Some(meta)),
        Ok(_) => Err(failed(format!("{} is not a socket", path.display()))),
        Err(problem) if problem.kind() == ErrorKind::NotFound => Ok(None),
        Err(problem) => Err(failed(format!(
            "cannot look at {}: {problem}",
            path.display()
        ))),
    }
}

/// Says so where others could connect; the daemon refuses them, but need not have to.
fn permissions(meta: &Metadata) -> Option<Finding> {
    let mode = meta.mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        let message = format!("mode {mode:04o}: others may try to connect");
        Finding::warning(SECTION, "permissions", message)
            .advise("the daemon refuses other users; restart it to have the mode 0600 again")
    })
}

/// Says so where nobody listens.
fn nobody(path: &Path) -> Option<Finding> {
    let problem = UnixStream::connect(path).err()?;
    Some(match problem.kind() {
        ErrorKind::ConnectionRefused => Finding::warning(
            SECTION,
            "daemon",
            "none runs; the socket was left behind by one that did not end by itself",
        )
        .advise("nothing has to be done: the next daemon replaces it"),
        ErrorKind::NotFound => Finding::ok(SECTION, "daemon", "none runs"),
        _ => Finding::failed(SECTION, "daemon", format!("cannot connect: {problem}"))
            .advise("give the socket back to your user, or set TANDEM_SOCKET to a path elsewhere"),
    })
}

async fn daemon(path: &Path) -> Vec<Finding> {
    let asked = async {
        let client = Client::new(path)?.with_retry(Retry::never());
        let health = client.health().await?;
        Ok::<_, tandem_client::Error>((health, client.status().await?))
    };
    let advice = "`tandem daemon logs` or `tandem service logs` may say why; `tandem daemon restart` starts a new one";
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok((health, status))) => {
            let mut findings = vec![answers(health, &status), version(&status)];
            findings.extend(trouble(&status));
            findings.extend(status.pairs.iter().map(pair));
            findings
        }
        Ok(Err(problem)) => {
            vec![Finding::failed(SECTION, "daemon", problem.to_string()).advise(advice)]
        }
        Err(_) => {
            let limit = PATIENCE.as_secs();
            let message = format!("something listens, but says nothing within {limit} s");
            vec![Finding::failed(SECTION, "daemon", message).advise(advice)]
        }
    }
}

fn answers(health: Health, status: &StatusResponse) -> Finding {
    let state = match health {
        Health::Serving => "serves",
        Health::NotServing => "does not serve yet",
    };
    let memory = status.memory.unwrap_or_default();
    let seen = format!(
        "process {} {state}, on {}; {} of {} budget",
        status.pid,
        status.backend,
        bytes(memory.footprint),
        bytes(memory.budget)
    );
    let finding = match health {
        Health::Serving => Finding::ok(SECTION, "daemon", seen),
        Health::NotServing => Finding::warning(SECTION, "daemon", seen)
            .advise("it loads its models, or could not; `tandem status` shows which"),
    };
    finding
        .value("pid", status.pid)
        .value("footprint_bytes", memory.footprint)
        .value("budget_bytes", memory.budget)
}

fn version(status: &StatusResponse) -> Finding {
    let (theirs, ours) = (&status.server_version, env!("CARGO_PKG_VERSION"));
    let finding = if theirs == ours {
        Finding::ok(
            SECTION,
            "version",
            format!("the daemon is {theirs}, as this is"),
        )
    } else {
        let message = format!("the daemon is {theirs}, and this is {ours}");
        Finding::warning(SECTION, "version", message)
            .advise("run `tandem daemon restart`, or `tandem service restart`, to have the new one")
    };
    finding.value("server_version", theirs.as_str())
}

fn trouble(status: &StatusResponse) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !status.hanging.is_empty() {
        let message = format!("hangs: {}", status.hanging);
        findings.push(
            Finding::failed(SECTION, "engine", message)
                .advise("run `tandem daemon restart`, and report this page"),
        );
    }
    let reload = status.reload.as_ref().map(|reload| reload.error.as_str());
    if let Some(error) = reload.filter(|error| !error.is_empty()) {
        findings.push(
            Finding::warning(SECTION, "reload", format!("the last one failed: {error}"))
                .advise("correct the configuration; the daemon goes on with what it had"),
        );
    }
    findings
}

fn pair(status: &PairStatus) -> Finding {
    let info = status.info.clone().unwrap_or_default();
    let state = enum_name(info.residency().as_str_name(), "RESIDENCY_");
    let check = format!("pair {}", info.name);
    let why_plain = &info.speculation_off_reason;
    let finding = if info.error.is_empty() {
        let seen = match info.residency() == Residency::Warm && !why_plain.is_empty() {
            true => format!("{state}, decodes plainly: {why_plain}"),
            false => state.clone(),
        };
        Finding::ok(SECTION, &check, seen)
    } else {
        Finding::warning(SECTION, &check, format!("{state}: {}", info.error))
            .advise("what the configuration section above says about it; then `tandem reload`")
    };
    finding.value("residency", state)
}

#[cfg(test)]
mod tests;
