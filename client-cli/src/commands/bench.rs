//! `tandem bench`: measures, and tells what it found. The measuring itself is `tandem-bench`'s; this file and those beside
//! it own the command line, the user's configuration, progress, and where results go.

mod args;
mod choice;
mod progress;

use std::path::Path;

use tandem_bench::{Report, Service, Setup, charts, compare, prompts, tables};
use tandem_client::{Client, Paths};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use args::Args;

use super::input;
use crate::failure::Failure;
use crate::output::Output;
use crate::startup;
use progress::Bars;

pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let old = args.compare.as_deref().map(Report::read).transpose()?;
    let report = match &args.from {
        Some(path) => Report::read(path)?,
        None => measured(&args).await?,
    };
    if let Some(path) = &args.json {
        report.write(path)?;
    }
    if let Some(path) = &args.markdown {
        let text = tables::markdown(&report)
            + &old.as_ref().map_or_else(String::new, |old| {
                format!("\n{}", compare::table(old, &report).markdown())
            });
        write(path, &text)?;
    }
    if let Some(directory) = &args.plot {
        for path in charts::write(&report, directory)? {
            say!("tandem: wrote {}", path.display());
        }
    }
    let mut output = Output::new();
    output.text(&tables::terminal(&report))?;
    if let Some(old) = &old {
        output.text(&format!("\n{}", compare::table(old, &report).terminal()))?;
    }
    if report.pair.batch_invariant && !report.texts.different.is_empty() {
        return Err(Failure::TextsDiffer);
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|source| Failure::io(format!("write `{}`", path.display()), source))
}

/// Measures. Dropping what runs ends the private daemons, so a signal has to come here first.
async fn measured(args: &Args) -> Result<Report, Failure> {
    for path in [&args.json, &args.markdown].into_iter().flatten() {
        // Better now than after a quarter of an hour.
        write(path, "")?;
    }
    let setup = setup(args).await?;
    let terminate = || {
        signal(SignalKind::terminate()).map_err(|source| Failure::io("listen for signals", source))
    };
    let mut terminated = terminate()?;
    let mut bars = Bars::new(args.quiet);
    let mut show = |progress| bars.show(progress);
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        _ = terminated.recv() => Err(Failure::Interrupted),
        report = tandem_bench::measure(&setup, &mut show) => Ok(report?),
    }
}

async fn setup(args: &Args) -> Result<Setup, Failure> {
    let given = args
        .prompts
        .as_deref()
        .map(|path| Ok::<_, Failure>(prompts::parse(&input::file(path)?)?));
    let shipped_prompts = given.is_none();
    let mut prompts = given.transpose()?.unwrap_or_else(prompts::shipped);
    if !args.category.is_empty() {
        prompts.retain(|prompt| args.category.contains(&prompt.category));
        if prompts.is_empty() {
            let known: Vec<&str> = prompts::categories().collect();
            let message = format!(
                "no prompt is of these categories; there are {}",
                known.join(", ")
            );
            return Err(Failure::Usage(message));
        }
    }
    Ok(Setup {
        service: service(args)?,
        methods: args.methods(),
        prompts,
        shipped_prompts,
        topics: args.topics(),
        extent: args.extent(),
        context: args.context,
    })
}

fn service(args: &Args) -> Result<Service, Failure> {
    let paths = Paths::from_env()?;
    if args.running {
        return Ok(Service::Running {
            client: Client::from_env()?,
            pair: args.pair.clone(),
        });
    }
    let (pair, settings) = choice::choose(args, &paths)?;
    startup::ensure_fetched(&paths, choice::models(&pair), args.quiet)?;
    Ok(Service::Private {
        program: startup::program()?,
        pair,
        settings,
    })
}
