//! The file as it is written, and its way to a checked [`Config`].

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use tandem_models::ModelRef;

use super::residency::{MemoryKeys, ResidencyConfig, ResidencyKeys};
use super::speculation::{DraftKeys, SpeculationKeys};
use super::suggest::{explain, suggestion};
use super::{
    Config, ConfigError, DeviceChoice, EngineConfig, PairConfig, ServerConfig, parse_duration,
    parse_size,
};

/// Name of the pair that exists where none is configured.
pub const DEFAULT_PAIR_NAME: &str = "default";

const DEFAULT_MAX_CONCURRENT: usize = 8;
const DEFAULT_MAX_QUEUE: usize = 64;
const DEFAULT_DRAIN_SECONDS: u64 = 20;
/// Far longer than any step of a machine that works.
const DEFAULT_HANG_AFTER: Duration = Duration::from_secs(60);
/// Holds some models of every size that a desktop runs, and is a small part of its disk.
const DEFAULT_PREPARED_LIMIT: u64 = 32 << 30;
const DEFAULT_MAX_MESSAGE_BYTES: usize = 16 << 20;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    default_pair: Option<String>,
    #[serde(default)]
    pairs: BTreeMap<String, Pair>,
    #[serde(default)]
    server: Server,
    #[serde(default)]
    memory: MemoryKeys,
    #[serde(default)]
    residency: ResidencyKeys,
    #[serde(default)]
    engine: Engine,
    #[serde(default)]
    speculation: SpeculationKeys,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    target: String,
    draft: Option<String>,
    exit_adapter: Option<String>,
    exit_layer: Option<usize>,
    context_length: Option<usize>,
    keep_alive: Option<String>,
    preload: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    max_concurrent: Option<usize>,
    max_queue: Option<usize>,
    drain_seconds: Option<u64>,
    max_message_bytes: Option<usize>,
    hang_after: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Engine {
    device: Option<DeviceChoice>,
    draft_device: Option<DeviceChoice>,
    threads: Option<usize>,
    max_step_rows: Option<usize>,
    prepared: Option<bool>,
    prepared_limit: Option<String>,
}

impl File {
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            ConfigError::Syntax {
                path: path.to_owned(),
                line: text.as_bytes()[..start]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count()
                    + 1,
                problem: explain(error.message()),
            }
        })
    }

    pub(super) fn check(self, path: &Path) -> Result<Config, ConfigError> {
        let bad = |key: &str, problem: String| ConfigError::Value {
            path: path.to_owned(),
            key: key.to_owned(),
            problem,
        };
        let within = |key: &str, value: usize, least: usize, most: usize| {
            if (least..=most).contains(&value) {
                Ok(value)
            } else {
                Err(bad(key, format!("{value} is not from {least} to {most}")))
            }
        };

        let directory = path.parent().unwrap_or(Path::new(""));
        let residency = self
            .residency
            .check(ResidencyConfig::default())
            .map_err(|(field, problem)| bad(&format!("residency.{field}"), problem))?;
        let mut pairs = BTreeMap::new();
        for (name, pair) in self.pairs {
            let key = |field: &str| format!("pairs.{name}.{field}");
            let source = |text: &str| model(text, directory);
            let target = source(&pair.target).map_err(|problem| bad(&key("target"), problem))?;
            let draft = DraftKeys {
                draft: pair.draft,
                exit_adapter: pair.exit_adapter,
                exit_layer: pair.exit_layer,
            };
            let draft = draft
                .check(&target, &source)
                .map_err(|(field, problem)| bad(&key(field), problem))?;
            let context_length = match pair.context_length {
                Some(tokens) => Some(within(&key("context_length"), tokens, 16, 1 << 24)?),
                None => None,
            };
            let keys = ResidencyKeys {
                keep_alive: pair.keep_alive,
                preload: pair.preload,
            };
            let residency = keys
                .check(residency)
                .map_err(|(field, problem)| bad(&key(field), problem))?;
            pairs.insert(
                name.clone(),
                PairConfig {
                    target,
                    draft,
                    context_length,
                    residency,
                },
            );
        }
        if pairs.is_empty() {
            let pair = PairConfig {
                residency,
                ..PairConfig::built_in()
            };
            pairs.insert(DEFAULT_PAIR_NAME.to_owned(), pair);
        }

        let drain = within(
            "server.drain_seconds",
            to_usize(self.server.drain_seconds.unwrap_or(DEFAULT_DRAIN_SECONDS)),
            0,
            3600,
        )?;
        let max_message_bytes = self
            .server
            .max_message_bytes
            .unwrap_or(DEFAULT_MAX_MESSAGE_BYTES);
        let max_step_rows = match self.engine.max_step_rows {
            Some(rows) => Some(within("engine.max_step_rows", rows, 1, 1 << 16)?),
            None => None,
        };
        let prepared_limit = match self.engine.prepared_limit.as_deref() {
            Some(text) => {
                parse_size(text).map_err(|error| bad("engine.prepared_limit", error.to_string()))?
            }
            None => DEFAULT_PREPARED_LIMIT,
        };
        let threads = match self.engine.threads {
            Some(threads) => NonZeroUsize::new(within("engine.threads", threads, 1, 256)?),
            None => None,
        };
        let hang_after = match self.server.hang_after.as_deref() {
            Some(text) => {
                parse_duration(text).map_err(|error| bad("server.hang_after", error.to_string()))?
            }
            None => DEFAULT_HANG_AFTER,
        };
        let max_concurrent = self.server.max_concurrent.unwrap_or(DEFAULT_MAX_CONCURRENT);
        Ok(Config {
            path: Some(path.to_owned()),
            default_pair: choose_default(self.default_pair, &pairs)
                .map_err(|problem| bad("default_pair", problem))?,
            pairs,
            server: ServerConfig {
                max_concurrent: within("server.max_concurrent", max_concurrent, 1, 1024)?,
                max_queue: within(
                    "server.max_queue",
                    self.server.max_queue.unwrap_or(DEFAULT_MAX_QUEUE),
                    0,
                    1 << 16,
                )?,
                drain: Duration::from_secs(drain as u64),
                max_message_bytes: within(
                    "server.max_message_bytes",
                    max_message_bytes,
                    64 << 10,
                    1 << 30,
                )?,
                hang_after,
            },
            memory: self
                .memory
                .check()
                .map_err(|(field, problem)| bad(&format!("memory.{field}"), problem))?,
            speculation: self
                .speculation
                .check()
                .map_err(|(field, problem)| bad(&format!("speculation.{field}"), problem))?,
            engine: EngineConfig {
                device: self.engine.device.unwrap_or(DeviceChoice::Auto),
                draft_device: self.engine.draft_device,
                threads,
                max_step_rows,
                prepared_limit: self
                    .engine
                    .prepared
                    .unwrap_or(true)
                    .then_some(prepared_limit),
            },
        })
    }
}

/// Reads a model's name or path; a relative path starts at `directory`.
fn model(text: &str, directory: &Path) -> Result<ModelRef, String> {
    match text.parse() {
        Ok(ModelRef::Path(path)) if !path.starts_with("~") => {
            Ok(ModelRef::Path(directory.join(path)))
        }
        Ok(model) => Ok(model),
        Err(error) => Err(format!(
            "{error}; a path to a file starts with /, ./, ../ or ~/"
        )),
    }
}

/// Saturates: what does not fit is out of every range that is checked.
fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Without `default_pair`, the pair of that name or the only one there is serves requests that name none.
fn choose_default(
    named: Option<String>,
    pairs: &BTreeMap<String, PairConfig>,
) -> Result<String, String> {
    let names: Vec<&str> = pairs.keys().map(String::as_str).collect();
    match named {
        Some(name) if pairs.contains_key(&name) => Ok(name),
        Some(name) => Err(format!(
            "there is no pair \"{name}\"{}",
            suggestion(&name, &names)
        )),
        None if pairs.contains_key(DEFAULT_PAIR_NAME) => Ok(DEFAULT_PAIR_NAME.to_owned()),
        None if names.len() == 1 => Ok(names[0].to_owned()),
        None => Err(format!(
            "several pairs exist; name one of {}",
            names.join(", ")
        )),
    }
}
