//! The config file: a person's text, with any mistake in it.

use std::path::Path;

use tandem_daemon::config::Config;
use tandem_fuzz::{Target, check};

use crate::chain;

const EXAMPLE: &str = include_str!("../../../daemon/config.example.toml");

const WORDS: &[&[u8]] = &[
    b"[pairs.",
    b"[[",
    b"]]",
    b"target = ",
    b"draft = ",
    b"exit_layer = ",
    b"keep_alive = ",
    b"\"forever\"",
    b"budget = ",
    b"\"1.5 GiB\"",
    b"\"99999999999999999999 TiB\"",
    b"\"1e308h\"",
    b"\"-1s\"",
    b"'''",
    b"\"\"\"",
    b"\\u0000",
    b"{a={a=",
    b"[[[[[[[[",
    b"nan",
    b"inf",
    b"-0x8000000000000000",
    b"1979-05-27T07:32:00Z",
    b"bundled:",
    b"~/",
    b"a/b:c@d",
    "\u{2028}\u{feff}".as_bytes(),
];

#[test]
fn config_files() {
    let small = "default_pair = \"a\"\n[pairs.a]\ntarget = \"m.gguf\"\ndraft = \"none\"\nkeep_alive = \"5m\"\n\
        [memory]\nbudget = \"70%\"\n[engine]\nprepared_limit = \"3 GiB\"\n";
    let uncommented = EXAMPLE.replace("\n# ", "\n").replace("\n#", "\n");
    let target = Target {
        name: "config",
        words: WORDS,
        fixed_bytes: 256 << 10,
        // The tree of a TOML document has over a hundred bytes for each value, and a value can be two bytes.
        times: 256,
        seeds: vec![small.into(), EXAMPLE.into(), uncommented.into()],
    };
    check(&target, |input| {
        let Ok(text) = std::str::from_utf8(input) else {
            return "no UTF-8".to_owned();
        };
        match Config::parse(text, Path::new("/c/config.toml")) {
            Ok(config) => {
                assert!(config.pairs.contains_key(&config.default_pair));
                // Whatever is configured, a budget is a number.
                let budget = config.budget(16 << 30, Some(8 << 30));
                format!("{} pairs, budget {}", config.pairs.len(), budget > 0)
            }
            Err(error) => chain(&error),
        }
    });
}
