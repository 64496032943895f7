//! What the keys of speculation may say, and what they answer to mistakes.

use std::path::Path;

use super::*;
use crate::config::{Config, ConfigError};

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("/etc/tandem/config.toml"))
}

#[test]
fn a_target_can_draft_for_itself() {
    let draft = |target: &str, keys: &str| {
        let text = format!("[pairs.a]\ntarget = \"{target}\"\ndraft = \"self\"\n{keys}");
        parse(&text).expect(&text).pairs["a"].draft.clone()
    };
    let default = ModelRef::default_target().to_string();
    let bundled = DraftConfig::Adapter(ModelRef::default_exit_adapter());
    assert_eq!(draft(&default, ""), bundled);
    assert_eq!(draft("org/repo", ""), DraftConfig::MeasuredLayer);
    assert_eq!(
        draft(&default, "exit_adapter = \"none\""),
        DraftConfig::MeasuredLayer
    );
    assert_eq!(draft(&default, "exit_layer = 6"), DraftConfig::Layer(6));
    assert_eq!(
        draft("org/repo", "exit_adapter = \"none\"\nexit_layer = 6"),
        DraftConfig::Layer(6)
    );
    let adapter = draft("org/repo", "exit_adapter = \"./exit.gguf\"");
    assert_eq!(
        adapter,
        DraftConfig::Adapter(ModelRef::Path("/etc/tandem/./exit.gguf".into()))
    );
}

#[test]
fn lookup_can_be_turned_off() {
    let off = parse("[speculation]\nlookup = false\npolicy = \"threshold\"").expect("valid");
    assert_eq!(off.speculation.lookup_history, None);
    assert_eq!(off.speculation.policy, Policy::Threshold);
}

#[test]
fn mistakes_are_named_with_what_is_possible() {
    for (text, expected) in [
        (
            "[pairs.a]\ntarget = \"a/b\"\ndraft = \"selfish\"",
            "pairs.a.draft: ",
        ),
        (
            "[pairs.a]\ntarget = \"a/b\"\nexit_layer = 6",
            "pairs.a.exit_layer: means nothing without draft = \"self\"",
        ),
        (
            "[pairs.a]\ntarget = \"a/b\"\ndraft = \"c/d\"\nexit_adapter = \"e/f\"",
            "pairs.a.exit_adapter: means nothing without draft = \"self\"",
        ),
        (
            "[pairs.a]\ntarget = \"a/b\"\ndraft = \"self\"\nexit_adapter = \"e/f\"\nexit_layer = 6",
            "pairs.a.exit_layer: the exit adapter says after how many layers it follows",
        ),
        (
            "[pairs.a]\ntarget = \"a/b\"\ndraft = \"self\"\nexit_layer = 0",
            "pairs.a.exit_layer: 0 is not from 1 to 1024",
        ),
        (
            "[pairs.a]\ntarget = \"a/b\"\ndraft = \"self\"\nexit_adapter = \"nonsense\"",
            "pairs.a.exit_adapter: ",
        ),
        (
            "[speculation]\npolicy = \"fixed\"",
            "speculation.draft_length: is missing",
        ),
        (
            "[speculation]\npolicy = \"fixed\"\ndraft_length = 64",
            "speculation.draft_length: 64 is not from 1 to 63",
        ),
        (
            "[speculation]\ndraft_length = 4",
            "speculation.draft_length: means nothing without policy = \"fixed\"",
        ),
        (
            "[speculation]\nlookup_history = \"much\"",
            "speculation.lookup_history: \"much\" is not a size",
        ),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "for {text:?}: {error}");
    }
}
