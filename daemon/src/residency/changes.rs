//! What a new configuration makes different.

use tandem_proto::v1;

use super::Recipe;
use crate::config::Config;

/// Names of pairs by what becomes of them, each list in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    /// Another load is needed.
    pub(crate) changed: Vec<String>,
    /// The same as before, and loaded again because they had failed.
    pub(crate) retried: Vec<String>,
    /// The same as before, tried again, and still not loaded; with the reason.
    pub(crate) failed: Vec<(String, String)>,
    /// Keys that need a restart.
    pub(crate) restart_needed: Vec<String>,
}

impl Changes {
    /// Compares two configurations; `failed` says which pairs could not be loaded.
    pub(crate) fn between(old: &Config, new: &Config, failed: impl Fn(&str) -> bool) -> Self {
        let mut changes = Self::default();
        for (name, pair) in &new.pairs {
            let list = match old.pairs.get(name) {
                None => &mut changes.added,
                Some(before) if Recipe::new(old, before) != Recipe::new(new, pair) => {
                    &mut changes.changed
                }
                Some(_) if failed(name) => &mut changes.retried,
                Some(_) => continue,
            };
            list.push(name.clone());
        }
        let removed = old
            .pairs
            .keys()
            .filter(|name| !new.pairs.contains_key(*name));
        changes.removed = removed.cloned().collect();
        if old.server.max_message_bytes != new.server.max_message_bytes {
            changes
                .restart_needed
                .push("server.max_message_bytes".to_owned());
        }
        changes
    }

    /// Whether a pair is to be loaded again already.
    pub(super) fn has(&self, name: &str) -> bool {
        self.to_check().any(|other| other == name)
    }

    /// Returns the pairs whose files have to be looked at.
    pub(crate) fn to_check(&self) -> impl Iterator<Item = &String> {
        self.added.iter().chain(&self.changed).chain(&self.retried)
    }
}

impl From<Changes> for v1::ReloadResponse {
    fn from(changes: Changes) -> Self {
        Self {
            added: changes.added,
            removed: changes.removed,
            changed: changes.changed,
            retried: changes.retried,
            failed: changes
                .failed
                .into_iter()
                .map(|(pair, error)| v1::FailedPair { pair, error })
                .collect(),
            restart_needed: changes.restart_needed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text, Path::new("/c/config.toml")).expect("valid")
    }

    const OLD: &str =
        "default_pair = \"a\"\n[pairs.a]\ntarget = \"./a\"\n[pairs.b]\ntarget = \"./b\"\n";

    fn compare(new: &str) -> Changes {
        Changes::between(&config(OLD), &config(new), |name| name == "b")
    }

    #[test]
    fn pairs_come_go_and_change() {
        assert_eq!(
            Changes::between(&config(OLD), &config(OLD), |_| false),
            Changes::default()
        );
        let new = OLD.replace("pairs.b", "pairs.c").replace("./a", "./other");
        let changes = compare(&new);
        assert_eq!(changes.added, ["c"]);
        assert_eq!(changes.removed, ["b"]);
        assert_eq!(changes.changed, ["a"]);
        assert!(changes.retried.is_empty(), "what is removed is not retried");
    }

    #[test]
    fn what_no_load_shows_is_no_change() {
        let new = format!(
            "{OLD}keep_alive = \"5m\"\n[memory]\nbudget = \"1GB\"\n[server]\nmax_queue = 3\nmax_message_bytes = 65536"
        );
        let changes = compare(&new);
        assert!(changes.changed.is_empty() && changes.added.is_empty());
        assert_eq!(changes.retried, ["b"], "it had failed");
        assert_eq!(changes.restart_needed, ["server.max_message_bytes"]);
    }

    #[test]
    fn how_to_compute_is_part_of_every_pair() {
        for more in [
            "[engine]\nthreads = 3",
            "[speculation]\npolicy = \"fixed\"\ndraft_length = 3",
            "[server]\nmax_concurrent = 3",
        ] {
            assert_eq!(
                compare(&format!("{OLD}{more}")).changed,
                ["a", "b"],
                "{more}"
            );
        }
    }
}
