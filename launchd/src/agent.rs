//! A launchd agent's property list: launchd.plist(5).

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use launchd::{KeepAliveOptions, Launchd as Agent, ProcessType, Socket, SocketOptions, Sockets};
use plist::{Dictionary, Value};
use tandem_proto::paths::ACTIVATION_NAME;

use crate::{Service, ServiceError};

/// The service's name for launchd.
pub const LABEL: &str = "io.github.tandem-rs.tandemd";

/// Mode of the socket: the user's alone.
const SOCKET_MODE: u64 = 0o600;
/// Files that the daemon makes are the user's alone, too.
const UMASK: u16 = 0o077;

/// The largest list that is read, in bytes: ours has 2 KiB.
const LIST_LIMIT: usize = 64 << 10;
/// Room for each level of a list of that size that is nothing but levels.
const LIST_STACK: usize = 64 << 20;

/// In which of the user's sessions the agent runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Session {
    /// Logged in at the screen: the domain `gui/UID`.
    #[default]
    Aqua,
    /// Only over the network: the domain `user/UID`.
    Background,
}

impl Session {
    pub(crate) fn domain(self, uid: u32) -> String {
        match self {
            Self::Aqua => format!("gui/{uid}"),
            Self::Background => format!("user/{uid}"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Aqua => "Aqua",
            Self::Background => "Background",
        }
    }
}

/// Returns the property list in XML.
pub(crate) fn property_list(service: &Service, session: Session) -> Result<String, ServiceError> {
    let invalid = |error: &dyn ToString| ServiceError::PropertyList(error.to_string());
    let mut agent = agent(service, session).map_err(|error| invalid(&error))?;
    if service.at_login {
        agent = agent.run_at_load();
    }
    let mut list = plist::to_value(&agent).map_err(|error| invalid(&error))?;
    let root = list
        .as_dictionary_mut()
        .ok_or_else(|| invalid(&"it is no dictionary"))?;
    set_socket_mode(root).ok_or_else(|| invalid(&"it has no socket"))?;
    // The same service is to be the same text, and maps have no order.
    if let Some(variables) = root
        .get_mut("EnvironmentVariables")
        .and_then(Value::as_dictionary_mut)
    {
        variables.sort_keys();
    }
    let mut xml = Vec::new();
    list.to_writer_xml(&mut xml)
        .map_err(|error| invalid(&error))?;
    xml.push(b'\n');
    String::from_utf8(xml).map_err(|error| invalid(&error))
}

fn agent(service: &Service, session: Session) -> Result<Agent, launchd::Error> {
    let mut arguments = vec![service.program.clone()];
    arguments.extend(service.args.iter().cloned());
    let socket = SocketOptions::new().with_path_name(&service.socket)?;
    let stop_limit = u32::try_from(service.stop_limit.as_secs()).unwrap_or(u32::MAX);
    let variables: HashMap<String, String> = service.environment.clone().into_iter().collect();
    let agent = Agent::new(LABEL, &service.program)?
        .with_program_arguments(arguments)
        .with_limit_load_to_session_type(session.name().into())
        .with_socket(Sockets::from(Socket::new(ACTIVATION_NAME, socket)))
        // Ended by a failure, it starts again; ended on purpose, at the next connection.
        .with_keep_alive(KeepAliveOptions::new().with_successful_exit(false).into())
        // Any other type is throttled: CPU, I/O and the GPU.
        .with_process_type(ProcessType::Interactive)
        // launchd kills what takes longer, and then requests are lost.
        .with_exit_timeout(stop_limit)
        .with_umask(UMASK)
        .with_standard_out_path(&service.log_file)?
        .with_standard_error_path(&service.log_file)?;
    Ok(if variables.is_empty() {
        agent
    } else {
        agent.with_environment_variables(variables)
    })
}

/// The crate has the mode as an `i128`, which its own serializer refuses.
fn set_socket_mode(root: &mut Dictionary) -> Option<()> {
    root.get_mut("Sockets")?
        .as_dictionary_mut()?
        .get_mut(ACTIVATION_NAME)?
        .as_dictionary_mut()?
        .insert("SockPathMode".to_owned(), SOCKET_MODE.into());
    Some(())
}

/// What the verbs need to know of an agent that is installed. Read without the crate, which refuses keys that it does
/// not know, and people edit their agents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct InstalledAgent {
    pub(crate) session: Session,
    pub(crate) program: Option<String>,
    pub(crate) socket: Option<String>,
    pub(crate) log_file: Option<String>,
    pub(crate) stop_limit_s: u64,
}

impl InstalledAgent {
    /// Reads the file; what it does not say is launchd's default.
    pub(crate) fn read(path: &Path) -> Result<Self, ServiceError> {
        let bytes = fs::read(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => ServiceError::NotInstalled { path: path.into() },
            _ => ServiceError::io("read", path, source),
        })?;
        Self::parse(&bytes, path)
    }

    /// Reads what the file at `path` holds. The crate recurses as deep as lists nest, so that a hostile one could end the
    /// process: it gets a stack that no list within the limit fills.
    pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<Self, ServiceError> {
        let damaged = |problem: String| ServiceError::Damaged {
            path: path.into(),
            problem,
        };
        if bytes.len() > LIST_LIMIT {
            return Err(damaged(format!(
                "it has {} bytes, and no agent has more than {LIST_LIMIT}",
                bytes.len()
            )));
        }
        std::thread::scope(|scope| {
            let reading = std::thread::Builder::new()
                .stack_size(LIST_STACK)
                .spawn_scoped(scope, || Self::from_list(bytes))
                .map_err(|source| ServiceError::io("read", path, source))?;
            match reading.join() {
                Ok(agent) => agent.map_err(|error| damaged(error.to_string())),
                Err(_) => Err(damaged("reading it failed".to_owned())),
            }
        })
    }

    fn from_list(bytes: &[u8]) -> Result<Self, plist::Error> {
        let list: Value = plist::from_bytes(bytes)?;
        let get = |key: &str| list.as_dictionary()?.get(key);
        let text = |key: &str| get(key).and_then(Value::as_string).map(str::to_owned);
        let session = match text("LimitLoadToSessionType").as_deref() {
            Some("Background") => Session::Background,
            _ => Session::Aqua,
        };
        let socket = get("Sockets")
            .and_then(|sockets| sockets.as_dictionary()?.get(ACTIVATION_NAME))
            .and_then(|socket| socket.as_dictionary()?.get("SockPathName")?.as_string());
        let first = get("ProgramArguments")
            .and_then(|arguments| arguments.as_array()?.first()?.as_string())
            .map(str::to_owned);
        Ok(Self {
            session,
            // launchd runs `Program` where both are there.
            program: text("Program").or(first),
            socket: socket.map(str::to_owned),
            log_file: text("StandardErrorPath"),
            stop_limit_s: get("ExitTimeOut")
                .and_then(Value::as_unsigned_integer)
                .unwrap_or(20),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crate_cannot_write_a_mode_by_itself() {
        let socket = SocketOptions::new().with_path_mode(i128::from(SOCKET_MODE));
        let agent = Agent::new("x", "/x")
            .unwrap()
            .with_socket(Sockets::from(Socket::new("s", socket)));
        assert!(
            plist::to_value(&agent).is_err(),
            "it can now: drop `set_socket_mode` and say it with the crate"
        );
    }
}
