//! The exit codes: the one table that the command, its help and docs/cli.md have.

/// How the command ended, for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for is done, or whoever read it has enough.
    Done = 0,
    /// It did not work, for none of the reasons below.
    Failed = 1,
    /// The arguments or the request are not possible; the same again will fail again.
    Usage = 2,
    /// A model is not on this machine, and no source has it.
    NoModel = 66,
    /// Nothing answers, and nothing could be started.
    Unavailable = 69,
    /// A person has to change the configuration, or the files that it names.
    Config = 78,
    /// The time that was given has passed.
    TimedOut = 124,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// All of them, with the words that the help and docs/cli.md have.
    pub(crate) const TABLE: [(Self, &'static str); 8] = [
        (Self::Done, "done"),
        (Self::Failed, "the request failed, or a check did"),
        (Self::Usage, "arguments or a request that are not possible"),
        (
            Self::NoModel,
            "a model is not here and could not be fetched",
        ),
        (
            Self::Unavailable,
            "no daemon answers and none could be started, or no service manager runs",
        ),
        (
            Self::Config,
            "the configuration is wrong, or a model of it cannot be loaded",
        ),
        (Self::TimedOut, "the time given by --timeout has passed"),
        (Self::Interrupted, "interrupted by Ctrl-C"),
    ];

    /// Returns the number.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

/// Writes the table for the help.
pub(crate) fn help() -> String {
    let lines = Exit::TABLE.map(|(exit, meaning)| format!("  {:>3}  {meaning}\n", exit.code()));
    format!("Exit codes:\n{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_the_same_table() {
        let page = include_str!("../../docs/cli.md");
        for (exit, meaning) in Exit::TABLE {
            let line = format!("| {} | {meaning} |", exit.code());
            assert!(page.contains(&line), "docs/cli.md lacks `{line}`");
        }
    }

    #[test]
    fn the_help_names_each_code() {
        let help = help();
        for (exit, _) in Exit::TABLE {
            assert!(help.contains(&format!(" {}  ", exit.code())), "{help}");
        }
    }
}
