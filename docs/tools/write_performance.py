"""Writes the figures of speed into documents, and the numbers of their pictures, from results.

Results are what `make bench-store` has put into benches/results, a file for each kind of processor.
A document says in comments what belongs where, and its text stays hand-written:

    <!-- family: NAME -->...<!-- end -->
    <!-- table: GROUP [NAME=VALUE ...] [each] [all] -->...<!-- end -->
    <!-- speed: GROUP [NAME=VALUE ...] [each] -->...<!-- end -->
    <!-- processors[: first] -->...<!-- end -->
    <!-- machines -->...<!-- end -->
    <!-- growth -->...<!-- end -->

A family has a row for each of its cases in `FAMILIES`, which are what a reader decides by, and a
column for each processor. A table has a row for each route of this package, or with `all` of
everybody; `speed` is one cell in a sentence, of the first processor. NAME=VALUE chooses groups by
their parameters and `route` by its name; `each` shows the time of a unit of work. `--check` writes
nothing, and fails where a document differs from its results. `--show FAMILY` writes nothing, and
prints all tables of a family with everybody's times; `--show GROUP [NAME=VALUE ...] [each] [all]`
prints one; `--show` alone lists the groups.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS, DATA = ROOT / "benches" / "results", ROOT / "docs" / "figures" / "data"
DOCUMENTS = tuple(ROOT / name for name in ("README.md", "docs/index.md", "docs/performance.md"))
sys.path.insert(0, str(ROOT / "benches"))

from _tables import digits, duration, factor, share, show  # noqa: E402

BLOCK = re.compile(
    r"(<!-- (family|table|speed|processors|machines|growth)(?:: ([^>]*?))? -->).*?(<!-- end -->)",
    re.DOTALL,
)
COMMAND = "make bench-store"
# Kernels that grow with a size: title, group, size, and what else chooses it.
GROWTH: list[tuple[str, str, str, dict[str, str]]] = [
    ("projection of weights", "weights.project", "n", {"into": "new memory"}),
    ("update of weights", "weights.update", "n", {"losses": "floats"}),
    ("as many draws by weights", "weights.draw", "n", {}),
    ("discrete Laplace, scale 10,000", "noise.growth", "draws", {"law": "discrete_laplace"}),
    ("rounded Gaussian, sigma 10,000", "noise.growth", "draws", {"law": "rounded_gaussian"}),
    ("randomized response of bits", "noise.response", "n", {"values": "bits"}),
    ("1,000 conjunctions, 64 bits", "score.growth", "n", {}),
    ("1,000 halfspaces, d = 64", "score.halfspaces", "n", {"d": "64"}),
    ("answers by votes", "stability.answers", "n", {"kind": "VoteTable"}),
    ("sums and products, 50 columns", "statistics.growth", "n", {}),
    ("a step of adaptation, d = 64", "adaptation.growth", "n", {}),
    ("twenty rounds of transfer", "transfer.run", "n", {}),
    ("rank over GF(2), n x n", "gf2.rank", "n", {}),
    ("private parity over d bits", "parity.learn", "d", {}),
]
# The cases of each family that the page shows, and what chooses them; by two threads unless said.
FAMILIES: dict[str, dict[str, str]] = {
    "gf2": {
        "rank, n = 1,024": "gf2.rank n=1024",
        "rank, n = 10,000": "gf2.rank n=10000",
        "rank, n = 20,000": "gf2.rank n=20000",
        "the same by AVX2": "gf2.arms n=20000 arm=avx2",
        "the same by portable code": "gf2.arms n=20000 arm=portable",
        "product, n = 10,000": "gf2.product n=10000",
        "100,000 x 10,000, full rank": "gf2.solve_tall rank=full",
        "the same, rank 9,000": 'gf2.solve_tall rank="nine tenths"',
    },
    "parity": {f"d = {d:,}": f"parity.learn d={d}" for d in (1_000, 10_000)},
    "noise": {
        name: f'{spec} route="1 thread" each'
        for name, spec in (
            ("discrete Laplace, scale 2", "noise.draws law=discrete_laplace scale=2.0"),
            ("rounded Gaussian, sigma 50", "noise.draws law=rounded_gaussian scale=50.0"),
            ("randomized response, a bit", "noise.response n=10000000 values=bits"),
        )
    },
    "sgd": {
        "a row of a batch": 'sgd.batches dtype=float32 noise=exact route="1 thread" each',
        "the same, ten classes": 'sgd.softmax dtype=float32 noise=exact route="1 thread" each',
        "a step of one draw": 'sgd.online noise=exact draws=uniform route="1 thread" each',
    },
    "statistics": {
        "M and H, two classes": 'statistics.sums classes=2 sums="M and H"',
        "M, ten classes": "statistics.sums classes=10 sums=M",
        "a map of features": "statistics.features features=matrix",
    },
    "private_statistics": {
        name: f'private_statistics.release statistic={name} n=100000 route="1 thread"'
        for name in ("mean", "histogram", "quantiles", "variance")
    },
    "answers": {
        "an answer by votes": "stability.answers kind=VoteTable n=2000000 each",
        "a report of one in 1,024": 'local.kary k=1024 route="1 thread" each',
    },
    "adaptation": {
        f"d = {d}": f"adaptation.step d={d} dtype=float32 loss=squared" for d in (8, 64)
    },
    "weights": {
        "projection, 1,000,000": 'weights.project n=1000000 into="new memory"',
        "projection, 100,000,000": 'weights.project n=100000000 into="new memory"',
        "update by floats, 10,000,000": "weights.update n=10000000 losses=floats",
    },
    "score": {
        "conjunctions": "score.conjunctions",
        "conjunctions, packing included": 'score.conjunctions route="packing included, 2 threads"',
        "halfspaces, d = 64, n = 100,000": "score.halfspaces n=100000 d=64",
    },
    "transfer": {f"n = {n:,}": f"transfer.run n={n}" for n in (10_000, 1_000_000)},
    "tables": {
        "csv": 'tables.read file=csv route="read_table, 2 threads"',
        "csv, labels and features": 'tables.read file=csv route="features, 2 threads"',
        "parquet": 'tables.read file=parquet route="read_table, 2 threads"',
    },
    "accounting": {
        name: f'accounting.epsilon composed="{composed}" route="pld, 1 thread"'
        for name, composed in (
            ("one Gaussian, mu = 1", "Gaussian, mu 1"),
            ("100 of Laplace, epsilon .1 each", "Laplace, epsilon 0.1 x 100"),
            ("2,000 minibatch gradients", "minibatch gradients x 2,000"),
        )
    },
}
SERIES = ("1 thread", "2 threads", "numpy", "peer")

Results = dict[str, Any]
Entry = dict[str, Any]


def load(folder: Path = RESULTS) -> dict[str, Results]:
    """The stored results by the kinds of their processors."""
    return {
        path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))
    }


def chosen(results: Results, group: str, wanted: dict[str, str]) -> Iterator[Entry]:
    """The results of a group with these parameters."""
    for entry in results["groups"]:
        params = {name: str(value) for name, value in entry["params"].items()}
        if entry["group"] == group and wanted.items() <= params.items():
            yield entry


def parse(spec: str) -> tuple[str, dict[str, str], set[str]]:
    """Group, parameters and words of a comment."""
    group, *rest = shlex.split(spec)
    pairs = dict(part.split("=", 1) for part in rest if "=" in part)
    return group, pairs, {part for part in rest if "=" not in part}


def render_table(spec: str, results: dict[str, Results]) -> str:
    """A Markdown table of a group, a column for each processor."""
    group, wanted, words = parse(spec)
    route_name = wanted.pop("route", None)
    rows: dict[tuple[Any, ...], dict[str, str]] = {}
    entries = [entry for each in results.values() for entry in chosen(each, group, wanted)]
    if not entries:
        return f"\n\nNo results of {group} are stored.\n\n"
    names = [name for name in entries[0]["params"] if name not in wanted]
    extra = list(dict.fromkeys(figure for entry in entries for route in entry["routes"]
                               for figure in route.get("figures", ())))  # fmt: skip
    for kind, one in results.items():
        for entry in chosen(one, group, wanted):
            for route in entry["routes"]:
                if route["role"] == "limit" or (route["role"] != "ours" and "all" not in words):
                    continue
                if route_name in (None, route["name"]):
                    key = (*(show(entry["params"][name]) for name in names), label(route))
                    row = rows.setdefault(key, {})
                    row[kind] = cell(entry, route, "each" in words)
                    for name in extra:
                        row.setdefault(
                            f"figure {name}", show(route.get("figures", {}).get(name, ""))
                        )
    header = [*names, "", *extra, *(title(each) for each in results.values())]
    lines = [f"| {' | '.join(header)} |"]
    align = ["---"] * (len(names) + 1) + ["---:"] * (len(extra) + len(results))
    lines.append(f"| {' | '.join(align)} |")
    for key, row in rows.items():
        cells = [row.get(f"figure {name}", "") for name in extra]
        cells += [row.get(kind, "") for kind in results]
        lines.append(f"| {' | '.join([*key, *cells])} |")
    return "\n\n" + "\n".join(lines) + "\n\n"


def render_family(name: str, results: dict[str, Results]) -> str:
    """A row for each case of a family, a column for each processor."""
    lines = [f"|  | {' | '.join(one['processor']['name'] for one in results.values())} |"]
    lines.append("| --- |" + " ---: |" * len(results))
    for case, spec in FAMILIES[name].items():
        cells = (case_cell(spec, one) for one in results.values())
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return "\n\n" + "\n".join(lines) + "\n\n"


def case_cell(spec: str, one: Results) -> str:
    """What a processor's results say of the one route that is meant, if they have it."""
    group, wanted, words = parse(spec)
    route_name = wanted.pop("route", "2 threads")
    for entry in chosen(one, group, wanted):
        for route in entry["routes"]:
            if route["name"] == route_name:
                return cell(entry, route, "each" in words).removesuffix(" of the limit")
    return ""


def label(route: dict[str, Any]) -> str:
    """What a row is called."""
    return route["name"] if route["role"] != "numpy" else f"numpy, {route['name']}"


def title(results: Results) -> str:
    """A processor, as a column is called."""
    return f"{results['processor']['name']}, {results['processor']['cores']} cores"


def cell(entry: Entry, route: dict[str, Any], each: bool) -> str:
    """Time, ratios and share of the limit."""
    ratios = route.get("ratios", {})
    parts = [duration(route["seconds"] / (entry["work"] if each else 1))]
    if "numpy" in ratios:
        parts.append(f"{factor(ratios['numpy'])} x numpy")
    if "peer" in ratios:
        parts.append(f"{factor(ratios['peer'])} x {fastest(entry, 'peer')['name']}")
    if "limit" in ratios:
        parts.append(f"{share(ratios['limit'])} of the limit")
    return "; ".join(parts)


def fastest(entry: Entry, role: str) -> dict[str, Any]:
    """The fastest rival of a kind."""
    return min((r for r in entry["routes"] if r["role"] == role), key=lambda r: r["seconds"])


def render_speed(spec: str, results: dict[str, Results]) -> str:
    """Our time and that of the rivals, in words."""
    group, wanted, words = parse(spec)
    route_name = wanted.pop("route")
    for one in results.values():
        for entry in chosen(one, group, wanted):
            unit = entry["work"] if "each" in words else 1
            (ours,) = [route for route in entry["routes"] if route["name"] == route_name]
            rivals = [(role, fastest(entry, role)) for role in ("numpy", "peer")
                      if any(route["role"] == role for route in entry["routes"])]  # fmt: skip
            parts = [duration(ours["seconds"] / unit)]
            for role, rival in rivals:
                name = "numpy" if role == "numpy" else rival["name"]
                parts.append(f"{name} {duration(rival['seconds'] / unit)}")
            return "; ".join(parts)
    return "not measured yet"


def render_processors(spec: str, results: dict[str, Results]) -> str:
    """The processors in words, or the first."""
    names = [
        f"{one['processor']['cores']} cores of an {one['processor']['name']}"
        for one in results.values()
    ]
    if spec == "first":
        names = names[:1]
    return " and ".join(names) or "no processor yet"


def render_machines(_: str, results: dict[str, Results]) -> str:
    """A table of processors and of what each can do at most."""
    if not results:
        return "\n\nNo results are stored.\n\n"
    lines = ["| processor | | " + " | ".join(next(iter(results.values()))["limits"]) + " |"]
    lines.append("| --- | --- |" + " ---: |" * len(next(iter(results.values()))["limits"]))
    for one in results.values():
        sets = ", ".join(one["processor"]["instructions"])
        about = f"{sets}; numpy {one['versions']['numpy']}; {one['day']}"
        limits = " | ".join(f"{value:.3g}" for value in one["limits"].values())
        lines.append(f"| {title(one)} | {about} | {limits} |")
    return "\n\n" + "\n".join(lines) + "\n\n"


def growth_rows(results: Results) -> list[list[str]]:
    """Milliseconds of every kernel that grows with a size: header, then a row a size."""
    rows = [["kernel", "size", *SERIES]]
    for name, group, size, wanted in GROWTH:
        for entry in chosen(results, group, wanted):
            seconds = {route["name"]: route["seconds"] for route in entry["routes"]
                       if route["role"] == "ours"}  # fmt: skip
            for role in ("numpy", "peer"):
                if any(route["role"] == role for route in entry["routes"]):
                    seconds[role] = fastest(entry, role)["seconds"]
            cells = [digits(1e3 * seconds[each]) if each in seconds else "" for each in SERIES]
            rows.append([name, str(entry["params"][size]), *cells])
    return [[text.replace(",", "") if i > 1 and row is not rows[0] else text
             for i, text in enumerate(row)] for row in rows]  # fmt: skip


def render_growth(_: str, results: dict[str, Results]) -> str:
    """The picture of every processor, and where its numbers are."""
    return "".join(
        f"\n\n![Time against size on {title(one)}: lines of slope 1 in logarithmic scales]"
        f"(figures/growth_{kind}.svg)\n\n"
        f"Its [milliseconds](figures/data/growth_{kind}.csv) (`{COMMAND}`).\n\n"
        for kind, one in results.items()
    )


def growth_data(results: Results) -> str:
    """The numbers of the picture."""
    text = io.StringIO()
    text.write(f"# {COMMAND}\n")
    csv.writer(text, lineterminator="\n").writerows(growth_rows(results))
    return text.getvalue()


RENDER: dict[str, Callable[[str, dict[str, Results]], str]] = {
    "family": render_family,
    "table": render_table,
    "speed": render_speed,
    "processors": render_processors,
    "machines": render_machines,
    "growth": render_growth,
}


def fill(text: str, results: dict[str, Results]) -> str:
    """The document with what the results say between its comments."""
    return BLOCK.sub(
        lambda match: match[1] + RENDER[match[2]](match[3] or "", results) + match[4], text
    )


def show_stored(words: list[str], results: dict[str, Results]) -> str:
    """All tables of a family, the table of a group, or the names of all groups that are stored."""
    names = sorted({entry["group"] for one in results.values() for entry in one["groups"]})
    if not words:
        return "\n".join(names)
    if "." in words[0]:
        return render_table(shlex.join(words), results).strip()
    family = [name for name in names if name.partition(".")[0] == words[0]]
    if not family:
        raise SystemExit(f"{words[0]}: no family; --show alone lists what there is")
    return "\n\n".join(
        name + render_table(shlex.join([name, "all", *words[1:]]), results).rstrip()
        for name in family
    )


def expected(results: dict[str, Results]) -> dict[Path, str]:
    """All files that this program writes."""
    files = {path: fill(path.read_text("utf-8"), results) for path in DOCUMENTS}
    files |= {DATA / f"growth_{kind}.csv": growth_data(one) for kind, one in results.items()}
    return files


def main() -> None:
    """Writes or checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    parser.add_argument(
        "--show", nargs="*", metavar="WORD", help="print tables of a family or group"
    )
    options = parser.parse_args()
    if options.show is not None:
        print(show_stored(options.show, load()))
        return
    files = expected(load())
    stale = [path for path, text in files.items()
             if not path.exists() or path.read_text("utf-8") != text]  # fmt: skip
    if options.check and stale:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        sys.exit(f"{names}: run `python docs/tools/write_performance.py`")
    for path in stale:
        path.write_text(files[path], "utf-8")


if __name__ == "__main__":
    main()
