//! Compiles the kernels of the cuda backend; without that feature there is nothing to do.
//!
//! An empty `NVCC` leaves the kernels out, so that the Rust code around them can be checked where there is no such compiler.
//! What is built that way says so where a GPU is asked for.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KERNELS: &str = "src/backend/cuda/kernels";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    println!("cargo:rerun-if-changed={KERNELS}");
    println!("cargo:rerun-if-env-changed=NVCC");
    println!("cargo:rerun-if-env-changed=CUDA_COMPUTE_CAP");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names it"));
    let nvcc = env::var("NVCC").unwrap_or_else(|_| "nvcc".to_owned());
    for name in ["attention", "cache", "lead", "matmul", "pack", "rows"] {
        let to = out.join(name).with_extension("fatbin");
        if nvcc.is_empty() {
            fs::write(&to, []).expect("cargo's directory can be written");
        } else {
            compile(
                &nvcc,
                &Path::new(KERNELS).join(name).with_extension("cu"),
                &to,
            );
        }
    }
}

/// Machine code for one kind of GPU, and for all others from compute capability 8.0 on what their driver can compile.
fn compile(nvcc: &str, source: &Path, to: &Path) {
    let chip = env::var("CUDA_COMPUTE_CAP").unwrap_or_else(|_| "90".to_owned());
    let chip = chip.replace('.', "");
    let status = Command::new(nvcc)
        .args(["-O3", "-std=c++17", "--fatbin", "-o"])
        .arg(to)
        .arg(source)
        .arg(format!("-gencode=arch=compute_{chip},code=sm_{chip}"))
        .arg("-gencode=arch=compute_80,code=compute_80")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{nvcc} failed on {}: {status}", source.display()),
        Err(error) => panic!(
            "the feature `cuda` needs NVIDIA's compiler, and `{nvcc}` cannot be started: {error}; put it on PATH or name it in NVCC"
        ),
    }
}
