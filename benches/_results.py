"""Results of a run: what is kept of them, how two runs compare.

A file of results holds one kind of processor: medians, ratios, limits, groups, parameters and the
versions that were measured; no name of a machine or a person, no path and no time of day.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from _harness import Race
from _tables import show

import hdp_fast

# A ratio may be so many times smaller than the one that is stored.
SLACK = 1.25
RATIOS = ("numpy", "peer", "limit")

Entry = dict[str, Any]
Results = dict[str, Any]


def entry_of(race: Race) -> Entry:
    """What is kept of a group."""
    routes = []
    for route in race.routes:
        kept = {"role": route.role, "name": route.name, "threads": route.threads}
        kept["seconds"] = shorten(route.seconds)
        if route.figures:
            kept["figures"] = route.figures
        routes.append(kept)
    for route in routes:
        if route["role"] == "ours":
            route["ratios"] = ratios_of(route, routes)
    entry = {"group": race.group, "params": race.params, "work": race.work, "unit": race.unit}
    return {**entry, "routes": routes}


def ratios_of(ours: Mapping[str, Any], routes: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """How many times as fast as the fastest numpy and peer, and which share of the limit, it is.

    Rivals may use as many threads as ours; a limit is that of as many threads, if it is known.
    """
    found = {}
    for role in RATIOS:
        rivals = [route for route in routes if route["role"] == role]
        if role == "limit":
            fair = [route for route in rivals if route["threads"] == ours["threads"]]
        else:
            fair = [route for route in rivals if route["threads"] <= ours["threads"]]
        times = [route["seconds"] for route in fair or rivals]
        if times:
            best = max(times) if role == "limit" else min(times)
            found[role] = shorten(best / ours["seconds"])
    return found


def shorten(value: float) -> float:
    """Four digits: more would only show the noise."""
    return float(f"{value:.4g}")


def collect(
    entries: Iterable[Entry], processor: Mapping[str, Any], limits: Mapping[str, float]
) -> Results:
    """The results of a run."""
    return {
        "processor": dict(processor),
        "versions": {"hdp_fast": hdp_fast.__version__, "numpy": np.__version__},
        "day": datetime.now(UTC).date().isoformat(),
        "limits": {name: shorten(value) for name, value in limits.items()},
        "groups": list(entries),
    }


def key_of(entry: Mapping[str, Any]) -> str:
    """Group and parameters, as they are printed: "weights.project, n = 1,000,000"."""
    texts = (f"{name} = {show(value)}" for name, value in entry["params"].items())
    return ", ".join([entry["group"], *texts])


def merge(before: Results | None, now: Results, *, whole: bool = False) -> Results:
    """What was stored, with the groups of this run in the place of theirs.

    A run of whole files also ends what their benches were called before.
    """
    files = {file_of(entry) for entry in now["groups"]} if whole else set()
    kept = [entry for entry in (before or {}).get("groups", ()) if file_of(entry) not in files]
    groups = {key_of(entry): entry for entry in kept}
    groups |= {key_of(entry): entry for entry in now["groups"]}
    return {**now, "groups": [groups[key] for key in sorted(groups, key=natural)]}


def file_of(entry: Mapping[str, Any]) -> str:
    """Which file of benches a group is from."""
    return str(entry["group"]).partition(".")[0]


def natural(key: str) -> list[tuple[int, float, str]]:
    """Sorts numbers in texts by their values."""
    parts = key.replace(",", "").split(" ")
    return [(0, float(part), "") if is_number(part) else (1, 0.0, part) for part in parts]


def is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def read(path: Path) -> Results | None:
    """The results in a file, or None where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write(path: Path, results: Results) -> None:
    """Writes a file of results, one route a line, so that changes can be read."""
    text = json.dumps({**results, "groups": []}, indent=1)
    groups = ",\n".join(write_group(entry) for entry in results["groups"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace('"groups": []', f'"groups": [\n{groups}\n]') + "\n", "utf-8")


def write_group(entry: Entry) -> str:
    head = json.dumps({**entry, "routes": []})
    routes = ",\n".join(f"   {json.dumps(route)}" for route in entry["routes"])
    return "  " + head.replace('"routes": []', f'"routes": [\n{routes}\n  ]')


# Comparison --------------------------------------------------------------------------------------


def compare(stored: Results, now: Iterable[Entry]) -> dict[str, list[str]]:
    """What got slower, got faster, was not run, and is new, each in words.

    Ratios within a run are compared with those stored, since times of two runs differ with the
    load and the clock of the machine. The limit counts where there is no rival.
    """
    before = {key_of(entry): entry for entry in stored["groups"]}
    after = {key_of(entry): entry for entry in now}
    words: dict[str, list[str]] = {"slower": [], "faster": [], "not run": [], "new": []}
    for key in sorted(before | after, key=natural):
        if key not in before or key not in after:
            words["new" if key not in before else "not run"].append(key)
            continue
        was, found = ours_of(before[key]), ours_of(after[key])
        for name in was | found:
            label = f"{key}: {name}"
            if name not in was or name not in found:
                words["new" if name not in was else "not run"].append(label)
                continue
            for role, old, new in comparable(was[name], found[name]):
                said = f"{label}: {describe(role, new)}, stored {describe(role, old)}"
                if new * SLACK < old:
                    words["slower"].append(said)
                elif new > SLACK * old:
                    words["faster"].append(said)
    return words


def ours_of(entry: Entry) -> dict[str, dict[str, float]]:
    """The ratios of our routes by their names."""
    return {route["name"]: route["ratios"] for route in entry["routes"] if route["role"] == "ours"}


def comparable(
    was: Mapping[str, float], found: Mapping[str, float]
) -> Iterator[tuple[str, float, float]]:
    """(role, stored ratio, ratio now) of what both runs know."""
    roles = [role for role in ("numpy", "peer") if role in was and role in found]
    for role in roles or [role for role in ("limit",) if role in was and role in found]:
        yield role, was[role], found[role]


def describe(role: str, ratio: float) -> str:
    """A ratio in words."""
    return f"{100 * ratio:.0f} % of the limit" if role == "limit" else f"{ratio:.3g} times {role}"
