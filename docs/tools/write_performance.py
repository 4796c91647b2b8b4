"""Writes the figures of speed into documents, and the numbers of their pictures, from results.

Results are what `make bench-store` has put into benches/results, a file for each kind of processor.
A document says in comments what belongs where, and its text stays hand-written:

    <!-- table: GROUP [NAME=VALUE ...] [each] [all] -->...<!-- end -->
    <!-- speed: GROUP [NAME=VALUE ...] [each] -->...<!-- end -->
    <!-- processors[: first] -->...<!-- end -->
    <!-- machines -->...<!-- end -->
    <!-- growth -->...<!-- end -->

A table has a row for each route of this package, or with `all` of everybody, and a column for each
processor; `speed` is one cell in a sentence, of the first processor. NAME=VALUE chooses groups by
their parameters and `route` by its name; `each` shows the time of a unit of work. `--check` writes
nothing, and fails where a document differs from its results. `--show GROUP [NAME=VALUE ...] [each]
[all]` writes nothing, and prints a table; `--show` alone lists the groups.
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
    r"(<!-- (table|speed|processors|machines|growth)(?:: ([^>]*?))? -->).*?(<!-- end -->)",
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
    """The table of a group, or the names of all groups that are stored."""
    if words:
        return render_table(shlex.join(words), results).strip()
    groups = {entry["group"] for one in results.values() for entry in one["groups"]}
    return "\n".join(sorted(groups))


def expected(results: dict[str, Results]) -> dict[Path, str]:
    """All files that this program writes."""
    files = {path: fill(path.read_text("utf-8"), results) for path in DOCUMENTS}
    files |= {DATA / f"growth_{kind}.csv": growth_data(one) for kind, one in results.items()}
    return files


def main() -> None:
    """Writes or checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    parser.add_argument("--show", nargs="*", metavar="WORD", help="print the table of a group")
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
