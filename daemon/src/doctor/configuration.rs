//! The configuration: that it can be used, and that what it names is there and fits.

use std::num::NonZeroUsize;
use std::path::Path;

use tandem_models::{Store, StoreOptions};
use tandem_proto::paths::Paths;

use super::{Finding, error, of, pairs};
use crate::cli::config_source;
use crate::config::{Config, format_bytes};
use crate::loading::Loader;
use crate::platform::Platform;

pub(super) const SECTION: &str = "configuration";

pub(super) fn check(
    paths: &Paths,
    platform: &dyn Platform,
    scratch: &Path,
    cores: NonZeroUsize,
) -> Vec<Finding> {
    let finding = of(SECTION, "file");
    let loaded = config_source(None, paths).and_then(|source| {
        let config = Config::load(&source.path, source.required)?;
        Ok((source, config))
    });
    let (source, config) = match loaded {
        Ok(loaded) => loaded,
        Err(problem) => {
            return vec![
                finding.failed(error(&problem)).advise(
                    "correct it; a daemon that runs keeps what it has, and none that starts would serve",
                ),
                of(SECTION, "pairs").skipped("the file has to be right first"),
            ];
        }
    };
    let count = match config.pairs.len() {
        1 => "1 pair".to_owned(),
        pairs => format!("{pairs} pairs"),
    };
    let seen = match &config.path {
        Some(path) => format!("{}: valid, {count}", path.display()),
        None => format!(
            "no file at {}; built-in values, {count}",
            source.path.display()
        ),
    };
    let mut findings = vec![finding.ok(seen).value(
        "path",
        config.path.as_ref().map(|path| path.display().to_string()),
    )];
    // What it is without the machine's memory, `memory` has said.
    let physical = platform.physical_memory().unwrap_or(0);
    let budget = config.budget(physical, platform.recommended_working_set());
    findings.push(budget_finding(budget, physical));
    match loader(paths, scratch, cores) {
        Ok(loader) => findings.extend(pairs::check(&config, &loader, budget)),
        Err(problem) => findings.push(of(SECTION, "models").failed(problem)),
    }
    findings
}

fn budget_finding(budget: u64, physical: u64) -> Finding {
    let seen = format!("{} of {}", format_bytes(budget), format_bytes(physical));
    let finding = of(SECTION, "budget");
    let finding = if physical > 0 && budget > physical {
        finding
            .warning(format!("{seen}: more than there is"))
            .advise("the system would swap or end the daemon: lower memory.budget")
    } else {
        finding.ok(seen)
    };
    finding.value("budget_bytes", budget)
}

/// Looks for models as the daemon does, but writes those that come with it to a directory that goes away.
fn loader(paths: &Paths, scratch: &Path, cores: NonZeroUsize) -> Result<Loader, String> {
    let options =
        StoreOptions::from_env(scratch.join("bundled")).map_err(|problem| error(&problem))?;
    Ok(Loader {
        store: Store::new(options),
        prepared_dir: paths.prepared_dir(),
        cores,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Mark;
    use super::*;
    use crate::platform::FakePlatform;

    fn examine(home: &Path) -> Vec<Finding> {
        let scratch = tempfile::tempdir().unwrap();
        let platform = FakePlatform::new(0, 8 << 30);
        check(
            &Paths::under(home),
            &platform,
            scratch.path(),
            NonZeroUsize::MIN,
        )
    }

    fn configured(text: &str) -> Vec<Finding> {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.toml"), text).unwrap();
        examine(home.path())
    }

    #[test]
    fn without_a_file_nothing_is_written() {
        let home = tempfile::tempdir().unwrap();
        let findings = examine(home.path());
        assert_eq!(findings[0].mark, Mark::Ok, "{findings:?}");
        assert!(findings[0].message.starts_with("no file at "));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_bad_file_fails_and_pairs_wait_for_it() {
        let findings = configured("[server]\nmax_queu = 3\n");
        assert_eq!(findings[0].mark, Mark::Failed);
        assert!(findings[0].message.contains("max_queu"), "{findings:?}");
        assert_eq!(findings[1].mark, Mark::Skipped);
    }

    #[test]
    fn a_budget_beyond_the_machine_is_a_warning() {
        let findings = configured("[memory]\nbudget = \"64 GB\"\n");
        assert_eq!(findings[1].mark, Mark::Warning, "{findings:?}");
        assert!(
            findings[1]
                .advice
                .as_ref()
                .unwrap()
                .contains("memory.budget")
        );
    }
}
