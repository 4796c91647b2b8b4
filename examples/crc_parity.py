"""Learn a secret parity over 10,000 bits of real files under differential privacy.

A block of 1,250 bytes of a real file is an example of 10,000 bits; its label is one bit of the
block's CRC-32. At a fixed length a CRC is an affine function over GF(2). The label is therefore a
parity of some of the bits, plus a constant, and the learner does not know which. Agents whose
blocks are uniformly random, as none of the files' is, then verify what was learned.

`python examples/crc_parity.py [PATH ...]` reads files, or folders; without any, the libraries of
the Rust toolchain, or else numpy's OpenBLAS. It takes ten seconds on two cores and 2 GB of memory
with 330,000 blocks, and writes hdp_fast_demo.json and hdp_fast_demo.png into build/demo.

`--bits 100000` learns over as many bits of random blocks instead, which are made from a seed where
they are read: 41 GB of them, of which 26 MB are in memory at a time.
"""

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import itertools
import json
import math
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hdp_fast import data, gf2, local, parity
from hdp_fast.exceptions import InsufficientSamples, ParameterError

BLOCK_BYTES = 1_250
BLOCK_BITS = 8 * BLOCK_BYTES
UNKNOWNS = BLOCK_BITS + 1  # the constant is one
BLOCKS_AT_ONCE = 32_768  # 40 MB of a file
# Of random blocks: 26 MB at 100,000 bits, and 16 times as many in a part.
MADE_AT_ONCE, MADE_IN_A_PART = 2_048, 16
LIBRARIES = {".so", ".rlib", ".rmeta", ".a", ".dylib", ".dll", ".lib"}
GOAL = {"alpha": 0.05, "beta": 0.05}
HELD_OUT = 20_000
AGENTS_EPSILON = 1.0
# A handful more random vectors over GF(2) than dimensions span; real bytes vary less.
SPARE_ROWS = 1.2
# A larger epsilon protects hardly anybody, and the sampling rate hardly grows any more.
LARGEST_EPSILON = 10.0


def crc_bit(blocks: Iterable[Any], bit: int) -> np.ndarray:
    """One bit of the CRC-32 of every block, by zlib.crc32."""
    checksums = np.fromiter((zlib.crc32(block) for block in blocks), dtype=np.uint32)
    return ((checksums >> np.uint32(bit)) & 1).astype(np.uint8)


def true_parity(bit: int, size: int = BLOCK_BYTES) -> tuple[np.ndarray, int]:
    """The mask and the constant of the parity that one bit of a block's CRC-32 is.

    CRC-32 is affine at a fixed length: bit i of the mask is crc(e_i) xor crc(0), and the constant
    is crc(0). This takes 8 size + 1 checksums.
    """
    block, masks = np.zeros(size, dtype=np.uint8), []
    constant = crc_bit([block], bit)[0]
    for place in range(size):
        ones = np.repeat(block[None], 8, axis=0)
        ones[:, place] = 1 << np.arange(8)
        masks.append(crc_bit(ones, bit))
    return np.concatenate(masks) ^ constant, int(constant)


def collect(paths: list[Path], wanted: int) -> tuple[np.ndarray, int]:
    """Distinct blocks, uint8 of shape (n, 1250), and how many were read to find them.

    Two blocks are the same if their BLAKE2b digests of 256 bits are. One copy of each block and 32
    bytes of digest stay in memory.
    """
    kept, seen, read = [np.empty((0, BLOCK_BYTES), np.uint8)], set(), 0
    for blocks in itertools.chain.from_iterable(map(blocks_of, files_below(paths))):
        kept.append(blocks[unseen(blocks, seen, wanted)])
        read += len(blocks)
        if len(seen) == wanted:
            break
    if not seen:
        raise ParameterError(f"paths must hold a file of {BLOCK_BYTES:,} bytes or more")
    return np.concatenate(kept), read


def find_libraries() -> list[Path]:
    """The installed Rust toolchain's libraries, or else numpy's OpenBLAS."""
    compiler = shutil.which("rustc")
    if compiler is not None:
        command = [compiler, "--print", "sysroot"]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
            # Any of its suffixes counts, since libLLVM.so.22.1 is a library, too.
            below = files_below([Path(done.stdout.strip()) / "lib"])
            libraries = [path for path in below if LIBRARIES & set(path.suffixes)]
            if libraries:
                return libraries
    return find_openblas()


def find_openblas() -> list[Path]:
    """The OpenBLAS library that comes with numpy; empty where it was built without one."""
    installed = importlib.metadata.files("numpy") or []
    return [Path(str(file.locate())) for file in installed if "openblas" in file.name.lower()]


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            # Links inside a folder lead to the same files once more, or out of the folder.
            below = (file for file in sorted(path.rglob("*")) if not file.is_symlink())
            yield from (file for file in below if file.is_file())
        elif path.is_file():
            yield path
        else:
            raise ParameterError(f"path must exist, got {path}")


def blocks_of(path: Path) -> Iterator[np.ndarray]:
    """All whole blocks of a file, some at a time."""
    with path.open("rb") as handle:
        while True:
            content = np.fromfile(handle, dtype=np.uint8, count=BLOCKS_AT_ONCE * BLOCK_BYTES)
            count = content.size // BLOCK_BYTES
            yield content[: count * BLOCK_BYTES].reshape(count, BLOCK_BYTES)
            if count < BLOCKS_AT_ONCE:
                return


def unseen(blocks: np.ndarray, seen: set[bytes], wanted: int) -> list[int]:
    """The places of blocks not met before, which join `seen` until it holds enough."""
    fresh: list[int] = []
    for place, block in enumerate(blocks):
        if len(seen) == wanted:
            break
        digest = hashlib.blake2b(block, digest_size=32).digest()
        if digest not in seen:
            seen.add(digest)
            fresh.append(place)
    return fresh


def smallest_epsilon(n: int, beta: float) -> float:
    """The least epsilon, in thousandths, at which the loop's sample holds 1.2 times the unknowns.

    It solves (1 + p) / (1 - p) * (v + 1) / (v + 1 - p) = exp(epsilon), the privacy of the loop,
    with v = g / (1 - g), g = .8 beta and p n = 1.2 * 10,001.
    """
    p, g = SPARE_ROWS * UNKNOWNS / max(n, 1), 0.8 * beta
    v = g / (1 - g)
    epsilon = math.log((1 + p) / (1 - p) * (v + 1) / (v + 1 - p)) if p < 1 else math.inf
    if epsilon > LARGEST_EPSILON:
        needed = math.ceil(SPARE_ROWS * UNKNOWNS)
        rule = f"training blocks must number well above {needed:,}"
        raise InsufficientSamples(f"{rule} for any epsilon up to {LARGEST_EPSILON:g}, got {n:,}")
    return math.ceil(epsilon * 1000) / 1000


def split(rows: np.ndarray, planned: int, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The blocks in random order: for training, and held out."""
    # Where there are fewer blocks than planned, most of them are wanted for training.
    n = planned if len(rows) > planned else len(rows) - len(rows) // 10
    order = np.random.default_rng(seed).permutation(len(rows))
    return rows[order[:n]], rows[order[n : n + HELD_OUT]]


def draw_agents(bit: int, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The agents' blocks, drawn uniformly: a distribution that the curator never saw."""
    half = GOAL["beta"] / 2
    count = local.agents_needed(alpha=GOAL["alpha"], beta=half, epsilon=AGENTS_EPSILON)
    # Not the stream of the shuffle, which the same seed would repeat.
    rng = np.random.default_rng(None if seed is None else [seed, 1])
    rows = rng.integers(256, size=(count, BLOCK_BYTES), dtype=np.uint8)
    return rows, crc_bit(rows, bit)


def compare(
    result: parity.ParityTransferResult, samples: dict[str, tuple], bit: int
) -> dict[str, Any]:
    """How far what was learned is from the truth, in bits and on samples (rows, labels)."""
    if result.mask is None:
        return {"mask": None, "errors": None}
    mask, intercept = true_parity(bit)
    errors = {}
    for name, (rows, labels) in samples.items():
        guesses = gf2.dot(gf2.BitMatrix.from_packed(rows, BLOCK_BITS), result.mask)
        errors[name] = float(((guesses ^ result.intercept) != labels).mean())
    return {
        "mask": {
            "ones": int(result.mask.sum()),
            "differing_bits": int((result.mask != mask).sum()),
            "intercept_right": result.intercept == intercept,
        },
        "errors": {
            **errors,
            "agents_estimate": result.target_error,
            "agents_interval": result.interval and [float(end) for end in result.interval],
        },
    }


def draw(report: dict[str, Any], path: Path) -> None:
    """The seconds of every stage, and the number of records beside the paper's."""
    from matplotlib.figure import Figure

    plan = report["plan"]
    sizes = {
        "here": report["blocks"]["training"],
        "plan": plan["n"],
        "in batches": report["batches"],
        "paper": plan["n_paper"],
    }
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    stages, records = figure.subplots(1, 2)
    bars = stages.barh(list(report["seconds"]), list(report["seconds"].values()), color="#4c72b0")
    stages.bar_label(bars, fmt="%.2f", padding=3)
    stages.margins(x=0.15)
    stages.set_xlabel("seconds")
    bars = records.barh(list(sizes), list(sizes.values()), color="#55a868")
    records.bar_label(bars, labels=[f"{size:,}" for size in sizes.values()], padding=3)
    records.set_xscale("log")
    # Room for the labels, to the right of the bars.
    records.set_xlim(min(sizes.values()) / 10, max(sizes.values()) * 100)
    records.set_xlabel("records (log scale)")
    for axes in (stages, records):
        axes.invert_yaxis()
    figure.suptitle(f"a parity over {BLOCK_BITS:,} bits at epsilon = {report['epsilon']:g}")
    figure.savefig(path)


def run(
    paths: list[Path],
    *,
    epsilon: float = 1.0,
    bit: int = 0,
    max_blocks: int | None = None,
    seed: int | None = None,
) -> dict[str, Any]:
    """Learns, verifies and compares; prints what happens, and returns it.

    The curator's blocks are protected by pure epsilon-DP with the epsilon that is printed, for one
    replaced block, and each agent by pure 1-DP, unless a seed was passed. The rank and the errors
    on held-out blocks are printed, since these blocks are public.
    """
    seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds[name] = time.perf_counter() - start
        print(f"{name}: {seconds[name]:.2f} s")

    plan = parity.plan(UNKNOWNS, epsilon=epsilon, **GOAL)
    batches = parity.plan(UNKNOWNS, epsilon=epsilon, method="batches", **GOAL).n
    print(f"{UNKNOWNS:,} unknowns at epsilon = {epsilon:g}: {plan.n:,} records needed")
    print(f"    (in batches {batches:,}, by the paper's constants {plan.n_paper:,})")
    with stage("read distinct blocks"):
        wanted = plan.n + HELD_OUT
        rows, read = collect(paths or find_libraries(), min(wanted, max_blocks or wanted))
    print(f"    {len(rows):,} distinct of {read:,}")
    with stage("label, shuffle and split"):
        distinct = len(rows)
        training, held_out = split(rows, plan.n, seed)
        del rows
        labels = crc_bit(training, bit)
    enough = len(training) >= plan.n
    if not enough:
        epsilon = smallest_epsilon(len(training), GOAL["beta"])
        few = f"{len(training):,} training blocks are fewer than planned"
        print(f"    {few}: epsilon = {epsilon:g}")
        print("    No alpha is promised at this size: recovery, if it happens, is observed.")
    with stage("rank of the public blocks"):
        padded = np.pad(training, ((0, 0), (0, 1)), constant_values=1)
        rank = gf2.rank(gf2.BitMatrix.from_packed(padded, UNKNOWNS))
        del padded
    print(f"    rank {rank:,} of {UNKNOWNS:,} with the constant column")
    with stage("learn, and verify with agents"):
        targets, target_labels = draw_agents(bit, seed)
        people = gf2.BitMatrix.from_packed(targets, BLOCK_BITS)
        result = parity.transfer(
            gf2.BitMatrix.from_packed(training, BLOCK_BITS),
            labels,
            local.Agents(people, target_labels, epsilon=AGENTS_EPSILON),
            epsilon=epsilon,
            plan=plan if enough else None,
            affine=True,
            random_state=seed,
            **GOAL,
        )
    with stage("compare with the true parity"):
        samples = {"held_out": (held_out, crc_bit(held_out, bit))}
        samples["agents"] = targets, target_labels
        comparison = compare(result, samples, bit)
    records = {"curator": result.record, "agents": result.agents_record}
    return {
        "seed": seed,
        "crc32_bit": bit,
        "blocks": {"read": read, "distinct": distinct, "training": len(training)},
        "plan": dataclasses.asdict(plan),
        "batches": batches,
        "epsilon": epsilon,
        "alpha_promised": GOAL["alpha"] if enough else None,
        "rank": rank,
        "released": result.released,
        **comparison,
        "records": {
            side: None if one is None else json.loads(one.to_json())
            for side, one in records.items()
        },
        "seconds": seconds,
    }


@dataclasses.dataclass
class MadeBlocks:
    """Random blocks with a bit of their CRC-32, made from a seed as often as they are read.

    Attributes:
        bits: Number of bits of a block, a multiple of 8.
        bit: Which bit of the CRC-32.
        n: Number of blocks.
        seed: What they are made from.
        making: Seconds, by the clock and of the processor, that making and labeling have taken.
        asking: Those that who reads them has taken for each part of each pass, block by block.
    """

    bits: int
    bit: int
    n: int
    seed: int
    making: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))
    asking: list[list[np.ndarray]] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.mask, self.constant = true_parity(self.bit, self.bits // 8)

    def parts(self) -> data.Chunks:
        """The blocks in parts, none of which lies anywhere."""
        firsts = range(0, self.n, MADE_AT_ONCE * MADE_IN_A_PART)
        return data.Chunks([functools.partial(self.read, first) for first in firsts])

    def read(self, first: int) -> Iterator[tuple[gf2.BitMatrix, np.ndarray]]:
        """One part, some blocks at a time."""
        self.asking.append([])
        end = min(self.n, first + MADE_AT_ONCE * MADE_IN_A_PART)
        for start in range(first, end, MADE_AT_ONCE):
            begun = clocks()
            rows = min(MADE_AT_ONCE, end - start)
            rng = np.random.Generator(np.random.SFC64([self.seed, start]))
            block = np.frombuffer(rng.bytes(rows * self.bits // 8), np.uint8).reshape(rows, -1)
            packed = gf2.BitMatrix.from_packed(block, self.bits)
            labels = gf2.dot(packed, self.mask) ^ self.constant
            # The labels of all blocks follow from the mask; some are compared with zlib's.
            if not np.array_equal(crc_bit(block[:2], self.bit), labels[:2]):
                raise ParameterError("the parity is not that of zlib.crc32")
            made = clocks()
            self.making += made - begun
            yield packed, labels
            self.asking[-1].append(clocks() - made)


def clocks() -> np.ndarray:
    """The time by the clock, and of the processor for all threads, in seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def largest_memory() -> int:
    """The most memory that this process has had at a time, in bytes; 0 where nobody counts."""
    with contextlib.suppress(ImportError):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return 0


def run_made(bits: int, *, epsilon: float, bit: int, seed: int | None) -> dict[str, Any]:
    """Learns over as many bits of random blocks, in parts; prints what it takes, and returns it."""
    if bits < 8 or bits % 8:
        raise ParameterError(f"bits = {bits:,}, but it must be a multiple of 8")
    plan = parity.plan(bits + 1, epsilon=epsilon, **GOAL)
    size = plan.n * bits / 8e9
    print(f"{bits + 1:,} unknowns at epsilon = {epsilon:g}: {plan.n:,} records needed")
    print(f"    {size:.1f} GB, of which a share of {plan.p:.3f} is sampled")
    source = MadeBlocks(bits, bit, plan.n, np.random.SeedSequence(seed).entropy)
    parts, start = source.parts(), clocks()
    result = parity.learn(parts, epsilon=epsilon, plan=plan, affine=True, random_state=seed)
    whole = clocks() - start
    passes = [
        list(itertools.chain(*source.asking[first : first + len(parts)]))
        for first in range(0, len(source.asking), len(parts))
    ]
    seconds = {"making and labeling": source.making, "checking and counting": sum(passes[0])}
    for asked in passes[1:]:
        # The block that takes longest is that with which there are enough rows to be eliminated.
        longest = int(np.argmax([each[1] for each in asked]))
        stages = {
            "sampling and gathering": asked[:longest],
            "elimination": asked[longest : longest + 1],
            "sampling and verification": asked[longest + 1 :],
        }
        for name, some in stages.items():
            seconds[name] = seconds.get(name, 0) + sum(some, np.zeros(2))
    seconds["all else"] = whole - sum(seconds.values())
    seconds["total"] = whole
    wrong = None
    if result.mask is not None:
        wrong = int((result.mask != source.mask).sum()) + (result.intercept != source.constant)
    report = {
        "bits": bits,
        "plan": dataclasses.asdict(plan),
        "tries": len(passes) - 1,
        "seconds": {name: [float(value) for value in pair] for name, pair in seconds.items()},
        "largest_memory": largest_memory(),
        "released": result.released,
        "wrong_bits": wrong,
        "record": json.loads(result.record.to_json()),
    }
    print(f"{'seconds':>30} clock processor")
    for name, (clock, processor) in seconds.items():
        print(f"{name:>26} {clock:9.2f} {processor:9.2f}")
    print(f"tries: {len(passes) - 1}; largest memory: {largest_memory() / 1e9:.2f} GB")
    said = "nothing was released" if wrong is None else f"{wrong} of {bits + 1:,} bits are wrong"
    print(said)
    return report


def tell(report: dict[str, Any]) -> None:
    mask, errors = report["mask"], report["errors"]
    if mask is None:
        print("Nothing was released. Privacy needs that to happen now and then (here in about")
        print(f"{report['plan']['g']:.0%} of all runs), so this is no error.")
    else:
        right = "right" if mask["intercept_right"] else "wrong"
        print(f"{mask['differing_bits']:,} of {BLOCK_BITS:,} bits differ from the CRC's,")
        print(f"    {mask['ones']:,} are ones, the constant is {right}")
        print(f"error on held-out blocks {errors['held_out']}, on the agents' {errors['agents']}")
        if errors["agents_estimate"] is not None:
            low, high = errors["agents_interval"]
            print(f"    {errors['agents_estimate']:.4f} from their private answers,")
            print(f"    interval {low:.4f} to {high:.4f}")
    for side, record in report["records"].items():
        print(f"privacy record, {side}: {json.dumps(record)}")
    print(f"total: {sum(report['seconds'].values()):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files or folders")
    parser.add_argument("--epsilon", type=float, default=1.0, help="if there are blocks enough")
    parser.add_argument("--bit", type=int, default=0, choices=range(32), help="bit of the CRC")
    parser.add_argument("--max-blocks", type=int, metavar="N", help="read at most N blocks")
    parser.add_argument("--seed", type=int, help="repeatable, and not private")
    parser.add_argument("--bits", type=int, help="random blocks of so many bits, and no files")
    parser.add_argument("--output", type=Path, default=Path("build/demo"), metavar="FOLDER")
    options = vars(parser.parse_args())
    folder = options.pop("output")
    folder.mkdir(parents=True, exist_ok=True)
    bits = options.pop("bits")
    if bits is not None:
        if options.pop("paths") or options.pop("max_blocks") is not None:
            parser.error("--bits makes its blocks: it stands without PATH and --max-blocks")
        report = run_made(bits, **options)
        (folder / "hdp_fast_bits.json").write_text(json.dumps(report, indent=2) + "\n")
        return
    report = run(**options)
    tell(report)
    (folder / "hdp_fast_demo.json").write_text(json.dumps(report, indent=2) + "\n")
    try:
        draw(report, folder / "hdp_fast_demo.png")
    except ImportError:
        print("no picture without matplotlib: pip install matplotlib (the extra hdp-fast[plot])")
    print(f"wrote hdp_fast_demo.* to {folder}")


if __name__ == "__main__":
    main()
