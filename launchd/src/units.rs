//! systemd's units: systemd.service(5), systemd.socket(5), and systemd.syntax(7) for the quoting.

use std::fmt::Write as _;

use tandem_proto::paths::ACTIVATION_NAME;

use crate::Service;

/// The unit that listens.
pub const SOCKET_UNIT: &str = "tandem.socket";
/// The unit that runs the daemon.
pub const SERVICE_UNIT: &str = "tandem.service";

/// Returns the unit that listens.
pub(crate) fn socket(service: &Service) -> String {
    format!(
        "\
[Unit]
Description=Socket of Tandem, which generates text for the programs of this user

[Socket]
ListenStream={socket}
SocketMode=0600
DirectoryMode=0700
FileDescriptorName={ACTIVATION_NAME}
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
",
        socket = service.socket.replace('%', "%%"),
    )
}

/// Returns the unit that runs the daemon.
pub(crate) fn service(service: &Service) -> String {
    let mut command = command_word(&service.program);
    for arg in &service.args {
        command.push(' ');
        command.push_str(&command_word(arg));
    }
    let mut environment = String::new();
    for (name, value) in &service.environment {
        let assignment = quote(&format!("{name}={value}"));
        writeln!(environment, "Environment={assignment}")
            .expect("writing to a String does not fail");
    }
    format!(
        "\
[Unit]
Description=Tandem, which generates text for the programs of this user
Requires={SOCKET_UNIT}
After={SOCKET_UNIT}
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=notify
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
{environment}UMask=0077
NoNewPrivileges=yes
# 2 and 78 are wrong arguments and a wrong configuration, which do not get better by themselves.
Restart=on-failure
RestartPreventExitStatus=2 78
RestartSec=2
TimeoutStopSec={stop_limit}

[Install]
WantedBy=default.target
",
        stop_limit = service.stop_limit.as_secs(),
    )
}

/// Quotes a word of a command line, in which `$` begins a variable.
fn command_word(text: &str) -> String {
    quote(text).replace('$', "$$")
}

/// Quotes a word where it needs it. `%` begins a specifier, also between quotes.
fn quote(text: &str) -> String {
    let text = text.replace('%', "%%");
    let plain = |c: char| c.is_alphanumeric() || "/._-=:,@+%$".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

/// Returns the program of a unit's command line, as far as it is written as [`service`] writes it.
pub(crate) fn program(unit: &str) -> Option<String> {
    let command = unit
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("ExecStart="))?;
    let (mut word, mut is_quoted) = (String::new(), false);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => break,
            // Each is written twice, or after a backslash.
            '%' | '$' | '\\' => word.extend(letters.next()),
            letter => word.push(letter),
        }
    }
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_read_back() {
        for path in ["/usr/bin/tandem", "/my files/100%/$x/a\"b\\c/tandem"] {
            let unit = format!("[Service]\nExecStart={} daemon run\n", command_word(path));
            assert_eq!(program(&unit).as_deref(), Some(path), "{unit}");
        }
        assert_eq!(program("[Service]\n"), None);
        assert_eq!(program("ExecStart=\n"), None);
    }

    #[test]
    fn words_are_quoted_where_they_need_it() {
        assert_eq!(quote("/usr/bin/tandem"), "/usr/bin/tandem");
        assert_eq!(quote("A=/my files"), "\"A=/my files\"");
        assert_eq!(quote("50%"), "50%%");
        assert_eq!(quote(r#"a"b\c"#), r#""a\"b\\c""#);
        assert_eq!(quote(""), "\"\"");
        assert_eq!(quote("a;b"), "\"a;b\"");
        assert_eq!(command_word("$HOME/x"), "$$HOME/x");
        assert_eq!(command_word("a $b"), "\"a $$b\"");
    }
}
