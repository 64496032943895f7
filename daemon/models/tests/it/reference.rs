//! The grammar of model references.

use std::path::PathBuf;

use tandem_models::{
    Bundled, DEFAULT_DRAFT, DEFAULT_EXIT_ADAPTER, DEFAULT_TARGET, HubRef, ModelRef, Pick,
};

fn hub(repo: &str, pick: Pick, revision: Option<&str>) -> ModelRef {
    let (repo, revision) = (repo.to_owned(), revision.map(str::to_owned));
    ModelRef::Hub(HubRef {
        repo,
        pick,
        revision,
    })
}

#[test]
fn each_form_means_one_thing_and_reads_back() {
    let path = |text: &str| ModelRef::Path(PathBuf::from(text));
    let file = |name: &str| Pick::File(name.to_owned());
    let quant = |name: &str| Pick::Quant(name.to_owned());
    for (text, meaning) in [
        ("/models/a.gguf", path("/models/a.gguf")),
        ("/models/no-ending", path("/models/no-ending")),
        ("./a:b.gguf", path("./a:b.gguf")),
        ("../a b.gguf", path("../a b.gguf")),
        ("~/a.gguf", path("~/a.gguf")),
        ("a.gguf", path("a.gguf")),
        ("models/a.GGUF", path("models/a.GGUF")),
        ("org/repo-GGUF", hub("org/repo-GGUF", Pick::Default, None)),
        (
            "org/repo@v1.0",
            hub("org/repo", Pick::Default, Some("v1.0")),
        ),
        (
            "org/repo@refs/pr/1",
            hub("org/repo", Pick::Default, Some("refs/pr/1")),
        ),
        ("org/repo:Q4_K_M", hub("org/repo", quant("Q4_K_M"), None)),
        (
            "org/repo:a.Q8_0.gguf@main",
            hub("org/repo", file("a.Q8_0.gguf"), Some("main")),
        ),
        (
            "org/repo:sub/a.gguf",
            hub("org/repo", file("sub/a.gguf"), None),
        ),
        (
            "bundled:smollm2-draft-20m",
            ModelRef::Bundled(Bundled::SmolLm2Draft20m),
        ),
    ] {
        let parsed: ModelRef = text
            .parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parsed, meaning, "{text}");
        assert_eq!(parsed.to_string(), text);
    }
}

#[test]
fn what_means_nothing_is_refused_with_a_hint() {
    for text in [
        "",
        "smollm2",
        "org/",
        "repo:Q4_0",
        "org/repo/more",
        "org/repo:",
        "org/repo@",
        "org/repo:../a.gguf",
        "org/repo:a//b.gguf",
        "org/repo:sub/Q8_0",
        "org/repo@../main",
        "org/re po",
        "-org/repo",
        "org/..",
        "or--g/repo",
        "bundled:other",
        "https://huggingface.co/org/repo",
        "org/repo:a.gguf@/etc",
        "größe/x:Q4_0",
    ] {
        let error = text.parse::<ModelRef>().expect_err(text).to_string();
        assert!(
            error.contains("org/repo[:file-or-quant][@revision]"),
            "{text}: {error}"
        );
    }
}

#[test]
fn the_defaults_are_references() {
    assert_eq!(ModelRef::default_target().to_string(), DEFAULT_TARGET);
    assert_eq!(ModelRef::default_draft().to_string(), DEFAULT_DRAFT);
    let adapter = ModelRef::default_exit_adapter();
    assert_eq!(adapter.to_string(), DEFAULT_EXIT_ADAPTER);
    assert_eq!(DEFAULT_EXIT_ADAPTER.parse::<ModelRef>().unwrap(), adapter);
}

#[test]
fn a_reference_is_a_string_in_configuration() {
    let model: ModelRef = serde_json::from_str(r#""org/repo:Q4_0""#).unwrap();
    assert_eq!(serde_json::to_string(&model).unwrap(), r#""org/repo:Q4_0""#);
    assert!(serde_json::from_str::<ModelRef>(r#""nothing""#).is_err());
}
