//! What `launchctl print` prints, which is "NOT API in any sense at all" by the manual: nothing depends on it but whether
//! the daemon's process changes, and what people are shown.

/// What `print` shows of a service.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) pid: Option<u32>,
    pub(crate) last_end: String,
}

impl Printed {
    /// Reads the service's own fields, which are indented by one tab; what lies deeper belongs to other things.
    pub(crate) fn parse(text: &str) -> Self {
        let field = |name: &str| {
            text.lines().find_map(|line| {
                line.strip_prefix('\t')?
                    .strip_prefix(name)?
                    .strip_prefix(" = ")
            })
        };
        let last_end = field("last exit code").filter(|code| !code.starts_with('('));
        Self {
            pid: field("pid").and_then(|pid| pid.parse().ok()),
            last_end: last_end.map_or_else(String::new, |code| format!("exit code {code}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_service_s_own_fields_are_read() {
        let printed = Printed::parse(
            "gui/501/x = {\n\tactive count = 1\n\tstate = running\n\tendpoints = {\n\t\tpid = 9\n\t}\n\tpid = 42\n\
             \tlast exit code = 78: EX_CONFIG\n}\n",
        );
        assert_eq!(printed.pid, Some(42));
        assert_eq!(printed.last_end, "exit code 78: EX_CONFIG");
        let fresh =
            Printed::parse("x = {\n\tstate = waiting\n\tlast exit code = (never exited)\n}\n");
        assert_eq!(fresh, Printed::default());
    }
}
