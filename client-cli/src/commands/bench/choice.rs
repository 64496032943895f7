//! Which pair the private daemons serve, and which of the user's settings they keep.
//!
//! The configuration file is read as it is written: the daemon checks it, as always, and here only the models matter.

use std::path::Path;

use tandem_bench::{Drafts, Exit, PairChoice, Serving};
use tandem_client::Paths;
use tandem_models::ModelRef;
use toml::{Table, Value};

use super::Args;
use crate::failure::Failure;

/// Name of the pair where none is configured, and of the default pair where none is named.
const DEFAULT: &str = "default";

/// Chooses the pair, and returns the settings beside it.
pub(super) fn choose(args: &Args, paths: &Paths) -> Result<(PairChoice, Table), Failure> {
    let file = match std::fs::read_to_string(&paths.config_file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(source) => {
            let action = format!("read `{}`", paths.config_file.display());
            return Err(Failure::io(action, source));
        }
    };
    let mut config: Table = file.parse().map_err(|error: toml::de::Error| {
        Failure::Usage(format!(
            "`{}`: {}",
            paths.config_file.display(),
            error.message()
        ))
    })?;
    let directory = paths.config_file.parent().unwrap_or(Path::new(""));
    let default = config.remove("default_pair");
    let pairs = config.remove("pairs");
    let pair = match &args.target {
        Some(target) => Table::from_iter([("target".to_owned(), Value::from(here(target)?))]),
        None => configured(&args.pair, default.as_ref(), pairs, directory)?,
    };
    let lookup = config
        .get("speculation")
        .and_then(|table| table.get("lookup")?.as_bool())
        .unwrap_or(true);
    Ok((choice(args, &pair, lookup)?, config))
}

/// Finds a pair in the configuration. Paths in it start at its directory.
fn configured(
    name: &str,
    default: Option<&Value>,
    pairs: Option<Value>,
    directory: &Path,
) -> Result<Table, Failure> {
    let mut pairs: Table = pairs
        .and_then(|pairs| pairs.try_into().ok())
        .unwrap_or_default();
    if pairs.is_empty() {
        let built_in = Table::from_iter([
            (
                "target".to_owned(),
                ModelRef::default_target().to_string().into(),
            ),
            (
                "draft".to_owned(),
                ModelRef::default_draft().to_string().into(),
            ),
        ]);
        pairs.insert(DEFAULT.to_owned(), built_in.into());
    }
    let named = match name {
        "" => default.and_then(Value::as_str).unwrap_or(DEFAULT),
        name => name,
    };
    let only = (pairs.len() == 1 && name.is_empty())
        .then(|| pairs.keys().next().cloned())
        .flatten();
    let found = pairs.remove(&only.unwrap_or_else(|| named.to_owned()));
    let Some(Value::Table(mut pair)) = found else {
        let known: Vec<&str> = pairs.keys().map(String::as_str).collect();
        let message = format!(
            "no pair `{named}` is configured; there are {}",
            known.join(", ")
        );
        return Err(Failure::Usage(message));
    };
    for key in ["target", "draft", "exit_adapter"] {
        if let Some(Value::String(model)) = pair.get_mut(key)
            && (model.starts_with("./") || model.starts_with("../"))
        {
            *model = directory.join(&*model).display().to_string();
        }
    }
    Ok(pair)
}

fn choice(args: &Args, pair: &Table, lookup: bool) -> Result<PairChoice, Failure> {
    let text = |key: &str| pair.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(target) = text("target") else {
        return Err(Failure::Usage("the pair has no target".to_owned()));
    };
    let configured = text("draft").filter(|draft| draft != "none");
    let own = configured.as_deref() == Some("self");
    let draft = match args.draft.as_deref() {
        Some("none") => None,
        Some(draft) => Some(here(draft)?),
        None => configured.filter(|_| !own),
    };
    let layer = pair.get("exit_layer").and_then(Value::as_integer);
    let exit = match (&args.exit_adapter, text("exit_adapter"), layer) {
        (Some(adapter), ..) => Exit::Adapter(here(adapter)?),
        (None, Some(adapter), _) => Exit::Adapter(adapter),
        (None, None, Some(layer)) => Exit::Layer(u32::try_from(layer).unwrap_or_default()),
        (None, None, None) => Exit::Chosen,
    };
    let drafts = match &draft {
        Some(_) => Drafts::Model,
        None if own => Drafts::Own,
        None => Drafts::Nothing,
    };
    let context = pair.get("context_length").and_then(Value::as_integer);
    Ok(PairChoice {
        target,
        draft,
        exit,
        usual: Serving { drafts, lookup },
        context_length: context.and_then(|tokens| u32::try_from(tokens).ok()),
    })
}

/// Reads a model off the command line: paths start at the working directory.
fn here(model: &str) -> Result<String, Failure> {
    if model == "none" {
        return Ok(model.to_owned());
    }
    let reference: ModelRef = model
        .parse()
        .map_err(|error: tandem_models::ModelError| Failure::Usage(error.to_string()))?;
    Ok(match reference {
        ModelRef::Path(path) if !path.starts_with("~") => std::path::absolute(&path)
            .map_err(|source| Failure::io("find the working directory", source))?
            .display()
            .to_string(),
        other => other.to_string(),
    })
}

/// Returns the models that private daemons load.
pub(super) fn models(pair: &PairChoice) -> Vec<ModelRef> {
    let adapter = match &pair.exit {
        Exit::Adapter(adapter) => Some(adapter),
        Exit::Chosen | Exit::Layer(_) => None,
    };
    [Some(&pair.target), pair.draft.as_ref(), adapter]
        .into_iter()
        .flatten()
        .filter_map(|model| model.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(toml: &str) -> (Option<Value>, Option<Value>) {
        let mut table: Table = toml.parse().unwrap();
        (table.remove("default_pair"), table.remove("pairs"))
    }

    fn target(name: &str, toml: &str) -> Result<String, String> {
        let (default, pairs) = pairs(toml);
        configured(name, default.as_ref(), pairs, Path::new("/etc/tandem"))
            .map(|pair| pair["target"].as_str().unwrap().to_owned())
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_pair_is_the_one_that_the_daemon_would_take() {
        assert_eq!(target("", ""), Ok(ModelRef::default_target().to_string()));
        assert_eq!(
            target("", "[pairs.one]\ntarget = \"./a.gguf\""),
            Ok("/etc/tandem/./a.gguf".to_owned())
        );
        let two = "default_pair = \"b\"\n[pairs.a]\ntarget = \"/a\"\n[pairs.b]\ntarget = \"/b\"";
        assert_eq!(target("", two), Ok("/b".to_owned()));
        assert_eq!(target("a", two), Ok("/a".to_owned()));
        let error = target("c", two).unwrap_err();
        assert!(error.contains("`c`") && error.contains("a, b"), "{error}");
    }

    #[test]
    fn what_drafts_follows_the_configuration_and_the_arguments() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let choose = |toml: &str, line: &[&str]| {
            let args = Line::parse_from(["bench"].iter().chain(line)).args;
            choice(&args, &toml.parse().unwrap(), true).unwrap()
        };
        let model = choose("target = \"/t\"\ndraft = \"/d\"\ncontext_length = 99", &[]);
        assert_eq!(
            (model.draft.as_deref(), model.usual.drafts),
            (Some("/d"), Drafts::Model)
        );
        assert_eq!((model.exit, model.context_length), (Exit::Chosen, Some(99)));
        let own = choose("target = \"/t\"\ndraft = \"self\"\nexit_layer = 4", &[]);
        assert_eq!(
            (own.draft, own.usual.drafts, own.exit),
            (None, Drafts::Own, Exit::Layer(4))
        );
        let without = choose(
            "target = \"/t\"\ndraft = \"/d\"",
            &["--draft", "none", "--exit-adapter", "/x"],
        );
        assert_eq!(without.usual.drafts, Drafts::Nothing);
        assert_eq!(without.exit, Exit::Adapter("/x".to_owned()));
    }
}
