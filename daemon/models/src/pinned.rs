//! What is known beforehand about the default target, whatever a server says.

use crate::{DEFAULT_TARGET, HubRef};

/// The facts of one file that Tandem pins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pinned {
    pub(crate) file: &'static str,
    pub(crate) commit: &'static str,
    pub(crate) sha256: &'static str,
    pub(crate) size_bytes: u64,
}

const DEFAULT_TARGET_FILE: Pinned = Pinned {
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    commit: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size_bytes: 98_362_432,
};

/// The facts of `model` where Tandem pins it.
pub(crate) fn pinned(model: &HubRef) -> Option<Pinned> {
    (model.to_string() == DEFAULT_TARGET).then_some(DEFAULT_TARGET_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_target_is_pinned_to_its_own_file_and_commit() {
        let Pinned { file, commit, .. } = DEFAULT_TARGET_FILE;
        assert!(DEFAULT_TARGET.ends_with(&format!(":{file}@{commit}")));
    }
}
