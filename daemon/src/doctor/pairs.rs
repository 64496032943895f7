//! Each configured pair, by the headers of its files: whether they are here, sound, fit each other and the budget. The
//! same look decides whether a reload takes effect.

use tandem_engine::pair::PairReport;
use tandem_model::load::ModelSummary;

use super::configuration::SECTION;
use super::{Finding, error, of};
use crate::config::{Config, format_bytes};
use crate::loading::{LoadFailure, Loader, size};
use crate::residency::{Recipe, Size, fit_together};

pub(super) fn check(config: &Config, loader: &Loader, budget: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut kept: Vec<Size> = Vec::new();
    for (name, pair) in &config.pairs {
        let inspected = loader.report(&Recipe::new(config, pair), budget);
        if let Ok(report) = &inspected
            && pair.residency.preload
        {
            kept.push(size(report));
        }
        findings.push(match inspected {
            Ok(report) => sound(name, &report, config.path.is_some()),
            Err(failure) => unusable(name, &failure),
        });
    }
    if kept.len() > 1 {
        findings.push(together(&kept, budget));
    }
    findings
}

/// Hints are warnings where somebody has chosen the pair, who can choose another one.
fn sound(name: &str, report: &PairReport, is_chosen: bool) -> Finding {
    let drafter = match (&report.draft, report.exit_layer) {
        (Some(draft), _) => format!(" with {}", words(draft)),
        (None, Some(layer)) => format!(" with its own first {layer} layers"),
        (None, None) => String::new(),
    };
    let seen = format!(
        "{}{drafter}; {} with one context of {} tokens",
        words(&report.target),
        format_bytes(report.footprint),
        report.context_length
    );
    let finding = of(SECTION, format!("pair {name}"));
    let finding = match (report.warnings.is_empty(), is_chosen) {
        (true, _) => finding.ok(seen),
        (false, false) => finding.ok(seen).advise(report.warnings.join("; ")),
        (false, true) => finding.warning(seen).advise(report.warnings.join("; ")),
    };
    finding
        .value("backend", report.backend)
        .value("footprint_bytes", report.footprint)
        .value("context_length", report.context_length)
}

fn words(model: &ModelSummary) -> String {
    format!(
        "{} ({:.0} M, {})",
        model.name,
        model.parameters as f64 / 1e6,
        model.quantization
    )
}

/// A model that can still be fetched is no fault; anything else keeps the pair from loading as configured.
fn unusable(name: &str, failure: &LoadFailure) -> Finding {
    let finding = of(SECTION, format!("pair {name}"));
    match failure {
        LoadFailure::Missing { model } => finding
            .warning(format!("{model} is not on this machine yet"))
            .advise(format!(
                "run `tandem pull {model}`; `tandem run` fetches it by itself"
            )),
        LoadFailure::NoFile { path } => finding
            .failed(format!("{} does not exist", path.display()))
            .advise("put the file there, or correct the path in the configuration"),
        other => finding.failed(error(other)),
    }
}

fn together(sizes: &[Size], budget: u64) -> Finding {
    let finding = of(SECTION, "all pairs");
    let weights: u64 = sizes.iter().map(|size| size.weights).sum();
    match fit_together(budget, sizes.iter().copied(), 0) {
        Ok(()) => finding.ok(format!(
            "{} pairs that are loaded at the start fit together: {} of weights",
            sizes.len(),
            format_bytes(weights)
        )),
        Err(too_large) => finding
            .warning(format!(
                "pairs that are loaded at the start do not fit together: {too_large}"
            ))
            .advise("or set preload = false for those that need not be there at once"),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use tandem_model::testing::TinyModel;
    use tandem_models::{Store, StoreOptions};

    use super::super::Mark;
    use super::*;

    const BUDGET: u64 = 1 << 30;

    /// Checks pairs in a directory with two models, `a` and the smaller `b`, and a damaged one.
    fn pairs(text: &str, budget: u64) -> Vec<Finding> {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let (a, b) = (
            TinyModel {
                width: 128,
                inner: 512,
                layers: 4,
                ..TinyModel::default()
            },
            TinyModel::default(),
        );
        std::fs::write(path("a.gguf"), a.gguf()).unwrap();
        std::fs::write(path("b.gguf"), b.gguf()).unwrap();
        std::fs::write(path("damaged.gguf"), &a.gguf()[..2000]).unwrap();
        let config = Config::parse(
            &format!("default_pair = \"x\"\n[engine]\ndevice = \"cpu\"\n{text}"),
            &path("config.toml"),
        );
        let loader = Loader {
            store: Store::new(
                StoreOptions::from_vars(path("models"), |name| {
                    (name == "HOME").then(|| directory.path().into())
                })
                .unwrap(),
            ),
            prepared_dir: path("prepared"),
            cores: NonZeroUsize::MIN,
        };
        let findings = check(&config.unwrap(), &loader, budget);
        assert!(!path("prepared").exists(), "a look writes nothing");
        findings
    }

    fn one(target: &str, draft: &str, budget: u64) -> Finding {
        let text = format!("[pairs.x]\ntarget = \"{target}\"\ndraft = \"{draft}\"\n");
        let findings = pairs(&text, budget);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].check, "pair x");
        findings.into_iter().next().unwrap()
    }

    #[test]
    fn a_pair_that_fits_is_described() {
        let finding = one("./a.gguf", "./b.gguf", BUDGET);
        assert!(finding.mark < Mark::Failed, "{finding:?}");
        assert!(finding.message.contains("tiny ("), "{finding:?}");
        assert_eq!(finding.values["context_length"], 2048);
        assert_eq!(one("./a.gguf", "none", BUDGET).mark, Mark::Ok);
    }

    #[test]
    fn what_can_be_fetched_is_a_warning_that_says_how() {
        let finding = one("someone/model-GGUF:Q4_K_M", "none", BUDGET);
        assert_eq!(finding.mark, Mark::Warning, "{finding:?}");
        let advice = finding.advice.unwrap();
        assert!(
            advice.contains("`tandem pull someone/model-GGUF:Q4_K_M`"),
            "{advice}"
        );
    }

    #[test]
    fn files_that_are_gone_or_damaged_fail() {
        let gone = one("./gone.gguf", "none", BUDGET);
        assert!(gone.mark == Mark::Failed && gone.message.contains("gone.gguf"));
        assert!(gone.advice.is_some());
        let damaged = one("./damaged.gguf", "none", BUDGET);
        assert!(
            damaged.mark == Mark::Failed && damaged.message.contains("damaged.gguf"),
            "{damaged:?}"
        );
        assert_eq!(one("./a.gguf", "./damaged.gguf", BUDGET).mark, Mark::Failed);
    }

    #[test]
    fn what_does_not_fit_the_budget_fails_with_numbers() {
        let finding = one("./a.gguf", "none", 1000);
        assert_eq!(finding.mark, Mark::Failed);
        assert!(finding.message.contains("1000"), "{finding:?}");
    }

    #[test]
    fn pairs_that_fit_alone_may_not_fit_together() {
        let pair = |name| format!("[pairs.{name}]\ntarget = \"./a.gguf\"\ndraft = \"none\"\n");
        let text = format!("{}{}", pair("x"), pair("y"));
        let footprint = one("./a.gguf", "none", BUDGET).values["footprint_bytes"]
            .as_u64()
            .unwrap();
        let last = |budget| {
            let findings = pairs(&text, budget);
            findings.last().cloned().unwrap()
        };
        assert_eq!(last(BUDGET).mark, Mark::Ok);
        let finding = last(footprint + 1000);
        assert_eq!(finding.mark, Mark::Warning, "{finding:?}");
        assert!(finding.check == "all pairs" && finding.advice.is_some());
    }
}
