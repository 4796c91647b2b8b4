#!/usr/bin/env bash
# Builds the module that a browser runs: build.sh OUT.wasm. The same compiler makes the same bytes on any machine.
set -euo pipefail

toolchain=1.95.0
target=wasm32-unknown-unknown
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${CARGO_TARGET_DIR:-$root/target}/device
cargo_home=${CARGO_HOME:-$HOME/.cargo}

# No path of this machine is in the module.
flags="--remap-path-prefix=$root=/hdp_fast --remap-path-prefix=$cargo_home=/cargo"
export CARGO_ENCODED_RUSTFLAGS="${flags/ /$'\x1f'}"
unset RUSTFLAGS CARGO_BUILD_RUSTFLAGS
export CARGO_TARGET_DIR=$build CARGO_INCREMENTAL=0
export CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_OPT_LEVEL=z CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
export CARGO_PROFILE_RELEASE_PANIC=abort CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_DEBUG=false

arguments=(rustc --release --locked --quiet --package hdp-fast-device --target "$target" --crate-type cdylib)
cd "$root"
has_target() { [ -d "$(rustup run "$toolchain" rustc --print target-libdir --target "$target" 2>/dev/null)" ]; }
get_target() { rustup toolchain install "$toolchain" --profile minimal --target "$target" --no-self-update >/dev/null 2>&1; }
if command -v rustup >/dev/null && { has_target || get_target; }
then
  cargo "+$toolchain" "${arguments[@]}"
elif [ -d /usr/lib/rustlib/src/rust/library ]
then
  # Debian's compiler has no library for this target, but the library's sources (rust-web-src), and no linker (lld).
  echo "rustup has no library for $target: building it from Debian's sources, which makes other bytes" >&2
  linker=$(command -v rust-lld || command -v wasm-ld || find "$(rustc --print sysroot)" -name rust-lld -print -quit)
  [ -n "$linker" ] || { echo "error: there is no rust-lld or wasm-ld (Debian's lld)" >&2; exit 1; }
  RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker \
    /usr/bin/cargo "${arguments[@]}" --ignore-rust-version -Z build-std=core,alloc
else
  echo "error: rustup must have $target for Rust $toolchain, or Debian's rustc-web, cargo-web, rust-web-src and lld be installed" >&2
  exit 1
fi
install -m 644 "$build/$target/release/hdp_fast_device.wasm" "$1"
