#!/usr/bin/env bash
# Runs the tests of the core's kernels and of its linear algebra as an AArch64 program under user emulation, and counts the
# instructions of the inner loop of the NEON arm. Debian's compiler has the sources of the standard library, so that no
# other toolchain is needed. It takes some six minutes of processor time, most of them for the core.
set -euo pipefail

TARGET=aarch64-unknown-linux-gnu
export RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc CARGO_PROFILE_QUICK_OPT_LEVEL=3
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"

tests() {
  /usr/bin/cargo test -Z build-std=std,panic_unwind,test --target "$TARGET" --profile quick --package hdp-fast-core "$@"
}

tests --lib -- simd gf2
tests --test gf2
program=$(ls -t "$CARGO_TARGET_DIR/$TARGET"/quick/deps/hdp_fast_core-* | grep -v '\.' | head -1)
echo "instructions of the inner loop of the NEON arm, for 32 rows, eight bits of the left factor and 64 columns:"
# The shortest loop with `tbl` is the innermost one, wherever it was inlined; lines are "address:<tab>name<tab>operands".
aarch64-linux-gnu-objdump --disassemble --demangle --no-show-raw-insn "$program" | awk -F'\t' '
  /^[0-9a-f]+ </ { n = tables = 0; split("", place); next }
  NF > 1 {
    address = $1; gsub(/[ :]/, "", address)
    place[address] = ++n
    name[n] = $2
    before[n] = tables
    tables += $2 == "tbl"
    split($3, word, " ")
    first = place[word[1]]
    if ($2 ~ /^b\./ && first && tables > before[first] && (!best || n - first < best)) {
      best = n - first
      split("", count)
      for (i = first; i <= n; i++) count[name[i]]++
    }
  }
  END { for (each in count) print count[each], each; print best + 1, "together" }' | sort -rn
