"""Blocks of real files as examples, labeled with one bit of their CRC-32.

At a fixed length a CRC is an affine function over GF(2): the label is a parity of some of the
block's bits, plus a constant.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import shutil
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._support.types import Bits
from ..exceptions import ParameterError

BLOCK_BYTES = 1_250
BLOCK_BITS = 8 * BLOCK_BYTES

# Files are read 40 MB at a time.
_BLOCKS_AT_ONCE = 32_768
_TOOLCHAIN_SUFFIXES = {".so", ".rlib", ".rmeta", ".a", ".dylib", ".dll", ".lib"}


@dataclass(frozen=True, eq=False)
class Blocks:
    """Distinct blocks of real files.

    Attributes:
        rows: The n examples, packed as by packbits(bitorder="little") into uint8 of shape (n,
            1250).
        read: Number of blocks read, repeated ones included.
        source: Where they came from, in words.
    """

    rows: Bits
    read: int
    source: str


def crc_bit(blocks: Iterable[Any], bit: int) -> Bits:
    """Computes one bit of the CRC-32 of every block, by zlib.crc32.

    Args:
        blocks: n buffers of bytes, such as the rows of a contiguous uint8 matrix.
        bit: Number of the bit, 0 to 31.

    Returns:
        The bits, uint8 of shape (n,).
    """
    checksums = np.fromiter((zlib.crc32(block) for block in blocks), dtype=np.uint32)
    return ((checksums >> np.uint32(bit)) & 1).astype(np.uint8)


def true_parity(bit: int, size: int = BLOCK_BYTES) -> tuple[Bits, int]:
    """Computes the parity that one bit of a block's CRC-32 is, by the CRC's definition alone.

    CRC-32 is affine at a fixed length: bit i of the mask is crc(e_i) xor crc(0), and the intercept
    is crc(0). This takes 8 size + 1 checksums.

    Args:
        bit: Number of the bit, 0 to 31.
        size: Number of bytes of a block.

    Returns:
        The mask, uint8 of shape (8 size,), and the intercept.
    """
    blocks = np.zeros((8 * size + 1, size), dtype=np.uint8)
    index = np.arange(8 * size)
    blocks[index, index // 8] = 1 << (index % 8)
    values = crc_bit(blocks, bit)
    return values[:-1] ^ values[-1], int(values[-1])


def collect(paths: tuple[Path, ...], wanted: int) -> Blocks:
    """Reads distinct blocks until there are enough of them or the files are used up.

    Two blocks are the same if their BLAKE2b digests of 256 bits are. One copy of each block and 32
    bytes of digest stay in memory.

    Args:
        paths: Files, or folders that are searched for files. None given means the libraries of the
            installed Rust toolchain, or where there is none the OpenBLAS library that comes with
            numpy.
        wanted: Number of distinct blocks to stop at.

    Raises:
        ParameterError: A path is missing or cannot be read, or there is no block.
    """
    files, source = _sources(paths)
    kept = [np.empty((0, BLOCK_BYTES), dtype=np.uint8)]
    seen: set[bytes] = set()
    read = 0
    for blocks in itertools.chain.from_iterable(map(_blocks_of, files)):
        kept.append(blocks[_unseen(blocks, seen, wanted)])
        read += len(blocks)
        if len(seen) == wanted:
            break
    if not seen:
        raise ParameterError(f"paths must hold a file of {BLOCK_BYTES:,} bytes or more: {source}")
    return Blocks(np.concatenate(kept), read, source)


def _sources(paths: tuple[Path, ...]) -> tuple[Iterable[Path], str]:
    for path in paths:
        if not path.exists():
            raise ParameterError(f"path must exist, got {path}")
    if paths:
        return _files_below(paths), ", ".join(map(str, paths))
    libraries = _toolchain_libraries()
    if libraries:
        return libraries, "the installed Rust toolchain's libraries"
    return _openblas(), "numpy's OpenBLAS library"


def _files_below(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            # Links inside a folder lead to the same files once more, or out of the folder.
            below = (file for file in sorted(path.rglob("*")) if not file.is_symlink())
            yield from (file for file in below if file.is_file())
        elif path.is_file():
            yield path


def _toolchain_libraries() -> list[Path]:
    compiler = shutil.which("rustc")
    if compiler is None:
        return []
    command = [compiler, "--print", "sysroot"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return []
    libraries = _files_below([Path(done.stdout.strip()) / "lib"])
    # Any of its suffixes counts, since libLLVM.so.22.1 is a library, too.
    return [path for path in libraries if _TOOLCHAIN_SUFFIXES & set(path.suffixes)]


def _openblas() -> list[Path]:
    try:
        installed = importlib.metadata.files("numpy") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in installed if "openblas" in file.name.lower()]


def _blocks_of(path: Path) -> Iterator[Bits]:
    """Yields all whole blocks of a file, some at a time."""
    try:
        with path.open("rb") as handle:
            while True:
                content = np.fromfile(handle, dtype=np.uint8, count=_BLOCKS_AT_ONCE * BLOCK_BYTES)
                count = content.size // BLOCK_BYTES
                yield content[: count * BLOCK_BYTES].reshape(count, BLOCK_BYTES)
                if count < _BLOCKS_AT_ONCE:
                    return
    except OSError as error:
        raise ParameterError(f"can't read {path}: {error.strerror or error}") from error


def _unseen(blocks: Bits, seen: set[bytes], wanted: int) -> list[int]:
    """The indices of blocks not met before, which join `seen` until it holds enough."""
    fresh: list[int] = []
    for index, block in enumerate(blocks):
        if len(seen) == wanted:
            break
        digest = hashlib.blake2b(block, digest_size=32).digest()
        if digest not in seen:
            seen.add(digest)
            fresh.append(index)
    return fresh
