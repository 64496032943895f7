//! `tandem pull`: fetches models and shows how far it has come. What is fetched and from where is
//! tandem-models' business; this file owns how it looks.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{DecimalBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tandem_models::{Event, ModelRef, Progress, PullError, Store};

const BAR: &str = "{wide_msg} {bar:24} {decimal_bytes:>9}/{decimal_total_bytes} \
                   {decimal_bytes_per_sec:>12} {eta:>4}";
/// How often progress is told where there is no bar.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Fetches models, so that no request has to wait for them.
///
/// Prints the path of each. Without a model it fetches the default pair. What is here already is
/// not fetched again, and an interrupted download goes on where it ended.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `org/repo[:file-or-quant][@revision]` on the Hugging Face hub, or `bundled:NAME`
    #[arg(value_name = "MODEL")]
    models: Vec<ModelRef>,
    /// Shows no progress
    #[arg(short, long)]
    quiet: bool,
    /// Prints one JSON object a line, {"model": …, "path": …}
    #[arg(long)]
    json: bool,
}

/// Runs the command; `models_dir` is Tandem's own folder for models.
///
/// Exits with 0, or with 1 if any model could not be fetched; the others are fetched all the same.
#[must_use]
pub(crate) fn run(args: Args, models_dir: &Path) -> ExitCode {
    let store = match Store::from_env(models_dir) {
        Ok(store) => store,
        Err(error) => {
            say(&format!("error: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let mut models = args.models;
    if models.is_empty() {
        models = vec![ModelRef::default_target(), ModelRef::default_draft()];
    }
    let mut code = ExitCode::SUCCESS;
    for model in &models {
        let printed = match fetch(&store, model, args.quiet) {
            Ok(path) => print(model, &path, args.json),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = printed {
            say(&format!("error: {error}"));
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Pulls one model with progress on standard error, and returns its path.
///
/// # Errors
/// As [`Store::pull`].
pub(crate) fn fetch(store: &Store, model: &ModelRef, quiet: bool) -> Result<PathBuf, PullError> {
    if quiet {
        return store.pull(model, &mut |_: Event<'_>| {});
    }
    let mut display = Display::new();
    let result = store.pull(model, &mut display);
    display.bar.finish_and_clear();
    result
}

/// Writes one line of the answer; a reader that has gone is no failure.
fn print(model: &ModelRef, path: &Path, json: bool) -> Result<(), String> {
    let line = if json {
        serde_json::json!({ "model": model, "path": path }).to_string()
    } else {
        path.display().to_string()
    };
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// Writes one line to standard error, if anyone reads it.
fn say(line: &str) {
    let _unread = writeln!(io::stderr(), "{line}");
}

/// A bar on a terminal, and a line now and then elsewhere.
struct Display {
    bar: ProgressBar,
    plain: bool,
    told: Instant,
}

impl Display {
    fn new() -> Self {
        let style = ProgressStyle::with_template(BAR).expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let plain = !io::stderr().is_terminal();
        Self {
            bar: bar.with_style(style),
            plain,
            told: Instant::now(),
        }
    }

    fn say(&self, line: &str) {
        self.bar.suspend(|| say(line));
    }

    fn start(&mut self, file: &str, total_bytes: u64, done_bytes: u64) {
        self.bar.reset();
        self.bar.set_length(total_bytes);
        self.bar.set_position(done_bytes);
        // What an earlier pull left says nothing of the speed of this one.
        self.bar.reset_eta();
        self.bar
            .set_message(file.rsplit('/').next().unwrap_or(file).to_owned());
        if self.plain {
            let resumed = match done_bytes {
                0 => String::new(),
                _ => format!(", {} of it here already", DecimalBytes(done_bytes)),
            };
            say(&format!("{file}: {}{resumed}", DecimalBytes(total_bytes)));
            self.told = Instant::now();
        } else {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    fn advance(&mut self, done_bytes: u64) {
        self.bar.set_position(done_bytes);
        if self.plain && self.told.elapsed() >= PLAIN_INTERVAL {
            self.told = Instant::now();
            say(&self.position());
        }
    }

    fn position(&self) -> String {
        let (done_bytes, total_bytes) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let percent = done_bytes * 100 / total_bytes.max(1);
        format!("{percent} % of {}", DecimalBytes(total_bytes))
    }
}

impl Progress for Display {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Source { name } => self.say(&format!("trying {name}")),
            Event::SourceFailed { name, error } => self.say(&format!("{name}: {error}")),
            Event::Waiting { .. } => self.say("waiting for another pull of the same file"),
            Event::Started {
                file,
                total_bytes,
                done_bytes,
            } => {
                self.start(file, total_bytes, done_bytes);
            }
            Event::Advanced { done_bytes } => self.advance(done_bytes),
            Event::Retrying { reason } => self.say(&format!("trying again: {reason}")),
            Event::Finished if self.plain => say(&self.position()),
            _ => {}
        }
    }
}
