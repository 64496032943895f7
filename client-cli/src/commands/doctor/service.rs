//! The service: what the manager has of it, and whether it runs this very program.

use std::fs;
use std::path::{Path, PathBuf};

use tandem_client::Paths;
use tandem_launchd::{Manager, ServiceError, State};

use super::finding::Finding;
use crate::startup;

const SECTION: &str = "service";

/// Checks the service; says too whether a connection to the socket would start nothing.
pub(super) fn check(paths: &Paths) -> (Vec<Finding>, bool) {
    let asked = tandem_launchd::native().and_then(|manager| {
        // Where it does not run for this user, it is nothing to recommend.
        manager.available()?;
        let state = manager.state()?;
        Ok((manager, state))
    });
    let (manager, state) = match asked {
        Ok(asked) => asked,
        Err(problem) => return (vec![no_state(&problem)], without_manager(&problem)),
    };
    let mut findings = vec![registration(&state)];
    if !state.last_end.is_empty() {
        findings.push(
            Finding::warning(
                SECTION,
                "last end",
                format!("the daemon ended with {}", state.last_end),
            )
            .advise("`tandem service logs` says why"),
        );
    }
    if state.installed {
        findings.push(program(&*manager, paths));
    }
    // The first connection to a socket of the manager's starts the daemon.
    (findings, !state.loaded || state.pid.is_some())
}

fn no_state(problem: &ServiceError) -> Finding {
    let message = problem.to_string().replace('\n', " ");
    if without_manager(problem) {
        let message = format!("{message}; `tandem run` starts the daemon without it");
        return Finding::skipped(SECTION, "registration", message);
    }
    Finding::failed(SECTION, "registration", message)
        .advise("`tandem service install` writes the service's files anew")
}

/// Whether nothing can listen on the daemon's behalf.
fn without_manager(problem: &ServiceError) -> bool {
    matches!(
        problem,
        ServiceError::NoCommand { .. }
            | ServiceError::NoSession { .. }
            | ServiceError::NoDomain { .. }
            | ServiceError::NoHome
    )
}

fn registration(state: &State) -> Finding {
    let finding = match (state.installed, state.loaded, state.pid) {
        (false, false, _) => Finding::ok(
            SECTION,
            "registration",
            "not installed; `tandem run` starts the daemon by itself, and `tandem service install` has the system do it",
        ),
        (false, true, _) => Finding::warning(
            SECTION,
            "registration",
            "the system listens, but the service's files are gone",
        )
        .advise("`tandem service install` writes them"),
        (true, false, _) => Finding::warning(
            SECTION,
            "registration",
            "installed, but the system does not listen",
        )
        .advise("run `tandem service start`"),
        (true, true, Some(pid)) => Finding::ok(
            SECTION,
            "registration",
            format!("installed; the system listens, and the daemon runs as process {pid}"),
        ),
        (true, true, None) => Finding::ok(
            SECTION,
            "registration",
            "installed; the system listens, and starts the daemon when it is needed",
        ),
    };
    finding
        .value("installed", state.installed)
        .value("listening", state.loaded)
        .value("pid", state.pid)
}

fn program(manager: &dyn Manager, paths: &Paths) -> Finding {
    match manager.program() {
        Ok(Some(named)) => {
            let ours = startup::launcher(paths.clone());
            let ours = ours.map(|launcher| launcher.command().0.to_owned());
            same_program(&named, ours.ok())
        }
        Ok(None) => Finding::failed(SECTION, "program", "the service's file names no program")
            .advise("`tandem service install` writes it anew"),
        Err(problem) => Finding::failed(SECTION, "program", problem.to_string()),
    }
}

fn same_program(named: &Path, ours: Option<PathBuf>) -> Finding {
    let shown = named.display();
    let advice = "run `tandem service install` with the `tandem` that is to be used";
    let Ok(real) = fs::canonicalize(named) else {
        return Finding::failed(
            SECTION,
            "program",
            format!("{shown} is gone: the service cannot start"),
        )
        .advise(advice);
    };
    let ours = ours.map(|ours| {
        (
            fs::canonicalize(&ours).unwrap_or_else(|_| ours.clone()),
            ours,
        )
    });
    let finding = match ours {
        Some((ours, _)) if ours == real => {
            Finding::ok(SECTION, "program", format!("{shown}, which is this one"))
        }
        Some((_, ours)) => Finding::warning(
            SECTION,
            "program",
            format!("{shown}, and not this one ({})", ours.display()),
        )
        .advise(advice),
        None => Finding::ok(SECTION, "program", shown.to_string()),
    };
    finding.value("program", shown.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::finding::Mark;
    use super::*;

    fn state(installed: bool, loaded: bool, pid: Option<u32>) -> State {
        State {
            installed,
            loaded,
            pid,
            ..State::default()
        }
    }

    #[test]
    fn what_is_half_there_is_a_warning_with_what_to_do() {
        for half in [state(true, false, None), state(false, true, Some(7))] {
            let finding = registration(&half);
            assert_eq!(finding.mark, Mark::Warning, "{half:?}");
            assert!(
                finding
                    .advice
                    .is_some_and(|advice| advice.contains("tandem service"))
            );
        }
        for whole in [
            state(false, false, None),
            state(true, true, None),
            state(true, true, Some(7)),
        ] {
            assert_eq!(registration(&whole).mark, Mark::Ok, "{whole:?}");
        }
    }

    #[test]
    fn a_program_that_is_gone_fails_and_another_one_is_a_warning() {
        let directory = tempfile::tempdir().unwrap();
        let [one, link, other] = ["one", "link", "other"].map(|name| directory.path().join(name));
        fs::write(&one, "").unwrap();
        fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        assert_eq!(same_program(&link, Some(one.clone())).mark, Mark::Ok);
        assert_eq!(same_program(&one, None).mark, Mark::Ok);
        let finding = same_program(&other, Some(one.clone()));
        assert_eq!(finding.mark, Mark::Warning);
        assert!(finding.message.contains("other") && finding.message.contains("one"));
        let finding = same_program(&directory.path().join("gone"), Some(one));
        assert_eq!(finding.mark, Mark::Failed);
        assert!(finding.advice.is_some());
    }

    #[test]
    fn a_system_without_a_manager_is_no_fault() {
        let problem = ServiceError::NoSession {
            output: "no bus".to_owned(),
        };
        assert_eq!(no_state(&problem).mark, Mark::Skipped);
        let problem = ServiceError::Damaged {
            path: "/x".into(),
            problem: "cut".to_owned(),
        };
        assert_eq!(no_state(&problem).mark, Mark::Failed);
        assert!(!without_manager(&problem), "it may listen all the same");
    }
}
