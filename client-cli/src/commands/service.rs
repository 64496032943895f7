//! `tandem service`: the daemon as a service of the user, under launchd or systemd.

use std::time::Duration;

use serde_json::json;
use tandem_client::{Client, Health, Paths, Retry, launch};
use tandem_launchd::{Installed, Logs, Manager, Service, ServiceError, State};

use super::{daemon, logs};
use crate::args::{InstallArgs, LogsArgs, ServiceCommand, ServiceStatusArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::startup;

/// Variables that say where files are, and what is in the log. The daemon has to see what the command sees, and services have hardly any.
const VARIABLES: [&str; 11] = [
    "TANDEM_HOME",
    "TANDEM_SOCKET",
    "TANDEM_CONFIG",
    "TANDEM_LOG",
    "TANDEM_PRESSURE_FILE",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "HF_HOME",
    "HF_HUB_CACHE",
];
/// How long a daemon that is not the service's may take to finish its requests.
const TAKE_OVER: Duration = Duration::from_secs(60);
/// How long a daemon may take to say which process it is.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(command: ServiceCommand) -> Result<(), Failure> {
    let manager = &*tandem_launchd::native()?;
    match command {
        ServiceCommand::Install(args) => install(manager, &args).await,
        ServiceCommand::Uninstall => {
            let was_there = manager.uninstall()?;
            say!(
                "{}",
                if was_there {
                    "the service is removed; models, settings and logs are still there"
                } else {
                    "the service is not installed"
                }
            );
            Ok(())
        }
        ServiceCommand::Start => {
            let paths = Paths::from_env()?;
            check_installed(manager)?;
            replacing(manager, &paths, || manager.start()).await?;
            confirm(manager, &paths).await
        }
        ServiceCommand::Stop => {
            let ran = manager.stop()?;
            say!(
                "{}",
                if ran {
                    "the service has stopped; it listens again after `tandem service start` or the next login"
                } else {
                    "the service is not running"
                }
            );
            Ok(())
        }
        ServiceCommand::Restart => {
            let paths = Paths::from_env()?;
            check_installed(manager)?;
            replacing(manager, &paths, || manager.restart()).await?;
            confirm(manager, &paths).await
        }
        ServiceCommand::Status(args) => status(manager, &args).await,
        ServiceCommand::Logs(args) => show_logs(manager, args).await,
    }
}

async fn install(manager: &dyn Manager, args: &InstallArgs) -> Result<(), Failure> {
    let paths = Paths::from_env()?;
    let service = describe(&paths)?.at_login(args.at_login);
    if args.print {
        let mut output = Output::new();
        for file in manager.files(&service)? {
            say!("{}:", file.path.display());
            output.text(&file.content)?;
        }
        return Ok(());
    }
    // Everything that can be known beforehand comes before the daemon that serves has to go.
    manager.check(&service)?;
    if !args.no_fetch {
        startup::ensure_models(&paths, false)?;
    }
    match replacing(manager, &paths, || manager.install(&service)).await? {
        Installed::Already => say!("the service is installed already, and up to date"),
        Installed::Now => say!(
            "the service is installed: the system listens on {} and starts the daemon when it is needed",
            paths.socket.display()
        ),
    }
    Ok(())
}

/// Describes the daemon that this command would start, with the files that it would use.
fn describe(paths: &Paths) -> Result<Service, Failure> {
    let launcher = startup::launcher(paths.clone())?;
    let (program, args) = launcher.command();
    let mut service = Service::new(
        program,
        args,
        &paths.socket,
        &paths.log_file(),
        startup::drain_limit(paths)?,
    )?;
    for name in VARIABLES {
        if let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            service = service.with_variable(name, &value)?;
        }
    }
    Ok(service)
}

/// Says whether there is a service to start.
fn check_installed(manager: &dyn Manager) -> Result<(), ServiceError> {
    manager.available()?;
    manager.program().map(drop)
}

/// Has the manager take the place of a daemon in the background, which comes back where the manager fails all the same.
async fn replacing<T>(
    manager: &dyn Manager,
    paths: &Paths,
    act: impl FnOnce() -> Result<T, ServiceError>,
) -> Result<T, Failure> {
    let ended = take_over(manager, paths).await?;
    let failed = match act() {
        Ok(done) => return Ok(done),
        Err(failed) => failed,
    };
    if ended {
        match startup::start(paths, false).await {
            Ok(_) => say!("the daemon runs in the background again"),
            Err(failure) => {
                say!("tandem: the daemon does not come back in the background: {failure}");
            }
        }
    }
    Err(failed.into())
}

/// Ends a daemon that holds the socket and is not the service's; says whether there was one.
async fn take_over(manager: &dyn Manager, paths: &Paths) -> Result<bool, Failure> {
    let state = manager.state()?;
    // One that is ending or hangs holds its lock, and so does one on another socket.
    let pid = match launch::Holder::find(paths).and_then(|holder| holder.pid) {
        Some(pid) => pid,
        // Where the manager listens and nothing runs, asking would start the daemon.
        None if state.loaded && state.pid.is_none() => return Ok(false),
        None => {
            let client = Client::new(launch::socket(paths))?.with_retry(Retry::never());
            match launch::ask(paths, PATIENCE, client.status()).await {
                Ok(status) => status.pid,
                Err(error) if error.is_unavailable() => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    };
    if state.pid == Some(pid) {
        return Ok(false);
    }
    daemon::end(pid, TAKE_OVER).await?;
    say!("the daemon that ran in the background (process {pid}) has ended");
    Ok(true)
}

/// Says that the daemon answers, or how it ended.
async fn confirm(manager: &dyn Manager, paths: &Paths) -> Result<(), Failure> {
    let socket = paths.socket.display();
    match Client::new(&paths.socket)?.health().await {
        Ok(Health::Serving) => say!("the daemon serves on {socket}"),
        Ok(Health::NotServing) => say!(
            "the daemon answers on {socket} and loads its models; `tandem status` shows how far it is"
        ),
        Err(source) => {
            let last_end = manager.state()?.last_end;
            return Err(Failure::ServiceDown { source, last_end });
        }
    }
    Ok(())
}

/// What answers on the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// Nobody was asked, because that would start the daemon.
    Unasked,
    Nobody,
    /// A daemon with this process id.
    Daemon(u32),
    /// Something that says nothing in time, or not what a daemon would.
    Something,
}

async fn answers(state: &State, paths: &Paths) -> Result<Answers, Failure> {
    if state.loaded && state.pid.is_none() && launch::Holder::find(paths).is_none() {
        return Ok(Answers::Unasked);
    }
    let client = Client::new(launch::socket(paths))?.with_retry(Retry::never());
    Ok(
        match tokio::time::timeout(PATIENCE, client.status()).await {
            Ok(Ok(status)) => Answers::Daemon(status.pid),
            Ok(Err(error)) if error.is_unavailable() => Answers::Nobody,
            Ok(Err(_)) | Err(_) => Answers::Something,
        },
    )
}

/// Says whether a daemon runs, and whose.
fn runs(service: Option<u32>, answers: Answers) -> String {
    match (service, answers) {
        (Some(pid), Answers::Daemon(answering)) if pid == answering => {
            format!("runs as process {pid}")
        }
        (Some(pid), Answers::Daemon(other)) => format!(
            "runs as process {pid}; process {other}, which is not the service's, answers on the socket"
        ),
        (Some(pid), Answers::Unasked) => format!("runs as process {pid}"),
        (Some(pid), _) => format!("runs as process {pid}, and does not answer"),
        (None, Answers::Daemon(pid)) => {
            format!("serves as process {pid}, started in the background and not by the service")
        }
        (None, Answers::Something) => {
            "not the service's; something listens on the socket, but does not answer".to_owned()
        }
        (None, Answers::Unasked | Answers::Nobody) => "does not run".to_owned(),
    }
}

async fn status(manager: &dyn Manager, args: &ServiceStatusArgs) -> Result<(), Failure> {
    let paths = Paths::from_env()?;
    let asked = manager.available().and_then(|()| manager.state());
    // Whether a daemon serves is known without a manager, too.
    let (state, problem) = match asked {
        Ok(state) => (state, None),
        Err(problem) => (State::default(), Some(problem)),
    };
    let answers = answers(&state, &paths).await?;
    let mut output = Output::new();
    if args.json {
        let known = problem.is_none();
        output.json(&json!({
            "installed": known.then_some(state.installed),
            "listening": known.then_some(state.loaded),
            "pid": state.pid,
            "serving_pid": match answers {
                Answers::Daemon(pid) => Some(pid),
                _ => None,
            },
            "last_end": state.last_end,
            "socket_path": paths.socket,
        }))?;
    } else {
        output.text(&table(&state, problem.is_none(), answers, &paths))?;
    }
    problem.map_or(Ok(()), |problem| Err(problem.into()))
}

fn table(state: &State, known: bool, answers: Answers, paths: &Paths) -> String {
    let files = match (known, state.installed, state.loaded) {
        (false, ..) => "unknown, because there is no service manager to ask",
        (true, true, _) => "installed",
        (true, false, true) => {
            "loaded, but its files are gone; `tandem service install` writes them"
        }
        (true, false, false) => "not installed",
    };
    let socket = match answers {
        Answers::Daemon(_) => launch::socket(paths),
        _ => paths.socket.clone(),
    };
    let socket = socket.display();
    let listens = match (state.loaded, answers) {
        (true, _) => format!("the system listens on {socket}"),
        (false, Answers::Daemon(_)) => format!("the daemon itself listens on {socket}"),
        (false, _) => "the system does not listen".to_owned(),
    };
    let runs = runs(state.pid, answers);
    let mut text = format!("service  {files}\nsocket   {listens}\ndaemon   {runs}\n");
    if !state.last_end.is_empty() {
        text.push_str(&format!("last end {}\n", state.last_end));
    }
    text
}

async fn show_logs(manager: &dyn Manager, args: LogsArgs) -> Result<(), Failure> {
    match manager.logs(args.lines, args.follow)? {
        Logs::File(path) => logs::show(path, args).await,
        Logs::Command(mut command) => {
            let program = command.get_program().to_string_lossy().into_owned();
            let status = command.status().map_err(|source| ServiceError::NoCommand {
                program: program.clone(),
                manager: "systemd",
                source,
            })?;
            match status.success() {
                true => Ok(()),
                // It has said why.
                false => Err(Failure::Tool { program, status }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_serves_is_never_said_not_to_run() {
        assert_eq!(runs(None, Answers::Nobody), "does not run");
        assert_eq!(runs(Some(7), Answers::Daemon(7)), "runs as process 7");
        assert!(runs(None, Answers::Daemon(7)).contains("serves as process 7"));
        assert!(runs(Some(7), Answers::Daemon(8)).contains("process 8"));
        assert!(runs(Some(7), Answers::Something).contains("does not answer"));
        assert!(!runs(None, Answers::Something).contains("does not run"));
    }
}
