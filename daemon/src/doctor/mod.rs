//! What `tandem doctor` finds out on the daemon's side: the machine, its devices and kernels, memory readings, the
//! configuration and its models. One file per check.
//!
//! Owns what is looked at and what it means. It looks only: it starts nothing, talks to no daemon, and leaves nothing
//! behind. Must not know how findings are shown; the socket and the service are the command line's to check.

mod bandwidth;
mod build;
mod configuration;
mod devices;
mod finding;
mod kernels;
mod machine;
mod memory;
mod pairs;
mod prepared;

use tandem_proto::paths::Paths;
use tempfile::TempDir;

use crate::cores;
use crate::platform::Platform;

pub use finding::{Finding, Mark};
use finding::{error, of};

/// Runs every check, which takes seconds. Without `paths`, what depends on them is left out.
#[must_use]
pub fn examine(paths: Option<&Paths>, platform: &dyn Platform) -> Vec<Finding> {
    let threads = cores(platform);
    let mut findings = build::check();
    findings.extend(machine::check(platform, threads));
    match TempDir::with_prefix("tandem-doctor-") {
        Ok(scratch) => {
            findings.extend(devices::check(scratch.path(), threads));
            findings.extend(kernels::check());
            findings.extend(memory::check(platform));
            if let Some(paths) = paths {
                findings.push(prepared::check(&paths.prepared_dir()));
                findings.extend(configuration::check(
                    paths,
                    platform,
                    scratch.path(),
                    threads,
                ));
            }
        }
        Err(problem) => findings.push(
            of("machine", "temporary files")
                .failed(format!("no directory for them can be made: {problem}"))
                .advise("make room there, or set TMPDIR to a directory that can be written"),
        ),
    }
    findings
}
