//! The configuration file: what it may say, what it means, and what it answers to mistakes.

use std::path::Path;
use std::time::Duration;

use tandem_daemon::config::{
    Budget, Config, ConfigError, DEFAULT_PAIR_NAME, DeviceChoice, DraftConfig, KeepAlive,
};
use tandem_engine::policy::{Pipelined, Policy};
use tandem_models::ModelRef;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("/etc/tandem/config.toml"))
}

fn error(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn the_example_is_the_default() {
    let example = parse(include_str!("../config.example.toml")).expect("the example is valid");
    assert_eq!(
        Config {
            path: None,
            ..example
        },
        Config::built_in()
    );
}

#[test]
fn the_commented_keys_of_the_example_are_keys() {
    let uncommented: String = include_str!("../config.example.toml")
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest)
                if rest
                    .split_once(" = ")
                    .is_some_and(|(key, _)| !key.contains(' ')) =>
            {
                rest
            }
            _ => line,
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    let config = parse(&uncommented).expect("commented keys are valid");
    assert_eq!(config.pairs[DEFAULT_PAIR_NAME].context_length, Some(2048));
    assert_eq!(config.engine.max_step_rows, Some(64));
}

#[test]
fn everything_can_be_set() {
    let config = parse(
        r#"
        default_pair = "code"
        [pairs.code]
        target = "./big.gguf"
        draft = "~/small.gguf"
        context_length = 4096
        keep_alive = "5m"
        preload = true
        [pairs.chat]
        target = "org/repo:Q4_K_M"
        draft = "none"
        [server]
        max_concurrent = 2
        max_queue = 0
        drain_seconds = 3
        max_message_bytes = 65536
        hang_after = "5s"
        [memory]
        budget = "3.0GB"
        restore_after = "1.5s"
        [residency]
        keep_alive = "never"
        preload = false
        [engine]
        device = "cpu"
        draft_device = "cpu"
        max_step_rows = 32
        prepared_limit = "2 GB"
        [speculation]
        policy = "fixed"
        draft_length = 5
        lookup_history = "1 MiB"
        pipelined = "never"
        "#,
    )
    .expect("valid");
    assert_eq!(config.default_pair, "code");
    let code = &config.pairs["code"];
    assert_eq!(
        code.target,
        ModelRef::Path("/etc/tandem/./big.gguf".into()),
        "relative to the file's directory"
    );
    let small = ModelRef::Path("~/small.gguf".into());
    assert_eq!(code.draft, DraftConfig::Model(small));
    assert_eq!(code.context_length, Some(4096));
    assert_eq!(config.pairs["chat"].draft, DraftConfig::None);
    assert_eq!(config.server.max_concurrent, 2);
    assert_eq!(config.server.max_queue, 0);
    assert_eq!(config.server.drain, Duration::from_secs(3));
    assert_eq!(config.server.max_message_bytes, 65536);
    assert_eq!(config.memory.budget, Budget::Bytes(3_000_000_000));
    assert_eq!(config.memory.restore_after, Duration::from_millis(1500));
    assert_eq!(config.server.hang_after, Duration::from_secs(5));
    let (code, chat) = (code.residency, config.pairs["chat"].residency);
    assert_eq!(code.keep_alive, KeepAlive::For(Duration::from_secs(300)));
    assert_eq!(chat.keep_alive, KeepAlive::For(Duration::ZERO));
    assert!(code.preload && !chat.preload);
    assert_eq!(config.engine.device, DeviceChoice::Cpu);
    assert_eq!(config.engine.draft_device, Some(DeviceChoice::Cpu));
    assert_eq!(config.engine.max_step_rows, Some(32));
    assert_eq!(config.engine.prepared_limit, Some(2_000_000_000));
    assert_eq!(config.speculation.policy, Policy::Fixed(5));
    assert_eq!(config.speculation.lookup_history, Some(1 << 20));
    assert_eq!(config.speculation.pipelined, Pipelined::Never);
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest_key() {
    for (text, expected) in [
        (
            "defualt_pair = \"x\"",
            ":1: unknown key \"defualt_pair\"; did you mean \"default_pair\"?",
        ),
        (
            "\n\n[server]\nmax_queues = 3",
            ":4: unknown key \"max_queues\"; did you mean \"max_queue\"?",
        ),
        (
            "[pairs.a]\ntarget = \"a/b\"\n\ndraught = \"c/d\"",
            ":4: unknown key \"draught\"; did you mean \"draft\"?",
        ),
        (
            "[sever]\nmax_queue = 1",
            ":1: unknown key \"sever\"; did you mean \"server\"?",
        ),
        (
            "[memory]\ncompletely_else = 1",
            ":2: unknown key \"completely_else\"; known: budget, restore_after",
        ),
        (
            "[speculation]\npolicy = \"goodputt\"",
            ":2: unknown value \"goodputt\"; did you mean \"goodput\"?",
        ),
        (
            "[pairs.a]\ntarget = \"a/b\"\nexit_layers = 6",
            ":3: unknown key \"exit_layers\"; did you mean \"exit_layer\"?",
        ),
        (
            "[engine]\ndevice = \"metall\"",
            ":2: unknown value \"metall\"; did you mean \"metal\"?",
        ),
    ] {
        let error = error(text);
        assert_eq!(
            error,
            format!("/etc/tandem/config.toml{expected}"),
            "for {text:?}"
        );
    }
}

#[test]
fn mistakes_are_named_with_what_is_possible() {
    for (text, expected) in [
        (
            "[server]\nmax_concurrent = 0",
            "server.max_concurrent: 0 is not from 1 to 1024",
        ),
        (
            "[server]\nmax_message_bytes = 1",
            "server.max_message_bytes: 1 is not from 65536 to 1073741824",
        ),
        (
            "[server]\ndrain_seconds = 100000",
            "server.drain_seconds: 100000 is not from 0 to 3600",
        ),
        (
            "[memory]\nbudget = \"3\"",
            "memory.budget: \"3\" is not a size",
        ),
        (
            "[engine]\nprepared_limit = \"much\"",
            "engine.prepared_limit: \"much\" is not a size",
        ),
        (
            "[engine]\nmax_step_rows = 0",
            "engine.max_step_rows: 0 is not from 1 to 65536",
        ),
        ("[pairs.a]\ntarget = \"nonsense\"", "pairs.a.target: "),
        (
            "[pairs.a]\ntarget = \"a/b\"\ncontext_length = 1",
            "pairs.a.context_length: 1 is not from 16",
        ),
        (
            "default_pair = \"defautl\"",
            "default_pair: there is no pair \"defautl\"; did you mean \"default\"?",
        ),
        (
            "[pairs.a]\ntarget = \"a/b\"\n[pairs.b]\ntarget = \"a/b\"",
            "default_pair: several pairs exist; name one of a, b",
        ),
        (
            "[residency]\nkeep_alive = \"always\"",
            "residency.keep_alive: \"always\" is not a time",
        ),
        (
            "[pairs.a]\ntarget = \"a/b\"\nkeep_alive = \"5\"",
            "pairs.a.keep_alive: \"5\" is not a time; write a number and a unit (ms, s, m, h), such as \"5m\", \"forever\" or",
        ),
        (
            "[memory]\nrestore_after = \"soon\"",
            "memory.restore_after: \"soon\" is not a time",
        ),
        (
            "[server]\nhang_after = \"-1s\"",
            "server.hang_after: \"-1s\" is not a time",
        ),
        ("[pairs.a]\ndraft = \"a/b\"", ":1: missing field `target`"),
        ("[server]\nmax_queue = -1", ":2: invalid value"),
        ("[server]\nmax_queue = \"many\"", ":2: invalid type"),
        ("[server\nmax_queue = 1", ":1: "),
    ] {
        let error = error(text);
        assert!(error.contains(expected), "for {text:?}: {error}");
    }
}

#[test]
fn one_pair_of_another_name_is_the_default() {
    assert_eq!(
        parse("[pairs.only]\ntarget = \"a/b\"")
            .expect("valid")
            .default_pair,
        "only"
    );
}

#[test]
fn a_missing_file_is_the_built_in_configuration_unless_somebody_named_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("config.toml");
    assert_eq!(
        Config::load(&path, false).expect("no file is fine"),
        Config::built_in()
    );
    let error = Config::load(&path, true).expect_err("named").to_string();
    assert!(error.contains("config.toml"), "{error}");
    std::fs::write(&path, "[server]\nmax_queue = 1").expect("written");
    let config = Config::load(&path, false).expect("valid");
    assert_eq!((config.server.max_queue, config.path), (1, Some(path)));
}

#[test]
fn the_budget_is_a_share_a_profile_or_a_number() {
    let gb = |gb: u64| gb * 1_000_000_000;
    assert_eq!(Budget::Auto.bytes(gb(10), None), gb(6));
    assert_eq!(Budget::Auto.bytes(gb(10), Some(gb(5))), gb(5));
    assert_eq!(Budget::Auto.bytes(gb(10), Some(gb(8))), gb(6));
    assert_eq!(Budget::Bytes(5).bytes(10, Some(1)), 5);
    let mobile = parse("[memory]\nbudget = \"mobile\"").expect("valid");
    assert_eq!(mobile.memory.budget, Budget::Mobile);
    assert_eq!(mobile.budget(gb(8), None), gb(3), "the cap");
    assert_eq!(mobile.budget(gb(4), None), 2_500_000_000, "the headroom");
    assert_eq!(mobile.budget(gb(1), None), 0);
}

#[test]
fn prepared_weights_can_be_turned_off() {
    let off = parse("[engine]\nprepared = false\nprepared_limit = \"2 GB\"").expect("valid");
    assert_eq!(off.engine.prepared_limit, None);
    assert_eq!(Config::built_in().engine.prepared_limit, Some(32 << 30));
}

#[test]
fn what_never_ends_is_no_config_file() {
    let refused = |path: &Path| Config::load(path, true).unwrap_err().to_string();
    let text = refused(Path::new("/dev/zero"));
    assert!(text.contains("more than 1048576 bytes"), "{text}");
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("config.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let text = refused(&pipe);
    assert!(text.contains("it is a pipe"), "{text}");
}
