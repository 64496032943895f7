//! The page: a heading per section, a line per check, and what to do below what is not as it should be.

use std::fmt::Write as _;

use serde_json::Value;

use super::finding::{Finding, Mark};
use crate::visible::one_line;

/// Where advice begins, below a message.
const INDENT: usize = 2 + 8 + 1;

/// Returns how many findings have this mark.
pub(super) fn count(findings: &[Finding], mark: Mark) -> usize {
    findings
        .iter()
        .filter(|finding| finding.mark == mark)
        .count()
}

/// Writes all findings, those of a section together.
pub(super) fn page(findings: &[Finding]) -> String {
    let mut text = format!("tandem doctor {}\n", env!("CARGO_PKG_VERSION"));
    let mut add = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line)
            .expect("writing to a String does not fail");
    };
    let mut section = "";
    for finding in findings {
        if finding.section != section {
            section = finding.section;
            add(format_args!("\n{section}\n"));
        }
        let mark = match finding.mark {
            // The one that has to be seen.
            Mark::Failed => "FAILED",
            mark => mark.word(),
        };
        add(format_args!(
            "  {mark:<8} {}: {}\n",
            one_line(&finding.check),
            one_line(&finding.message)
        ));
        if let Some(advice) = &finding.advice {
            add(format_args!("{:INDENT$}→ {}\n", "", one_line(advice)));
        }
    }
    let told = |mark, one: &str, many: &str| match count(findings, mark) {
        0 => None,
        1 => Some(format!("1 {one}")),
        more => Some(format!("{more} {many}")),
    };
    let told: Vec<String> = [
        told(Mark::Failed, "check failed", "checks failed"),
        told(Mark::Warning, "warning", "warnings"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let verdict = match told.is_empty() {
        true => "everything is as it should be".to_owned(),
        false => told.join(", "),
    };
    add(format_args!("\n{verdict}\n"));
    text
}

/// The user's home directory, which is nobody else's business.
#[derive(Debug)]
pub(super) struct Home(Option<String>);

impl Home {
    pub(super) fn from_env() -> Self {
        let home = std::env::var("HOME").ok();
        let home = home.map(|home| home.trim_end_matches('/').to_owned());
        Self(home.filter(|home| home.starts_with('/') && home.len() > 1))
    }

    /// Writes `~` for the home directory wherever it begins a path.
    pub(super) fn shorten(&self, finding: &mut Finding) {
        finding.message = self.short(&finding.message);
        if let Some(advice) = &mut finding.advice {
            *advice = self.short(advice);
        }
        for value in finding.values.values_mut() {
            if let Value::String(text) = value {
                *text = self.short(text);
            }
        }
    }

    fn short(&self, text: &str) -> String {
        let Some(home) = &self.0 else {
            return text.to_owned();
        };
        let is_of_a_path = |c: char| c.is_alphanumeric() || "/._-~".contains(c);
        let (mut short, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(home.as_str()) {
            let (before, found) = rest.split_at(at);
            let after = &found[home.len()..];
            let begins = !before.ends_with(is_of_a_path);
            let ends = after.starts_with('/') || !after.starts_with(is_of_a_path);
            short.push_str(before);
            short.push_str(if begins && ends { "~" } else { home });
            rest = after;
        }
        short + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_line_per_check_and_ends_with_the_verdict() {
        let findings = [
            Finding::ok("machine", "memory", "16.0 GiB"),
            Finding::skipped("machine", "gpu", "none"),
            Finding::warning("socket", "version", "0.1.0").advise("restart it"),
            Finding::failed("socket", "directory", "others may write"),
        ];
        let text = page(&findings);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "",
                "machine",
                "  ok       memory: 16.0 GiB",
                "  skipped  gpu: none",
                "",
                "socket",
                "  warning  version: 0.1.0",
                "           → restart it",
                "  FAILED   directory: others may write",
                "",
                "1 check failed, 1 warning",
            ]
        );
        assert!(page(&findings[..2]).ends_with("\neverything is as it should be\n"));
    }

    #[test]
    fn the_home_directory_is_shortened_where_it_begins_a_path() {
        let home = Home(Some("/home/me".to_owned()));
        for (text, short) in [
            ("/home/me/x and `/home/me/y`", "~/x and `~/y`"),
            ("in /home/me: no", "in ~: no"),
            ("/home/men/x", "/home/men/x"),
            ("/mnt/home/me/x", "/mnt/home/me/x"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(home.short(text), short);
        }
        assert_eq!(Home(None).short("/x"), "/x");
        let mut finding = Finding::ok("a", "b", "/home/me/c").value("path", "/home/me/c");
        home.shorten(&mut finding);
        assert_eq!(finding.message, "~/c");
        assert_eq!(finding.values["path"], "~/c");
    }
}
