"""Tables of benches/papers/linear_rivals.py: paired differences, ranks, and where ours is behind.

A cell is a table at one epsilon and one measure. Differences are those of the same splits, and
above 0 where ours is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from _linear_scores import CONSTANT, EPSILONS, OURS, RIVALS, Rival, Store

# R^2 below this counts as this in means and differences, which a single table would fill otherwise.
WORST = -1.0
MEASURES = {"accuracy": "score", "log loss": "loss", "R^2": "score"}
FAMILIES = {
    "two classes": (lambda classes: classes == 2, ("accuracy", "log loss")),
    "several classes": (lambda classes: classes > 2, ("accuracy", "log loss")),
    "targets": (lambda classes: classes == 0, ("R^2",)),
}
RELATIONS = ("same relation", "stated epsilon")


@dataclass(frozen=True)
class Pair:
    """The mean difference of ours and a rival over the splits that both have, and its error."""

    table: str
    epsilon: float
    measure: str
    rival: str
    relation: str
    ours: float
    theirs: float
    difference: float
    error: float

    @property
    def is_behind(self) -> bool:
        """Whether ours is behind by more than two standard errors."""
        return self.difference < -max(2 * self.error, 1e-9)

    @property
    def is_ahead(self) -> bool:
        """Whether ours is ahead by more than two standard errors."""
        return self.difference > max(2 * self.error, 1e-9)


def values_of(
    store: Store, table: str, learner: str, epsilon: float, measure: str
) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """The measure on all splits, or None where the learner failed."""
    cell = store.cells[table, learner, epsilon]
    if "failure" in cell:
        return None
    values = np.array(cell[MEASURES[measure]])
    return np.maximum(values, WORST) if measure == "R^2" else values


def epsilon_of(rival: Rival, epsilon: float, relation: str) -> float:
    """The rival's own epsilon that is compared with ours."""
    return epsilon / 2 if rival.add_remove and relation == RELATIONS[0] else epsilon


def compare(
    store: Store, table: str, epsilon: float, measure: str, rival: Rival, relation: str
) -> Pair | None:
    """The pair of a cell, or None where the rival failed."""
    ours = values_of(store, table, OURS, epsilon, measure)
    theirs = values_of(store, table, rival.name, epsilon_of(rival, epsilon, relation), measure)
    assert ours is not None
    if theirs is None:
        return None
    splits = min(len(ours), len(theirs))
    gains = ours[:splits] - theirs[:splits]
    if measure == "log loss":
        gains = -gains
    error = float(gains.std(ddof=1)) / math.sqrt(splits) if splits > 1 else 0.0
    means = float(ours.mean()), float(theirs.mean())
    names = (table, epsilon, measure, rival.name, relation)
    return Pair(*names, *means, float(gains.mean()), error)


def show_table(store: Store, table: str) -> None:
    """All that is stored of a table: means, standard errors, and differences at both relations."""
    facts = store.tables[table]
    family, measures = family_of(facts["classes"])
    print(f"\n{table}: {facts['records']:,} x {facts['columns']} to learn from, {family}")
    for measure in measures:
        print(f"{measure:>10}{'ours':>33}{'theirs, same relation':>34}{'theirs, as stated':>34}")
        for epsilon in EPSILONS:
            ours = values_of(store, table, OURS, epsilon, measure)
            print(f"{epsilon:>10}{'':>18}{tell(ours):>15}")
            for rival in rivals_of(family):
                print(
                    f"{rival.name:>30}{'':>13}" + tell_rival(store, table, epsilon, measure, rival)
                )


def tell_rival(store: Store, table: str, epsilon: float, measure: str, rival: Rival) -> str:
    """A rival's score and the paired difference, at both relations."""
    texts = []
    for relation in RELATIONS:
        pair = compare(store, table, epsilon, measure, rival, relation)
        own = epsilon_of(rival, epsilon, relation)
        if pair is None:
            texts.append(f"{'failed':>34}")
            continue
        mark = " <" if pair.is_behind else " "
        difference = f"{pair.difference:+.3f} ({pair.error:.3f}){mark:<2}"
        scores = values_of(store, table, rival.name, own, measure)
        texts.append(f"{tell(scores):>17}{difference:>17}")
    return "".join(texts)


def tell(values: Any) -> str:
    """A mean and its standard error."""
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.3f} ({error:.3f})"


def family_of(classes: int) -> tuple[str, tuple[str, ...]]:
    """The family of a table, and what is measured there."""
    for family, (belongs, measures) in FAMILIES.items():
        if belongs(classes):
            return family, measures
    raise ValueError(classes)


def rivals_of(family: str) -> list[Rival]:
    """Who can be asked for tables of a family."""
    kind = "targets" if family == "targets" else "classes"
    return [rival for rival in RIVALS if kind in rival.kinds]


def tables_of(store: Store, family: str) -> list[str]:
    """The tables of a family on which all learners have been scored, the largest first."""
    names = [
        name for name, facts in store.tables.items() if family_of(facts["classes"])[0] == family
    ]
    names = [name for name in names if is_complete(store, name)]
    return sorted(names, key=lambda name: -store.tables[name]["records"])


def is_complete(store: Store, table: str) -> bool:
    """Whether all cells of a table are there."""
    family, _ = family_of(store.tables[table]["classes"])
    own = [(table, name, epsilon) for name in (OURS, CONSTANT) for epsilon in EPSILONS]
    return all(key in store.cells for key in own) and all(
        (table, rival.name, epsilon_of(rival, epsilon, relation)) in store.cells
        for rival in rivals_of(family)
        for epsilon in EPSILONS
        for relation in RELATIONS
    )


def rank(store: Store, table: str, epsilon: float, measure: str, family: str) -> dict[str, float]:
    """Ranks of all learners in a cell at the same relation, 1 the best; who failed is the last."""
    own = {OURS: epsilon}
    own |= {rival.name: epsilon_of(rival, epsilon, RELATIONS[0]) for rival in rivals_of(family)}
    sign = -1.0 if measure == "log loss" else 1.0
    means = {}
    for name, value in own.items():
        values = values_of(store, table, name, value, measure)
        means[name] = -math.inf if values is None else sign * float(values.mean())
    return {
        name: 1 + sum(other > mean for other in means.values())
        + (sum(other == mean for other in means.values()) - 1) / 2
        for name, mean in means.items()
    }  # fmt: skip


def pairs_of(
    store: Store, family: str, measure: str, rival: Rival, relation: str
) -> list[Pair | None]:
    """The pairs of all cells of a family, None where the rival failed."""
    return [
        compare(store, table, epsilon, measure, rival, relation)
        for table in tables_of(store, family)
        for epsilon in EPSILONS
    ]


def all_pairs(store: Store, relation: str) -> list[Pair]:
    """The pairs of all cells and rivals."""
    return [
        pair
        for family, (_, measures) in FAMILIES.items()
        for measure in measures
        for rival in rivals_of(family)
        for pair in pairs_of(store, family, measure, rival, relation)
        if pair
    ]


def summarize_page(store: Store) -> Iterator[str]:
    """Lines of Markdown for the page: a table of standings, and where ours is behind by most."""
    yield "With our relation: mean rank; mean difference (above 0: ours is better), ahead, behind."
    yield ""
    yield from summarize_ranks(store)
    yield from summarize_behind(all_pairs(store, RELATIONS[0]), RELATIONS[0], least=0.05)
    yield from summarize_versions(store)


def summarize_ranks(store: Store) -> Iterator[str]:
    """Ranks with our relation, and how far and how often ours is ahead, a column a measure."""
    columns = [(family, measure) for family, (_, measures) in FAMILIES.items()
               for measure in measures]  # fmt: skip
    yield from make_head(["learner", *(", ".join(column) for column in columns)])
    for name in (OURS, *(rival.name for rival in RIVALS)):
        cells = [tell_rank(store, name, family, measure) for family, measure in columns]
        yield make_row([name, *cells])


def tell_rank(store: Store, name: str, family: str, measure: str) -> str:
    """A learner's mean rank; of a rival, the mean difference, and cells ahead and behind."""
    rival = next((rival for rival in rivals_of(family) if rival.name == name), None)
    tables = tables_of(store, family)
    if not tables or (rival is None and name != OURS):
        return ""
    ranks = [rank(store, table, epsilon, measure, family)[name] for table in tables
             for epsilon in EPSILONS]  # fmt: skip
    gain = f"; {tell_standing(store, family, measure, rival)[0]}" if rival else ""
    return f"{fmean(ranks):.2f}{gain}"


def summarize(store: Store, epsilon: float) -> Iterator[str]:
    """Lines of Markdown: standings and a table of each family, and where ours is behind."""
    yield "### All cells"
    yield ""
    yield from summarize_all(store)
    for family, (_, measures) in FAMILIES.items():
        if not tables_of(store, family):
            continue
        for measure in measures:
            yield from summarize_standings(store, family, measure)
            yield from summarize_family(store, family, measure, epsilon)
    yield from summarize_behind(all_pairs(store, RELATIONS[0]), RELATIONS[0])
    yield from summarize_behind(all_pairs(store, RELATIONS[1]), RELATIONS[1], first=1.0)
    yield from summarize_behind(constant_pairs(store), "the constant without noise", first=0.5)
    yield from summarize_seconds(store)
    yield from summarize_failures(store)
    yield from summarize_versions(store)


def summarize_versions(store: Store) -> Iterator[str]:
    """What the scores were made with."""
    yield ""
    versions = ", ".join(f"{name} {value}" for name, value in sorted(store.versions.items()))
    yield f"Versions: {versions}. Settings: {store.settings}."


def summarize_all(store: Store) -> Iterator[str]:
    """In how many cells of all rivals ours is ahead and behind, by more than two errors."""
    yield from make_head(
        ["tables", "epsilon", *(f"{name}: cells, ahead, behind" for name in RELATIONS)]
    )
    fresh = {name for name, facts in store.tables.items() if facts["fresh"]}
    for title, names in (("all", set(store.tables)), ("no rule was chosen on", fresh)):
        for epsilon in EPSILONS:
            row = [title, f"{epsilon:g}"]
            for relation in RELATIONS:
                pairs = [
                    pair
                    for pair in all_pairs(store, relation)
                    if pair.table in names and pair.epsilon == epsilon
                ]
                ahead, behind = count(pairs)
                row.append(f"{len(pairs)}, {ahead}, {behind}")
            yield make_row(row)


def summarize_standings(store: Store, family: str, measure: str) -> Iterator[str]:
    """Ranks, means, and in how many cells ours is ahead and behind, a line for each learner."""
    tables = tables_of(store, family)
    cells = [(table, epsilon) for table in tables for epsilon in EPSILONS]
    ranks = [rank(store, *cell, measure, family) for cell in cells]
    yield ""
    yield f"### {family.capitalize()}, {measure}: {len(tables)} tables, {len(cells)} cells"
    yield ""
    means = [f"mean at {epsilon:g}" for epsilon in EPSILONS]
    gains = [f"{relation}: difference, ahead, behind" for relation in RELATIONS]
    yield from make_head(["learner", "rank", *means, *gains, "failed"])
    for name in (OURS, *(rival.name for rival in rivals_of(family))):
        rival = next((rival for rival in RIVALS if rival.name == name), None)
        row = [name, f"{fmean(places[name] for places in ranks):.2f}"]
        row += [tell_mean(store, tables, name, rival, epsilon, measure) for epsilon in EPSILONS]
        yield make_row(row + tell_standing(store, family, measure, rival))


def tell_mean(
    store: Store, tables: list[str], name: str, rival: Rival | None, epsilon: float, measure: str
) -> str:
    """A learner's mean over all tables with our relation, if it failed on none."""
    own = epsilon_of(rival, epsilon, RELATIONS[0]) if rival else epsilon
    values = [values_of(store, table, name, own, measure) for table in tables]
    if any(value is None for value in values):
        return "-"
    return f"{fmean(float(value.mean()) for value in values if value is not None):.3f}"


def tell_standing(store: Store, family: str, measure: str, rival: Rival | None) -> list[str]:
    """Mean differences of ours and a rival, cells ahead and behind, and cells where it failed."""
    if rival is None:
        return [""] * 3
    texts, failed = [], 0
    for relation in RELATIONS:
        pairs = pairs_of(store, family, measure, rival, relation)
        kept = [pair for pair in pairs if pair]
        failed = len(pairs) - len(kept)
        mean = f"{fmean(pair.difference for pair in kept):+.3f}" if kept else "-"
        texts.append(f"{mean}, {', '.join(str(number) for number in count(kept))}")
    return [*texts, str(failed)]


def count(pairs: list[Pair]) -> tuple[int, int]:
    """In how many cells ours is ahead, and behind."""
    return sum(pair.is_ahead for pair in pairs), sum(pair.is_behind for pair in pairs)


def summarize_family(store: Store, family: str, measure: str, epsilon: float) -> Iterator[str]:
    """Means and standard errors on every table at one epsilon, all with our relation."""
    names = [OURS, *(rival.name for rival in rivals_of(family))]
    yield ""
    yield f"Means at epsilon {epsilon:g} with our relation, and their standard errors; bold is"
    yield "ahead of ours by more than two errors of the paired difference."
    yield ""
    yield from make_head(["records to learn from x columns", *names, CONSTANT])
    for table in tables_of(store, family):
        facts = store.tables[table]
        row = [f"{table}, {facts['records']:,} x {facts['columns']}"]
        row.append(tell(values_of(store, table, OURS, epsilon, measure)))
        for rival in rivals_of(family):
            own = epsilon_of(rival, epsilon, RELATIONS[0])
            values = values_of(store, table, rival.name, own, measure)
            pair = compare(store, table, epsilon, measure, rival, RELATIONS[0])
            mark = "**" if pair and pair.is_behind else ""
            row.append("failed" if values is None else f"{mark}{tell(values)}{mark}")
        yield make_row([*row, tell(values_of(store, table, CONSTANT, epsilon, measure))])


def constant_pairs(store: Store) -> list[Pair]:
    """The pairs of ours and the constant, which every table has."""
    constant = Rival(CONSTANT, "classes targets", False)
    return [
        pair
        for family, (_, measures) in FAMILIES.items()
        for measure in measures
        for pair in pairs_of(store, family, measure, constant, RELATIONS[0])
        if pair
    ]


def summarize_behind(
    pairs: list[Pair], rivals: str, *, first: float = 0.0, least: float = 0.0
) -> Iterator[str]:
    """In how many cells ours is behind by over two standard errors, and which.

    Listed are cells from epsilon `first` on, by a mean difference of `least` or more.
    """
    behind = sorted((pair for pair in pairs if pair.is_behind), key=lambda pair: pair.difference)
    late = sum(pair.epsilon >= 1 for pair in behind)
    total = f"{len(behind)} of {len(pairs)} cells, {late} of them from epsilon 1 on"
    yield ""
    yield f"### Behind, {rivals}: {total}"
    yield ""
    listed = [pair for pair in behind if pair.epsilon >= first and -pair.difference >= least]
    if len(listed) < len(behind):
        limit = f"by {least:g} or more" if least else f"from epsilon {first:g} on"
        yield f"Those {limit}:"
        yield ""
    yield from make_head(
        ["table", "measure", "epsilon", "rival", "ours", "theirs", "difference", "error"]
    )
    for pair in listed:
        numbers = (pair.ours, pair.theirs, pair.difference, pair.error)
        texts = [f"{number:.3f}" for number in numbers]
        yield make_row([pair.table, pair.measure, f"{pair.epsilon:g}", pair.rival, *texts])


def summarize_seconds(store: Store) -> Iterator[str]:
    """The mean and the longest seconds of a fit of each learner, over tables and epsilons."""
    yield ""
    yield "### Seconds of a fit"
    yield ""
    yield from make_head(["learner", "mean", "longest", "on"])
    for name in (OURS, *(rival.name for rival in RIVALS)):
        cells = [
            cell
            for cell in store.cells.values()
            if cell["learner"] == name and "failure" not in cell
        ]
        if cells:
            longest = max(cells, key=lambda cell: cell["seconds"])
            mean = fmean(cell["seconds"] for cell in cells)
            yield make_row([name, f"{mean:.3f}", f"{longest['seconds']:.3f}", longest["table"]])


def summarize_failures(store: Store) -> Iterator[str]:
    """Which rivals failed where, and what they said."""
    said: dict[tuple[str, str], list[str]] = {}
    for (table, learner, _), cell in sorted(store.cells.items()):
        if "failure" in cell:
            tables = said.setdefault((learner, cell["failure"]), [])
            tables += [table] if table not in tables else []
    yield ""
    yield "### Failures"
    yield ""
    for (learner, failure), tables in said.items():
        yield f"- {learner}, `{failure}`: {', '.join(tables)}"


def make_head(names: list[str]) -> Iterator[str]:
    """The first two rows of a table in Markdown."""
    yield make_row(names)
    yield make_row(["---"] * len(names))


def make_row(cells: list[str]) -> str:
    """A row of a table in Markdown."""
    return "| " + " | ".join(cells) + " |"
