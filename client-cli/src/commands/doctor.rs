//! `tandem doctor`: whether Tandem can work here, on one page that can be sent to somebody else.
//!
//! The daemon's crate checks machine, devices, kernels, memory and configuration; here are socket and service, which a
//! client can look at too. Nothing is started, stopped or kept.

mod finding;
mod page;
mod service;
mod socket;

use clap::Args;
use serde_json::json;
use tandem_client::{Paths, PathsError, launch};

use crate::failure::Failure;
use crate::output::Output;
use finding::{Finding, Mark};
use page::Home;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let paths = Paths::from_env();
    let mut findings = daemon_side(paths.as_ref().ok());
    match &paths {
        Ok(paths) => {
            let (service, may_connect) = service::check(paths);
            findings.extend(socket::check(&launch::socket(paths), may_connect).await);
            findings.extend(service);
        }
        Err(problem) => findings.push(no_paths(problem)),
    }
    let home = Home::from_env();
    findings
        .iter_mut()
        .for_each(|finding| home.shorten(finding));
    let mut output = Output::new();
    if args.json {
        output.json(&json(&findings))?;
    } else {
        output.text(&page::page(&findings))?;
    }
    match page::count(&findings, Mark::Failed) {
        0 => Ok(()),
        _ => Err(Failure::Unwell),
    }
}

fn json(findings: &[Finding]) -> serde_json::Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "failed": page::count(findings, Mark::Failed),
        "warnings": page::count(findings, Mark::Warning),
        "findings": findings.iter().map(Finding::json).collect::<Vec<_>>(),
    })
}

/// Without its paths, nothing of Tandem's own can be looked at.
fn no_paths(problem: &PathsError) -> Finding {
    Finding::failed("socket", "paths", problem.to_string())
}

#[cfg(feature = "daemon")]
fn daemon_side(paths: Option<&Paths>) -> Vec<Finding> {
    let platform = tandem_daemon::platform::native();
    tandem_daemon::doctor::examine(paths, &*platform)
        .into_iter()
        .map(Finding::from)
        .collect()
}

#[cfg(not(feature = "daemon"))]
fn daemon_side(_: Option<&Paths>) -> Vec<Finding> {
    let version = env!("CARGO_PKG_VERSION");
    let finding = Finding::ok("build", "version", format!("{version}, a client alone"));
    let skipped =
        "machine, devices, kernels, memory and configuration need a build that contains the daemon";
    vec![
        finding.value("version", version),
        Finding::skipped("build", "daemon", skipped),
    ]
}
