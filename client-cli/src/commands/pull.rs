//! `tandem pull`: fetches models and shows how far it has come. What is fetched and from where is
//! tandem-models' business; this file owns how it looks.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{DecimalBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tandem_models::{Event, ModelRef, Progress, PullError, Store};

use crate::failure::Failure;
use crate::output::Output;
use crate::visible::one_line;

const BAR: &str = "{wide_msg} {bar:24} {decimal_bytes:>9}/{decimal_total_bytes} \
                   {decimal_bytes_per_sec:>12} {eta:>4}";
/// How often progress is told where there is no bar.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Fetches models, so that no request has to wait for them.
///
/// Prints the path of each. Without a model it fetches the default pair. What is here already is
/// not fetched again, and an interrupted download goes on where it ended. Where the hub does not say what there is now, a file that
/// was fetched earlier is used, with a warning. The variables of Python's `huggingface_hub` (HF_HOME, HF_HUB_CACHE, HF_TOKEN,
/// HF_ENDPOINT, HF_HUB_OFFLINE) and those of proxies (HTTPS_PROXY, ALL_PROXY, NO_PROXY) mean here what they mean there.
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

/// Runs the command; `models_dir` is Tandem's own folder for models. A model that cannot be fetched keeps no other back.
///
/// # Errors
/// Where any model could not be fetched; it has been said why.
pub(crate) fn run(args: Args, models_dir: &Path) -> Result<(), Failure> {
    let store = Store::from_env(models_dir).map_err(PullError::from)?;
    let mut models = args.models;
    if models.is_empty() {
        models = vec![ModelRef::default_target(), ModelRef::default_draft()];
    }
    let mut output = Output::new();
    let mut complete = true;
    for model in &models {
        match fetch(&store, model, args.quiet) {
            Ok(path) if args.json => {
                output.json(&serde_json::json!({ "model": model, "path": path }))?;
            }
            // The answer: a script goes on with it, whatever is in it.
            Ok(path) => output.answer(&format!("{}\n", path.display()))?,
            Err(error) => {
                say!("tandem: {error}");
                complete = false;
            }
        }
    }
    if complete {
        Ok(())
    } else {
        Err(Failure::NotPulled)
    }
}

/// Pulls one model with progress on standard error, and returns its path. Warnings come in any case.
///
/// # Errors
/// As [`Store::pull`].
pub(crate) fn fetch(store: &Store, model: &ModelRef, quiet: bool) -> Result<PathBuf, PullError> {
    if quiet {
        return store.pull(model, &mut |event: Event<'_>| {
            if let Some(warning) = warning(&event) {
                say!("tandem: WARNING: {warning}");
            }
        });
    }
    let mut display = Display::new();
    let result = store.pull(model, &mut display);
    display.bar.finish_and_clear();
    result
}

/// What has to be known of a pull that goes on all the same.
fn warning(event: &Event<'_>) -> Option<String> {
    match event {
        Event::TokenRefused { reason } => Some(format!("{reason}; asking again without a token")),
        Event::Kept { path, reason } => Some(format!(
            "{reason}; the file that was fetched earlier is used: {}",
            path.display()
        )),
        _ => None,
    }
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
        self.bar.suspend(|| say!("{line}"));
    }

    fn start(&mut self, file: &str, total_bytes: u64, done_bytes: u64) {
        self.bar.reset();
        self.bar.set_length(total_bytes);
        self.bar.set_position(done_bytes);
        // What an earlier pull left says nothing of the speed of this one.
        self.bar.reset_eta();
        let name = file.rsplit('/').next().unwrap_or(file);
        self.bar.set_message(one_line(name).into_owned());
        if self.plain {
            let resumed = match done_bytes {
                0 => String::new(),
                _ => format!(", {} of it here already", DecimalBytes(done_bytes)),
            };
            say!("{file}: {}{resumed}", DecimalBytes(total_bytes));
            self.told = Instant::now();
        } else {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    fn advance(&mut self, done_bytes: u64) {
        self.bar.set_position(done_bytes);
        if self.plain && self.told.elapsed() >= PLAIN_INTERVAL {
            self.told = Instant::now();
            say!("{}", self.position());
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
            Event::Finished if self.plain => say!("{}", self.position()),
            event => {
                if let Some(warning) = warning(&event) {
                    self.say(&format!("WARNING: {warning}"));
                }
            }
        }
    }
}
