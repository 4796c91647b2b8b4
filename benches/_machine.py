"""The machine: which processor it has, and what it can do at most."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from typing import Any

import numpy as np
from _harness import threads_of

from hdp_fast import noise
from hdp_fast.bench import fastest, xor_bits_per_second

# Of the flags of a processor, those that a kernel asks for.
SETS = {"avx2": "AVX2", "avx512f": "AVX-512", "gfni": "GFNI", "vaes": "VAES", "aes": "AES",
        "avx512_vbmi2": "VBMI2", "asimd": "NEON"}  # fmt: skip
# Server and desktop cores by the numbers of their models, since a virtual machine's brand names
# no generation: (vendor, family, first model, last model).
CORES = {
    ("AuthenticAMD", 23, 0x00, 0x2F): "AMD Zen",
    ("AuthenticAMD", 23, 0x30, 0xFF): "AMD Zen 2",
    ("AuthenticAMD", 25, 0x00, 0x0F): "AMD Zen 3",
    ("AuthenticAMD", 25, 0x10, 0x1F): "AMD Zen 4",
    ("AuthenticAMD", 25, 0x20, 0x5F): "AMD Zen 3",
    ("AuthenticAMD", 25, 0x60, 0xFF): "AMD Zen 4",
    ("AuthenticAMD", 26, 0x00, 0xFF): "AMD Zen 5",
    ("GenuineIntel", 6, 0x55, 0x55): "Intel Skylake or Cascade Lake server",
    ("GenuineIntel", 6, 0x6A, 0x6C): "Intel Ice Lake server",
    ("GenuineIntel", 6, 0x8F, 0x8F): "Intel Sapphire Rapids",
    ("GenuineIntel", 6, 0xCF, 0xCF): "Intel Emerald Rapids",
    ("GenuineIntel", 6, 0xA7, 0xA7): "Intel Rocket Lake",
    ("GenuineIntel", 6, 0xAD, 0xAE): "Intel Granite Rapids",
}
WORDS, SQUARE, STREAMED = 1_000_000, 1_200, 1 << 27


def processor_of(machine_info: Mapping[str, Any]) -> dict[str, Any]:
    """Name, number of cores and instruction set: all that results keep of a machine."""
    cpu = machine_info["cpu"]
    asked = os.environ.get("HDP_FAST_ISA", "")
    flags = set(cpu.get("flags", ()))
    name = core_name(cpu) + (f", kernels of {asked}" if asked else "")
    instructions = [text for flag, text in SETS.items() if flag in flags]
    return {"name": name, "cores": cpu["count"], "instructions": instructions}


def core_name(cpu: Mapping[str, Any]) -> str:
    """The generation of a processor, or what it calls itself."""
    vendor, family, model = (cpu.get(key) for key in ("vendor_id_raw", "family", "model"))
    for (known, number, first, last), name in CORES.items():
        if vendor == known and family == number and first <= (model or 0) <= last:
            return name
    brand = cpu.get("brand_raw") or cpu.get("arch_string_raw") or "unknown processor"
    return brand if family is None else f"{brand}, family {family}, model {model}"


def kind_of(processor: Mapping[str, Any]) -> str:
    """The name of the file with results of this kind: processors of one kind are comparable."""
    text = f"{processor['name']} {processor['cores']} cores".lower()
    return "-".join("".join(c if c.isalnum() else " " for c in text).split())


class Limits:
    """What the machine can do at most; each limit is measured when it is first asked for."""

    def moved(self, size: float, threads: int = 1, arrays: float = 0.0) -> float:
        """Seconds in which so many bytes are read and written, half each.

        The copy is one of so many bytes of arrays (the same, unless told), which come from a cache
        as the kernel's own do.
        """
        half = min(max(int((arrays or size) / 2) // 8 * 8, 1 << 12), STREAMED)
        return self.copy(half, threads) * (size / 2 / half)

    @cache  # noqa: B019 - there is one such object a session
    def copy(self, size: int, threads: int) -> float:
        """Seconds of a copy of `size` bytes."""
        source, target = np.ones(size // 8), np.zeros(size // 8)
        alone = fastest(lambda: np.copyto(target, source))
        return alone if threads == 1 else min(alone, self._together(np.copyto, target, source))

    def read(self, size: float, threads: int = 1) -> float:
        """Seconds in which so many bytes are read from main memory."""
        return self._read(threads) * size / STREAMED

    @cache  # noqa: B019 - as above
    def _read(self, threads: int) -> float:
        words = np.ones(STREAMED // 8, np.uint64)
        if threads == 1:
            return fastest(lambda: np.bitwise_or.reduce(words))
        return self._together(lambda part: np.bitwise_or.reduce(part), words)

    def _together(self, action: Callable[..., object], *arrays: np.ndarray) -> float:
        middle = len(arrays[0]) // 2
        halves = [tuple(a[:middle] for a in arrays), tuple(a[middle:] for a in arrays)]
        with ThreadPoolExecutor(2) as pool:
            return fastest(lambda: list(pool.map(lambda half: action(*half), halves)))

    @cached_property
    def word(self) -> float:
        """Seconds of one word of the random stream, drawn and stored on one thread.

        No draw that needs a word can be faster.
        """
        with threads_of(1):
            return fastest(lambda: noise.uniform_integers(1 << 32, WORDS)) / WORDS

    @cache  # noqa: B019 - as above
    def flops(self, dtype: str = "float64", threads: int = 1) -> float:
        """Multiplications and additions a second of numpy's product of large squares."""
        square = np.random.default_rng(0).random((SQUARE, SQUARE)).astype(dtype)
        with threads_of(threads):
            return 2 * SQUARE**3 / fastest(lambda: square @ square)

    @cached_property
    def xor(self) -> float:
        """Bits a second that one core combines by xor, in its cache."""
        return xor_bits_per_second()

    def summary(self) -> dict[str, float]:
        """The limits that results keep."""
        gigabytes = {
            f"copy, {threads} thread{'s'[: threads - 1]}, GB/s": (
                2 * STREAMED / self.copy(STREAMED, threads) / 1e9
            )
            for threads in (1, 2)
        }
        gigabytes |= {"read, 1 thread, GB/s": STREAMED / self._read(1) / 1e9}
        products = {
            f"{dtype} product, 1 thread, Gflop/s": self.flops(dtype) / 1e9
            for dtype in ("float32", "float64")
        }
        return gigabytes | {"random word, ns": 1e9 * self.word} | products
