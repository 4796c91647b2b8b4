#!/usr/bin/env bash
# Puts Rust into a folder and touches nothing else: fetch.sh FOLDER. rustup's own variables RUSTUP_UPDATE_ROOT and
# RUSTUP_DIST_SERVER name a mirror. The hashes are those of the release; they hold whoever serves the file.
set -euo pipefail

rustup=1.29.0
toolchain=1.95.0
folder=$(mkdir -p "$1" && cd "$1" && pwd)
server=${RUSTUP_UPDATE_ROOT:-https://static.rust-lang.org/rustup}

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) host=x86_64-unknown-linux-gnu sum=4acc9acc76d5079515b46346a485974457b5a79893cfb01112423c89aeb5aa10 ;;
  Linux-aarch64) host=aarch64-unknown-linux-gnu sum=9732d6c5e2a098d3521fca8145d826ae0aaa067ef2385ead08e6feac88fa5792 ;;
  *) echo "error: no Rust to fetch for $(uname -s) on $(uname -m); see https://rustup.rs" >&2; exit 1 ;;
esac

installer=$folder/rustup-init
curl --fail --silent --show-error --location --output "$installer" "$server/archive/$rustup/$host/rustup-init" ||
  { echo "error: $server is out of reach; install Rust >= 1.89 another way (Debian: rustc-web and cargo-web)" >&2; exit 1; }
echo "$sum  $installer" | sha256sum --check --quiet ||
  { rm -f "$installer"; echo "error: what $server sent is not rustup-init $rustup: removed" >&2; exit 1; }
chmod +x "$installer"
export CARGO_HOME=$folder/cargo RUSTUP_HOME=$folder/rustup RUSTUP_INIT_SKIP_PATH_CHECK=yes
"$installer" -y --no-modify-path --profile minimal --component clippy --component rustfmt \
  --default-host "$host" --default-toolchain "$toolchain" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
rm "$installer"
"$CARGO_HOME/bin/cargo" --version
echo "It is in $folder, where make finds it."
