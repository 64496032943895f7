//! Why something did not work.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// Managers read a text in UTF-8, on one line.
    #[error(
        "{what} is {text:?}, and a service cannot have that: it has to be UTF-8 without control characters"
    )]
    Unwritable {
        /// What the text is for.
        what: String,
        /// The text, as far as it can be shown.
        text: String,
    },
    /// Managers start in directories of their own, and expand neither `~` nor variables.
    #[error("{what} is `{}`, and a service needs a path that begins with `/`", path.display())]
    NotAbsolute {
        /// What the path is for.
        what: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// Neither a home directory nor a replacement is in the environment.
    #[error("HOME is not set to an absolute path, and the service's files belong there")]
    NoHome,
    /// The property list could not be made.
    #[error("cannot write the property list: {0}")]
    PropertyList(String),
    /// What is installed cannot be understood.
    #[error("`{}` is no property list: {problem}; run `tandem service install`", path.display())]
    Damaged {
        /// The property list.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file could not be read, written or removed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The manager's command could not be run.
    #[error("cannot run `{program}`: {source}; is {manager} on this system?")]
    NoCommand {
        /// The command.
        program: String,
        /// Whose command it is.
        manager: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The manager refused.
    #[error("`{command}` failed ({status}): {output}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// What it printed.
        output: String,
    },
    /// There is no manager for this user to talk to.
    #[error(
        "systemd does not run for this user: {output}; log in rather than use su or sudo, or let it run without a login: \
         `sudo loginctl enable-linger $USER`"
    )]
    NoSession {
        /// What the command printed.
        output: String,
    },
    /// launchd has nothing for this user.
    #[error(
        "launchd has no domain {domain}: {output}; log in as this user, rather than use su or sudo"
    )]
    NoDomain {
        /// The domain, as launchd names it.
        domain: String,
        /// What the command printed.
        output: String,
    },
    /// The files are not there.
    #[error("the service is not installed: there is no `{}`; run `tandem service install`", path.display())]
    NotInstalled {
        /// A file that would be there.
        path: PathBuf,
    },
    /// The manager did not do it in time.
    #[error("launchd did not {what} within {} s; `launchctl print {target}` shows its state", limit.as_secs())]
    Slow {
        /// What was waited for.
        what: &'static str,
        /// The service, as launchd names it.
        target: String,
        /// How long was waited.
        limit: Duration,
    },
}

impl ServiceError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
