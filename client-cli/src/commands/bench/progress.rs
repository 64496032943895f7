//! How far a benchmark is: a bar on a terminal, a line for each part elsewhere.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};
use tandem_bench::Progress;

const BAR: &str = "{msg:32} {bar:30} {pos:>4}/{len} {elapsed:>4} of about {duration:>4}";

/// Shows progress on standard error.
#[derive(Debug)]
pub(super) struct Bars {
    quiet: bool,
    terminal: bool,
    bar: ProgressBar,
}

impl Bars {
    pub(super) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            terminal: io::stderr().is_terminal(),
            bar: ProgressBar::hidden(),
        }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        match progress {
            // A warning is no progress: it is shown whatever was asked for.
            Progress::Warning(text) => self.bar.suspend(|| say!("tandem: WARNING: {text}")),
            _ if self.quiet => {}
            Progress::Begin { what, parts } if self.terminal => {
                self.bar.finish_and_clear();
                let style = ProgressStyle::with_template(BAR).expect("the template is valid");
                self.bar = ProgressBar::new(parts as u64)
                    .with_style(style)
                    .with_message(what);
                self.bar.tick();
            }
            Progress::Begin { what, .. } => say!("tandem: {what}"),
            Progress::Part => self.bar.inc(1),
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
