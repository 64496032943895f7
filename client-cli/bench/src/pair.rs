//! The pair that private daemons serve, and the configuration that makes them.

use toml::{Table, Value};

use crate::method::{Drafts, Serving};

/// A target and what may draft for it. Models are written as in the configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct PairChoice {
    /// The target.
    pub target: String,
    /// The draft model, if there is one.
    pub draft: Option<String>,
    /// How the target drafts for itself.
    pub exit: Exit,
    /// What the pair has as it is configured: what the method `default` uses.
    pub usual: Serving,
    /// Most tokens of prompt and output together; `None`: what the target was trained for.
    pub context_length: Option<u32>,
}

/// How a target drafts for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Exit {
    /// As the daemon chooses where nothing is said: with the adapter that comes with it, or at the layer that it measures to
    /// be best.
    #[default]
    Chosen,
    /// With this adapter.
    Adapter(String),
    /// After so many layers, without an adapter.
    Layer(u32),
}

impl PairChoice {
    /// Whether the pair has what a daemon is to serve.
    #[must_use]
    pub fn has(&self, drafts: Drafts) -> bool {
        drafts != Drafts::Model || self.draft.is_some()
    }

    /// Writes the configuration of a daemon that serves the pair with `serving` and nothing else; `settings` has the
    /// tables of the user's own configuration that say how models are computed.
    #[must_use]
    pub(crate) fn config(&self, serving: Serving, settings: &Table) -> String {
        let mut pair = Table::new();
        pair.insert("target".to_owned(), self.target.clone().into());
        let mut set = |key: &str, value: Value| {
            pair.insert(key.to_owned(), value);
        };
        match (serving.drafts, &self.draft) {
            (Drafts::Model, Some(draft)) => set("draft", draft.clone().into()),
            (Drafts::Model, None) | (Drafts::Nothing, _) => set("draft", "none".into()),
            (Drafts::Own, _) => {
                set("draft", "self".into());
                match &self.exit {
                    Exit::Chosen => {}
                    Exit::Adapter(file) => set("exit_adapter", file.clone().into()),
                    Exit::Layer(layers) => set("exit_layer", i64::from(*layers).into()),
                }
            }
        }
        if let Some(tokens) = self.context_length {
            set("context_length", i64::from(tokens).into());
        }
        let mut config = settings.clone();
        let pairs = Table::from_iter([("bench".to_owned(), Value::Table(pair))]);
        config.insert("default_pair".to_owned(), "bench".into());
        config.insert("pairs".to_owned(), pairs.into());
        put(&mut config, "speculation", "lookup", serving.lookup.into());
        // Nothing is lost when a private daemon is told to end.
        put(&mut config, "server", "drain_seconds", 0.into());
        config.to_string()
    }
}

fn put(config: &mut Table, table: &str, key: &str, value: Value) {
    let table = config.entry(table).or_insert_with(|| Table::new().into());
    if let Value::Table(table) = table {
        table.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice() -> PairChoice {
        PairChoice {
            target: "./a \"b\".gguf".to_owned(),
            draft: Some("bundled:d".to_owned()),
            exit: Exit::Chosen,
            usual: Serving {
                drafts: Drafts::Model,
                lookup: true,
            },
            context_length: Some(512),
        }
    }

    fn config(choice: &PairChoice, drafts: Drafts, lookup: bool) -> Table {
        let settings: Table =
            "[engine]\nthreads = 3\n[server]\nmax_queue = 2\n[speculation]\npolicy = \"threshold\""
                .parse()
                .unwrap();
        choice
            .config(Serving { drafts, lookup }, &settings)
            .parse()
            .unwrap()
    }

    #[test]
    fn only_what_is_served_is_configured() {
        let table = config(&choice(), Drafts::Nothing, false);
        let pair = &table["pairs"]["bench"];
        assert_eq!(pair["target"].as_str(), Some("./a \"b\".gguf"));
        assert_eq!(pair["draft"].as_str(), Some("none"));
        assert_eq!(pair["context_length"].as_integer(), Some(512));
        assert_eq!(table["speculation"]["lookup"].as_bool(), Some(false));
        let table = config(&choice(), Drafts::Model, true);
        assert_eq!(table["pairs"]["bench"]["draft"].as_str(), Some("bundled:d"));
        assert_eq!(table["speculation"]["lookup"].as_bool(), Some(true));
    }

    #[test]
    fn the_users_settings_stay() {
        let table = config(&choice(), Drafts::Model, true);
        assert_eq!(table["engine"]["threads"].as_integer(), Some(3));
        assert_eq!(table["server"]["max_queue"].as_integer(), Some(2));
        assert_eq!(table["speculation"]["policy"].as_str(), Some("threshold"));
    }

    #[test]
    fn a_target_drafts_for_itself_as_it_is_told() {
        for (exit, key) in [
            (Exit::Chosen, None),
            (Exit::Adapter("x".to_owned()), Some("exit_adapter")),
            (Exit::Layer(5), Some("exit_layer")),
        ] {
            let choice = PairChoice { exit, ..choice() };
            let table = config(&choice, Drafts::Own, false);
            let pair = table["pairs"]["bench"].as_table().unwrap();
            assert_eq!(pair["draft"].as_str(), Some("self"));
            for known in ["exit_adapter", "exit_layer"] {
                assert_eq!(pair.contains_key(known), key == Some(known), "{known}");
            }
        }
    }
}
