//! The environment variables of the hub's cache.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use tandem_models::{ModelError, StoreOptions};

fn options(vars: &[(&str, &str)]) -> Result<StoreOptions, ModelError> {
    let var = |name: &str| {
        vars.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| OsString::from(value))
    };
    StoreOptions::from_vars(PathBuf::from("/data/models"), var)
}

#[test]
fn the_cache_is_where_python_has_it() {
    for (vars, cache) in [
        (&[("HOME", "/h")][..], "/h/.cache/huggingface/hub"),
        (
            &[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")],
            "/c/huggingface/hub",
        ),
        (&[("HOME", "/h"), ("HF_HOME", "~/hf")], "/h/hf/hub"),
        (&[("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/cache")], "/cache"),
        (
            &[("HOME", "/h"), ("HF_HOME", "")],
            "/h/.cache/huggingface/hub",
        ),
    ] {
        assert_eq!(
            options(vars).unwrap().hub_cache,
            Path::new(cache),
            "{vars:?}"
        );
    }
    assert!(matches!(options(&[]), Err(ModelError::NoHome)));
}

#[test]
fn the_hub_and_the_token_are_read_and_the_token_is_not_shown() {
    let home = tempfile::tempdir().unwrap();
    let hf_home = home.path().to_str().unwrap();
    let read = options(&[("HF_HOME", hf_home)]).unwrap();
    assert_eq!(
        (read.endpoint.as_str(), read.token),
        ("https://huggingface.co", None)
    );
    assert!(!read.offline);

    fs::write(home.path().join("token"), "hf_file\n").unwrap();
    assert_eq!(
        options(&[("HF_HOME", hf_home)]).unwrap().token.unwrap(),
        "hf_file"
    );
    let vars = [
        ("HF_HOME", hf_home),
        ("HF_TOKEN", "hf_env"),
        ("HF_ENDPOINT", "https://mirror.example/"),
        ("HF_HUB_OFFLINE", "1"),
    ];
    let read = options(&vars).unwrap();
    assert_eq!(read.token.as_deref(), Some("hf_env"));
    assert_eq!(read.endpoint, "https://mirror.example");
    assert!(read.offline);
    assert!(!format!("{read:?}").contains("hf_env"));
}
