//! Generates the Rust types from the definition and compares them, byte for byte, with the ones checked in.

use std::error::Error;
use std::fs;
use std::path::Path;

/// Set to `1` to write the files instead of comparing them.
const REGENERATE: &str = "TANDEM_REGENERATE";
const FILES: [&str; 2] = ["tandem.v1.rs", "tandem.v1.bin"];

#[test]
fn generated_types_match_the_definition() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scratch = tempfile::tempdir()?;
    generate(&root.join("proto"), scratch.path())?;
    let checked_in = root.join("src/generated");
    for file in FILES {
        let fresh = fs::read(scratch.path().join(file))?;
        let target = checked_in.join(file);
        if std::env::var_os(REGENERATE).is_some_and(|value| value == "1") {
            fs::create_dir_all(&checked_in)?;
            fs::write(&target, &fresh)?;
            continue;
        }
        assert!(
            fs::read(&target).is_ok_and(|current| current == fresh),
            "{} is out of date; run `{REGENERATE}=1 cargo test -p tandem-proto --test bootstrap` and commit it",
            target.display()
        );
    }
    Ok(())
}

fn generate(definitions: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut compiler = protox::Compiler::new([definitions])?;
    compiler.include_source_info(true).include_imports(true);
    compiler.open_file("tandem/v1/tandem.proto")?;
    tonic_prost_build::configure()
        .out_dir(out)
        .emit_rerun_if_changed(false)
        // Ordered maps: equal requests encode to equal bytes.
        .btree_map(".")
        .compile_fds(compiler.file_descriptor_set())?;

    // Reflection answers with names and types; comments would only make the binary larger.
    let mut compiler = protox::Compiler::new([definitions])?;
    compiler.include_source_info(false).include_imports(true);
    compiler.open_file("tandem/v1/tandem.proto")?;
    fs::write(
        out.join("tandem.v1.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    Ok(())
}
