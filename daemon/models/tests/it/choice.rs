//! Which file of a repository is chosen, through real pulls.

use crate::hub::REPO;
use crate::world::{World, noise};

/// The name of the file that `pick` chooses among `files`, or the error.
fn choose(files: &[&str], pick: &str) -> Result<String, String> {
    let world = World::new();
    for (index, file) in files.iter().enumerate() {
        world.hub.add(file, &noise(index + 10));
    }
    let path = world
        .pull(&format!("{REPO}{pick}"))
        .0
        .map_err(|error| error.to_string())?;
    Ok(path
        .file_name()
        .expect("it names a file")
        .display()
        .to_string())
}

#[test]
fn a_quantization_is_matched_as_a_whole_word() {
    let files = [
        "m-Q4_K.gguf",
        "m-Q4_K_M.gguf",
        "m-q4_k_s.gguf",
        "m.IQ4_XS.gguf",
        "mmproj-F16.gguf",
    ];
    assert_eq!(choose(&files, ":Q4_K").unwrap(), "m-Q4_K.gguf");
    assert_eq!(choose(&files, ":q4_k_m").unwrap(), "m-Q4_K_M.gguf");
    assert_eq!(choose(&files, ":Q4_K_S").unwrap(), "m-q4_k_s.gguf");
    assert_eq!(choose(&files, "").unwrap(), "m-Q4_K_M.gguf");
    for none in [":K_M", ":Q4", ":Q4_XS", ":F16"] {
        let error = choose(&files, none).unwrap_err();
        assert!(
            error.contains("m-Q4_K.gguf") && !error.contains("mmproj"),
            "{none}: {error}"
        );
    }
}

#[test]
fn without_a_name_the_only_model_is_meant_and_no_other() {
    assert_eq!(
        choose(&["x.F32.gguf", "mmproj-x.gguf", "README.md"], "").unwrap(),
        "x.F32.gguf"
    );
    let error = choose(&["x.F32.gguf", "x.F16.gguf"], "").unwrap_err();
    assert!(
        error.contains("x.F32.gguf") && error.contains("x.F16.gguf"),
        "{error}"
    );
    let error = choose(&["model.safetensors"], "").unwrap_err();
    assert!(error.contains("holds no GGUF file"), "{error}");
}

#[test]
fn an_ambiguous_quantization_lists_what_matches() {
    let error = choose(&["a.Q8_0.gguf", "b.Q8_0.gguf", "c.Q4_0.gguf"], ":Q8_0").unwrap_err();
    assert!(
        error.contains("a.Q8_0.gguf") && error.contains("b.Q8_0.gguf"),
        "{error}"
    );
    assert!(!error.contains("c.Q4_0.gguf"), "{error}");
}

#[test]
fn a_split_model_is_refused() {
    let files = [
        "m-Q8_0-00001-of-00002.gguf",
        "m-Q8_0-00002-of-00002.gguf",
        "m-Q4_0.gguf",
    ];
    for pick in [":Q8_0", ":m-Q8_0-00001-of-00002.gguf"] {
        let error = choose(&files, pick).unwrap_err();
        assert!(
            error.contains("one part of a split model"),
            "{pick}: {error}"
        );
    }
    assert_eq!(choose(&files, ":Q4_0").unwrap(), "m-Q4_0.gguf");
}
