use std::path::PathBuf;
pub fn default_target() -> PathBuf {
    PathBuf::from(std::env::var("TANDEM_TEST_MODELS").expect("set"))
        .join("smollm2-135m-instruct-q4_1.gguf")
}

pub fn default_draft() -> PathBuf {
    PathBuf::from(std::env::var("TANDEM_TEST_MODELS").expect("set"))
        .join("smollm2-draft-20m-q8_0.gguf")
}
