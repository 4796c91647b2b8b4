#!/usr/bin/env bash
# Builds an abi3 wheel for each target: build_wheels.sh OUT TARGET... A target is a triple of rustc, as
# x86_64-unknown-linux-gnu. Linux wheels are linked by zig against an old C library; for macOS and Windows call it there.
#
# WHEEL_BUILD_STD=yes builds Rust's standard library too, from Debian's sources: for machines whose rustup has no library for a
# target and cannot get one.
set -euo pipefail

out=$1
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
cargo_home=${CARGO_HOME:-$HOME/.cargo}
build=${CARGO_TARGET_DIR:-$root/build/wheels}

# No path of this machine is in a wheel, and no flag of it: kernels ask at run time what the processor has.
flags=("--remap-path-prefix=$root=/hdp_fast" "--remap-path-prefix=$cargo_home=/cargo")
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; echo "${flags[*]}")
export CARGO_ENCODED_RUSTFLAGS
unset RUSTFLAGS CARGO_BUILD_RUSTFLAGS
# Optimized as one program: 2 % smaller, for minutes more.
export CARGO_PROFILE_RELEASE_LTO=fat

if [ "${WHEEL_BUILD_STD:-}" = yes ]
then
  [ -d /usr/lib/rustlib/src/rust/library ] || { echo "error: WHEEL_BUILD_STD=yes needs Debian's rustc-web, cargo-web and rust-web-src" >&2; exit 1; }
  # maturin and zig's linker call what stands first; zig itself comes with the interpreter that stood there before.
  CARGO_ZIGBUILD_PYTHON_PATH=$(command -v python3)
  export CARGO_ZIGBUILD_PYTHON_PATH
  export PATH=/usr/bin:$PATH RUSTC=/usr/bin/rustc CARGO=/usr/bin/cargo RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_unwind
  build=$build/debian
fi
export CARGO_TARGET_DIR=$build

has_target() { [ -d "$(rustc --print target-libdir --target "$1" 2>/dev/null)" ]; }
get_target() { command -v rustup >/dev/null && rustup --quiet target add "$1"; }

cd "$root"
for target in "$@"
do
  if [ "${WHEEL_BUILD_STD:-}" != yes ] && ! has_target "$target" && ! get_target "$target"
  then
    echo "error: rustup has no library for $target; WHEEL_BUILD_STD=yes builds one from Debian's sources" >&2
    exit 1
  fi
  case $target in
    *-linux-gnu) platform=(--zig --compatibility manylinux_2_17) ;;
    *-linux-musl) platform=(--zig --compatibility musllinux_1_2) ;;
    *) platform=() ;;
  esac
  echo "== $target"
  maturin build --release --locked --compression-level 9 --target "$target" "${platform[@]}" --out "$out"
done
