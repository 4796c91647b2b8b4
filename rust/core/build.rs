//! Tells whether the compiler has the AVX-512 and GFNI intrinsics, stable since Rust 1.89.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(has_gfni_intrinsics)");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(compiler).arg("--version").output();
    let text = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let minor = text.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") && minor.is_some_and(|m| m >= 89) {
        println!("cargo:rustc-cfg=has_gfni_intrinsics");
    }
}
