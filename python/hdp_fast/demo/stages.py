"""The demo: learn a secret parity over 10,000 bits from real bytes under differential privacy.

A block of 1,250 bytes of a real file is an example of 10,000 bits; its label is one bit of the
block's CRC-32. At a fixed length a CRC is an affine function over GF(2). The label is therefore a
parity of some of the bits, plus a constant, and the learner does not know which.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .. import gf2, local, parity, plotting
from .._core import __version__
from .._support import progress
from .._support.types import Bits
from ..data import files
from ..exceptions import InsufficientSamples, ParameterError
from ..record import PrivacyRecord
from .blocks import BLOCK_BITS, BLOCK_BYTES, collect, crc_bit, true_parity

# The learner's unknowns: one per bit and the constant.
UNKNOWNS = BLOCK_BITS + 1

_HELD_OUT = 20_000
_AGENTS_EPSILON = 1.0
# A handful more random vectors over GF(2) than dimensions span; real bytes vary less.
_SPARE_ROWS = 1.2
# A larger epsilon protects hardly anybody, and the sampling rate hardly grows any more.
_LARGEST_EPSILON = 10.0
_STAGES = 6


@dataclass(frozen=True)
class Options:
    """Options of a demo.

    Attributes:
        paths: Files, or folders that are searched for files; none means the libraries of the Rust
            toolchain, or numpy's OpenBLAS.
        epsilon: Privacy parameter of the curator's blocks, if there are blocks enough for the plan.
        alpha: Error that the plan promises not to exceed, below 1/2.
        beta: Probability with which that promise may fail.
        bit: Which of the 32 bits of the CRC is the label.
        max_blocks: Largest number of distinct blocks that is read; None for as many as planned.
        output: Folder for hdp_fast_demo.json and hdp_fast_demo.png.
        seed: Makes the run repeatable and not private; None draws from the operating system.
    """

    paths: tuple[Path, ...] = ()
    epsilon: float = 1.0
    alpha: float = 0.05
    beta: float = 0.05
    bit: int = 0
    max_blocks: int | None = None
    output: Path = Path()
    seed: int | None = None


@dataclass(frozen=True, eq=False)
class _Data:
    """The blocks after the shuffle, with their labels."""

    training: Bits
    training_labels: Bits
    held_out: Bits
    held_out_labels: Bits


@dataclass
class _Stages:
    """Times the stages and shows them, with tqdm where it is installed."""

    print_line: Callable[[str], None]
    seconds: dict[str, float] = field(default_factory=dict)
    bar: Any = field(default_factory=progress.NoBar)

    def say(self, line: str) -> None:
        # Other output would tear the bar apart, so tqdm takes it away meanwhile.
        with self.bar.external_write_mode(file=sys.stdout):
            self.print_line(line)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.bar.set_description(name)
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start
        self.bar.update()
        self.say(f"[{len(self.seconds)}/{_STAGES}] {name}: {self.seconds[name]:.2f} s")


def smallest_epsilon(n: int, beta: float) -> float:
    """Computes the least epsilon at which the loop's sample holds 1.2 times the unknowns.

    It solves (1 + p) / (1 - p) * (v + 1) / (v + 1 - p) = exp(epsilon), the privacy of the loop,
    with v = g / (1 - g) and p n = 1.2 * 10,001.

    Args:
        n: Number of training blocks.
        beta: Failure probability of the learner, whose loop stops before a try with probability g =
            0.8 beta.

    Returns:
        The epsilon, rounded up to a thousandth.

    Raises:
        InsufficientSamples: No epsilon up to 10 would do.
    """
    p = _SPARE_ROWS * UNKNOWNS / max(n, 1)
    epsilon = _loop_epsilon(p, 0.8 * beta) if p < 1 else math.inf
    if epsilon > _LARGEST_EPSILON:
        needed = math.ceil(_SPARE_ROWS * UNKNOWNS)
        raise InsufficientSamples(
            f"training blocks must number well above {needed:,} for any epsilon up to "
            f"{_LARGEST_EPSILON:g} to do, got {n:,}"
        )
    return math.ceil(epsilon * 1000) / 1000


def _loop_epsilon(p: float, g: float) -> float:
    v = g / (1 - g)
    return math.log((1 + p) / (1 - p) * (v + 1) / (v + 1 - p))


def run(options: Options, print_line: Callable[[str], None] = print) -> dict[str, Any]:
    """Runs the demo and writes hdp_fast_demo.json, and the .png if matplotlib is installed.

    Args:
        options: Options of the demo.
        print_line: Function that receives every line that is printed.

    Returns:
        The content of the JSON file.

    Raises:
        ParameterError: An option is out of range, a path cannot be read, or an output cannot be
            written.
        InsufficientSamples: There are too few blocks for any epsilon.

    Guarantee:
        The curator's blocks are protected by pure epsilon-DP with the epsilon in the report, for
        one replaced block, and each agent by pure 1-DP, unless a seed was passed. The rank and the
        errors on held-out blocks are printed, since these blocks are public.

    Cost:
        About ten seconds on two cores and 2 GB of memory with 330,000 blocks.

    Source:
        Kasiviswanathan et al. 2011, Section 4.
    """
    _check(options)
    json_path, png_path = output_paths(options.output)
    files.check_writable(json_path)
    files.check_writable(png_path)
    stages = _Stages(print_line)
    with progress.bar(_STAGES, "stage", progress.can_show()) as stages.bar:
        report = _run(options, stages)
    _print_outcome(report, print_line)
    _write(report, json_path, png_path, print_line)
    return report


def output_paths(folder: Path) -> tuple[Path, Path]:
    """The paths of the report and of its figure."""
    return folder / "hdp_fast_demo.json", folder / "hdp_fast_demo.png"


def _check(options: Options) -> None:
    if not 0 <= options.bit < 32:
        raise ParameterError(f"bit must be 0 to 31, got {options.bit}")
    if options.max_blocks is not None and options.max_blocks < 1:
        raise ParameterError(f"max_blocks must be at least 1, got {options.max_blocks}")
    if options.seed is not None and options.seed < 0:
        raise ParameterError(f"seed must be at least 0, got {options.seed}")


def _run(options: Options, stages: _Stages) -> dict[str, Any]:
    with stages.stage("plan"):
        plan = _plan(options, "loop")
        batches = _plan(options, "batches")
    _print_plan(plan, batches.n, stages.say)
    wanted = plan.n + _HELD_OUT
    with stages.stage("read distinct blocks"):
        blocks = collect(options.paths, min(wanted, options.max_blocks or wanted))
    stages.say(f"    {len(blocks.rows):,} distinct of {blocks.read:,} from {blocks.source}")
    with stages.stage("label, shuffle and split"):
        data = _split(blocks.rows, plan.n, options)
    kept = blocks.source, blocks.read, len(blocks.rows)
    del blocks
    chosen = _choose(plan, len(data.training), options)
    with stages.stage("rank of the public blocks"):
        rank = gf2.rank(_with_constant(data.training))
    stages.say(f"    rank {rank:,} of {UNKNOWNS:,} with the constant column")
    stages.say(_promise(chosen, len(data.training)))
    outcome = _learn_and_check(data, chosen, options, stages)
    return {
        "title": f"a parity over {BLOCK_BITS:,} bits at epsilon = {chosen.epsilon:g}",
        "version": __version__,
        "seed": options.seed,
        "crc32_bit": options.bit,
        "blocks": {
            "source": kept[0],
            "read": kept[1],
            "distinct": kept[2],
            "training": len(data.training),
            "held_out": len(data.held_out),
        },
        "plan": {**dataclasses.asdict(plan), "n_batches": batches.n},
        "epsilon": chosen.epsilon,
        "alpha_promised": None if chosen.plan is None else options.alpha,
        "rank": {"rank": rank, "columns": UNKNOWNS},
        **outcome,
        "seconds": stages.seconds,
    }


def _plan(options: Options, method: Literal["loop", "batches"]) -> parity.ParityPlan:
    return parity.plan(
        UNKNOWNS,
        alpha=options.alpha,
        beta=options.beta,
        epsilon=options.epsilon,
        method=method,
    )


def _split(rows: Bits, planned: int, options: Options) -> _Data:
    # Where there are fewer blocks than planned, most of them are wanted for training.
    n = planned if len(rows) > planned else len(rows) - len(rows) // 10
    order = np.random.default_rng(options.seed).permutation(len(rows))
    labels = crc_bit(rows, options.bit)
    training, held_out = order[:n], order[n : n + _HELD_OUT]
    return _Data(rows[training], labels[training], rows[held_out], labels[held_out])


def _with_constant(rows: Bits) -> gf2.BitMatrix:
    padded = np.empty((len(rows), BLOCK_BYTES + 1), dtype=np.uint8)
    padded[:, :BLOCK_BYTES] = rows
    padded[:, BLOCK_BYTES] = 1
    return gf2.BitMatrix.from_packed(padded, UNKNOWNS)


@dataclass(frozen=True)
class _Choice:
    """The plan if there are blocks enough for it, else None and an epsilon that may do."""

    plan: parity.ParityPlan | None
    epsilon: float


def _choose(plan: parity.ParityPlan, n: int, options: Options) -> _Choice:
    if n >= plan.n:
        return _Choice(plan, options.epsilon)
    return _Choice(None, smallest_epsilon(n, options.beta))


def _learn_and_check(
    data: _Data, chosen: _Choice, options: Options, stages: _Stages
) -> dict[str, Any]:
    targets, target_labels = _uniform_blocks(options)
    agents = local.Agents(targets, target_labels, epsilon=_AGENTS_EPSILON)
    examples = gf2.BitMatrix.from_packed(data.training, BLOCK_BITS)
    with stages.stage("learn, and verify with agents"):
        result = parity.transfer(
            examples,
            data.training_labels,
            agents,
            epsilon=chosen.epsilon,
            alpha=options.alpha,
            beta=options.beta,
            plan=chosen.plan,
            affine=True,
            random_state=options.seed,
        )
    with stages.stage("compare with the true parity"):
        comparison = _compare(result, data, targets, target_labels, options.bit)
    return {
        "released": result.released,
        **comparison,
        "records": {
            "curator": _plain(result.record),
            "agents": _plain(result.agents_record),
        },
    }


def _plain(record: PrivacyRecord | None) -> Any:
    return None if record is None else json.loads(record.to_json())


def _uniform_blocks(options: Options) -> tuple[gf2.BitMatrix, Bits]:
    """The agents' blocks, drawn uniformly: a distribution that the curator never saw."""
    count = local.agents_needed(alpha=options.alpha, beta=options.beta / 2, epsilon=_AGENTS_EPSILON)
    # Not the stream of the shuffle, which the same seed would repeat.
    seed = None if options.seed is None else [options.seed, 1]
    rows = np.random.default_rng(seed).integers(256, size=(count, BLOCK_BYTES), dtype=np.uint8)
    return gf2.BitMatrix.from_packed(rows, BLOCK_BITS), crc_bit(rows, options.bit)


def _compare(
    result: parity.ParityTransferResult,
    data: _Data,
    targets: gf2.BitMatrix,
    target_labels: Bits,
    bit: int,
) -> dict[str, Any]:
    if result.mask is None:
        return {"mask": None, "errors": None}
    mask, intercept = true_parity(bit)
    held_out = gf2.BitMatrix.from_packed(data.held_out, BLOCK_BITS)
    learned = result.mask, int(result.intercept or 0)
    return {
        "mask": {
            "ones": int(result.mask.sum()),
            "differing_bits": int((result.mask != mask).sum()),
            "intercept_right": learned[1] == intercept,
        },
        "errors": {
            "held_out": _error(held_out, data.held_out_labels, *learned),
            "agents": _error(targets, target_labels, *learned),
            "agents_estimate": result.target_error,
            "agents_interval": result.interval and [float(end) for end in result.interval],
            "agents_count": len(target_labels),
        },
    }


def _error(X: gf2.BitMatrix, y: Bits, mask: Bits, intercept: int) -> float | None:
    return float(((gf2.dot(X, mask) ^ intercept) != y).mean()) if len(y) else None


def _print_plan(plan: parity.ParityPlan, batches: int, say: Callable[[str], None]) -> None:
    targets = f"alpha = {plan.alpha:g}, beta = {plan.beta:g}, epsilon = {plan.epsilon:g}"
    say(f"    {UNKNOWNS:,} unknowns, {targets}: sampling rate p = {plan.p:.4f}")
    say(f"    records needed: {plan.n:,} (in batches {batches:,}, the paper {plan.n_paper:,})")


def _promise(chosen: _Choice, n: int) -> str:
    if chosen.plan is not None:
        plan = chosen.plan
        return (
            f"    {n:,} training blocks suffice: error at most {plan.alpha:g} on such blocks with "
            f"probability {1 - plan.beta:g}"
        )
    return (
        f"    {n:,} training blocks are fewer than planned: epsilon = {chosen.epsilon:g} is the "
        f"smallest that samples {_SPARE_ROWS:g} times the unknowns.\n"
        "    No alpha is promised at this size: recovery, if it happens, is an observed fact."
    )


def _print_outcome(report: Mapping[str, Any], say: Callable[[str], None]) -> None:
    mask, errors = report["mask"], report["errors"]
    if mask is None:
        say("bottom: the mechanism released nothing. Privacy needs that to happen now and then")
        say(f"(here in about {report['plan']['g']:.0%} of all runs), so this is no error. Another")
        say("run on the same records would spend epsilon again.")
    else:
        right = "right" if mask["intercept_right"] else "wrong"
        say(f"mask beside the CRC's: {mask['differing_bits']:,} of {BLOCK_BITS:,} bits differ,")
        say(f"    {mask['ones']:,} are ones, the constant is {right}")
        say(f"error on {report['blocks']['held_out']:,} held-out blocks: {errors['held_out']}")
        say(f"error on {errors['agents_count']:,} agents' uniformly random blocks:")
        say(f"    {errors['agents']} in truth, {_estimate(errors)} from their private answers")
    for side, record in report["records"].items():
        say(f"privacy record, {side}: {json.dumps(record)}")
    say(f"total: {sum(report['seconds'].values()):.2f} s")


def _estimate(errors: Mapping[str, Any]) -> str:
    if errors["agents_estimate"] is None:
        return "no estimate"
    low, high = errors["agents_interval"]
    return f"{errors['agents_estimate']:.4f} (interval {low:.4f} to {high:.4f})"


def _write(
    report: Mapping[str, Any], json_path: Path, png_path: Path, say: Callable[[str], None]
) -> None:
    files.write_atomically(json_path, (json.dumps(report, indent=2) + "\n").encode())
    say(f"wrote {json_path}")
    try:
        picture = plotting.demo_figure(report)
    except ImportError as error:
        say(f"no picture: {error}")
        return
    files.write_atomically(png_path, picture)
    say(f"wrote {png_path}")
