//! `tandem service`: the daemon as a service of the user, under launchd or systemd.

use std::time::Duration;

use serde_json::json;
use tandem_client::{Client, Health, Paths, Retry};
use tandem_launchd::{Installed, Logs, Manager, Service, ServiceError};

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

pub(crate) async fn run(command: ServiceCommand) -> Result<(), Failure> {
    let manager = &*tandem_launchd::native()?;
    match command {
        ServiceCommand::Install(args) => install(manager, &args).await,
        ServiceCommand::Uninstall => {
            let was_there = manager.uninstall()?;
            eprintln!(
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
            take_over(manager, &paths).await?;
            manager.start()?;
            confirm(manager, &paths).await
        }
        ServiceCommand::Stop => {
            let ran = manager.stop()?;
            eprintln!(
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
            take_over(manager, &paths).await?;
            manager.restart()?;
            confirm(manager, &paths).await
        }
        ServiceCommand::Status(args) => status(manager, &args),
        ServiceCommand::Logs(args) => show_logs(manager, args).await,
    }
}

async fn install(manager: &dyn Manager, args: &InstallArgs) -> Result<(), Failure> {
    let paths = Paths::from_env()?;
    let service = describe(&paths)?.at_login(args.at_login);
    if args.print {
        let mut output = Output::new();
        for file in manager.files(&service)? {
            eprintln!("{}:", file.path.display());
            output.text(&file.content)?;
        }
        return Ok(());
    }
    if !args.no_fetch {
        startup::ensure_models(&paths, false)?;
    }
    take_over(manager, &paths).await?;
    match manager.install(&service)? {
        Installed::Already => eprintln!("the service is installed already, and up to date"),
        Installed::Now => eprintln!(
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

/// Ends a daemon that holds the socket and is not the service's.
async fn take_over(manager: &dyn Manager, paths: &Paths) -> Result<(), Failure> {
    let state = manager.state()?;
    // Where the manager listens and nothing runs, asking would start the daemon.
    if state.loaded && state.pid.is_none() {
        return Ok(());
    }
    let client = Client::new(&paths.socket)?.with_retry(Retry::never());
    let pid = match client.status().await {
        Ok(status) => status.pid,
        Err(error) if error.is_unavailable() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if state.pid != Some(pid) {
        daemon::end(pid, TAKE_OVER).await?;
        eprintln!("the daemon that ran in the background (process {pid}) has ended");
    }
    Ok(())
}

/// Says that the daemon answers, or how it ended.
async fn confirm(manager: &dyn Manager, paths: &Paths) -> Result<(), Failure> {
    let socket = paths.socket.display();
    match Client::new(&paths.socket)?.health().await {
        Ok(Health::Serving) => eprintln!("the daemon serves on {socket}"),
        Ok(Health::NotServing) => eprintln!(
            "the daemon answers on {socket} and loads its models; `tandem status` shows how far it is"
        ),
        Err(source) => {
            let last_end = manager.state()?.last_end;
            return Err(Failure::ServiceDown { source, last_end });
        }
    }
    Ok(())
}

fn status(manager: &dyn Manager, args: &ServiceStatusArgs) -> Result<(), Failure> {
    let paths = Paths::from_env()?;
    let state = manager.state()?;
    let mut output = Output::new();
    if args.json {
        return output.json(&json!({
            "installed": state.installed,
            "listening": state.loaded,
            "pid": state.pid,
            "last_end": state.last_end,
            "socket_path": paths.socket,
        }));
    }
    let files = match (state.installed, state.loaded) {
        (true, _) => "installed",
        (false, true) => "loaded, but its files are gone; `tandem service install` writes them",
        (false, false) => "not installed",
    };
    let listens = match state.loaded {
        true => format!("the system listens on {}", paths.socket.display()),
        false => "the system does not listen".to_owned(),
    };
    let runs = match state.pid {
        Some(pid) => format!("runs as process {pid}"),
        None => "does not run".to_owned(),
    };
    let mut text = format!("service  {files}\nsocket   {listens}\ndaemon   {runs}\n");
    if !state.last_end.is_empty() {
        text.push_str(&format!("last end {}\n", state.last_end));
    }
    output.text(&text)
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
