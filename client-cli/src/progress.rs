//! Progress on standard error: a spinner in a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::visible::one_line;

/// Elsewhere than in a terminal, a wait that goes on is mentioned this often.
const REMIND: Duration = Duration::from_secs(10);

/// Shows what is being waited for.
#[derive(Debug)]
pub(crate) enum Waiting {
    Hidden,
    Spinner(ProgressBar),
    Lines { last: Option<(String, Duration)> },
}

impl Waiting {
    pub(crate) fn new(quiet: bool) -> Self {
        if quiet {
            Self::Hidden
        } else if io::stderr().is_terminal() {
            let style =
                ProgressStyle::with_template("{spinner} {msg}").expect("the template is valid");
            Self::Spinner(ProgressBar::new_spinner().with_style(style))
        } else {
            Self::Lines { last: None }
        }
    }

    /// Says what is going on, how far it is, and for how long it has been waited for.
    pub(crate) fn show(&mut self, what: &str, percent: Option<u64>, elapsed: Duration) {
        let percent = percent.map_or_else(String::new, |percent| format!(" {percent} %"));
        match self {
            Self::Hidden => {}
            Self::Spinner(bar) => {
                let message = format!("{what}{percent} {:.1} s", elapsed.as_secs_f64());
                bar.set_message(one_line(&message).into_owned());
                bar.tick();
            }
            Self::Lines { last } => {
                let due = last
                    .as_ref()
                    .is_none_or(|(before, at)| before != what || elapsed >= *at + REMIND);
                if due {
                    say!("tandem: {what}{percent} ({} s)", elapsed.as_secs());
                    *last = Some((what.to_owned(), elapsed));
                }
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Self::Spinner(bar) = self {
            bar.finish_and_clear();
        }
    }
}
