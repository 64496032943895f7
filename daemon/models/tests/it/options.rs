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

#[test]
fn older_names_and_variables_in_values_count_as_they_do_in_python() {
    let at = |vars: &[(&str, &str)]| options(vars).unwrap().hub_cache;
    let home = ("HOME", "/h");
    assert_eq!(
        at(&[home, ("HUGGINGFACE_HUB_CACHE", "/old")]),
        Path::new("/old")
    );
    let both = [
        home,
        ("HUGGINGFACE_HUB_CACHE", "/old"),
        ("HF_HUB_CACHE", "/new"),
    ];
    assert_eq!(at(&both), Path::new("/new"));
    assert_eq!(at(&[home, ("HF_HOME", "$HOME/hf")]), Path::new("/h/hf/hub"));
    assert_eq!(
        at(&[home, ("HF_HOME", "${HOME}x/$NONE/y")]),
        Path::new("/hx/$NONE/y/hub")
    );

    let token = |vars: &[(&str, &str)]| options(vars).unwrap().token;
    assert_eq!(
        token(&[home, ("HUGGING_FACE_HUB_TOKEN", "hf_old")]).as_deref(),
        Some("hf_old")
    );
    assert_eq!(
        token(&[
            home,
            ("HF_TOKEN", "hf_x"),
            ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
        ]),
        None
    );
    assert_eq!(
        token(&[home, ("HF_TOKEN", "two words\u{7}")]),
        None,
        "no header can hold it"
    );

    assert!(
        options(&[home, ("TRANSFORMERS_OFFLINE", "YES")])
            .unwrap()
            .offline
    );
    assert!(!options(&[home, ("HF_HUB_OFFLINE", "0")]).unwrap().offline);
    let proxied = options(&[
        home,
        ("HTTPS_PROXY", "http://me:secret@p:1"),
        ("NO_PROXY", "a,b"),
    ])
    .unwrap();
    assert_eq!(proxied.proxy.as_deref(), Some("http://me:secret@p:1"));
    assert_eq!(proxied.no_proxy, ["a", "b"]);
    assert!(!format!("{proxied:?}").contains("secret"));
}
