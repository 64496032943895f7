//! This build: its version, what it computes on, how it was optimized.

use super::{Finding, Mark, of};

pub(super) fn check() -> Vec<Finding> {
    let features = features();
    let version = env!("CARGO_PKG_VERSION");
    vec![
        of("build", "version")
            .ok(format!("{version}, computes on {}", features.join(", ")))
            .value("version", version)
            .value("features", features),
        profile(cfg!(debug_assertions)),
    ]
}

/// What this build can compute on.
fn features() -> Vec<&'static str> {
    let compiled = [
        ("cpu", true),
        ("metal", cfg!(feature = "metal")),
        ("cuda", cfg!(feature = "cuda")),
    ];
    let compiled = compiled.into_iter().filter(|(_, is_in)| *is_in);
    compiled.map(|(name, _)| name).collect()
}

fn profile(is_debug: bool) -> Finding {
    let (mark, name) = match is_debug {
        true => (Mark::Warning, "debug"),
        false => (Mark::Ok, "release"),
    };
    let finding = of("build", "profile")
        .with(mark, format!("{name} build"))
        .value("profile", name);
    match is_debug {
        true => finding
            .advise("it is slow, and its times mean nothing: build with `cargo build --release`"),
        false => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_build_is_a_warning() {
        let finding = profile(true);
        assert_eq!(finding.mark, Mark::Warning);
        assert!(finding.advice.unwrap().contains("--release"));
        assert_eq!(profile(false).mark, Mark::Ok);
    }
}
