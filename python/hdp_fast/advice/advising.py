"""Which method to take, from public numbers alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from .._support.notes import note
from .candidates import CONSTANT, list_methods
from .methods import Method, Outlook
from .results import USELESS, Advice, Forecast
from .sizes import LARGEST_EPSILON, LEAST_EPSILON, MOST, Learner, Sizes, Source, Target

# Numbers that somebody may have more of, and how they are called.
_COUNTS = {"n": "private records", "agents": "agents", "pool": "public points"}
_PRIVACIES = ("epsilon", "agents_epsilon")
_FACTORS = {"n": (2, 4, 8, 16, 64, 256), "agents": (2, 4, 8, 16, 64, 256), "pool": (4, 64)}
_FEWEST = 10
_FIRST = (100, 1_000, 10_000, 100_000)


def advise(
    *,
    n: int,
    d: int,
    epsilon: float,
    agents: int = 0,
    pool: int = 0,
    classes: int = 2,
    delta: float = 1e-6,
    agents_epsilon: float = 1.0,
    learner: Learner = "linear",
    size: int | None = None,
    target: Target = "unknown",
    source: Source = "private",
    base_rate: float | None = None,
    best_error: float | None = None,
    changes: bool = True,
) -> Advice:
    """Ranks the methods of this package for a task, before any data are read.

    A method loses what noise, chance and a shift take. What the first two take of a linear model
    follows a law that was measured on 48 tables. Noise takes `1.8 / s**.5` of what can be learned
    from a signal s, and of numbers, whose errors are shares of their variance, `3.6 / s**.65`.
    Where `best_error` says which share r of the constant's error can be learned, it is
    `1.35 / (s**.6 r**.7)` and `1.75 / (s**.7 r**.8)`. Chance takes `.06 / (c**.65 r**1.75)` from c
    records for each weight, and of numbers (1 - r) / (r c); r counts as .4 where it is not known.
    Luck makes that .05, .4, .9, 1.8 or 5 times as much. Here mu is the parameter of the Gaussian
    mechanism with this epsilon and delta, tau = tanh(agents_epsilon / 2), and the signal is

    - s = n mu / sqrt((d + 1) (K - 1)) of the centered learner's descent, and 1.4 times that of one
      release of statistics, twice with more than two classes;
    - s = tau sqrt(N / d) of agents alone, who in a finite class vote on the hypotheses with a
      standard error of sqrt(size / (4 N)) / tau each;
    - votes have k members of n / k records each, who lose what chance takes, as 30 columns would if
      they are not linear, and the plurality half of that; the table says which part c of answers
      are coins where a member has this lead, and of q answers chance takes what it takes of
      `(1 - c)**2 q`;
    - the exponential mechanism over a finite class loses
      2 ln(size) / (epsilon n) + sqrt(ln(size) / (2 n)) where labels are faint, and errs with
      size exp(-epsilon n e / 2) where they are sharp, for a constant's error e;
    - reweighing a finite class learns from kappa n records in each of four or ten rounds, each
      tested by its part of the agents;
    - one release of residual moments mends what a public model loses: there remains half of the
      harmonic mean of that and what a model of the records in 30 directions would lose.

    For a mean, or a table of shares, no law is measured: the standard error is the root of
    `shift**2 + chance + noise`, by exact variances. Records have the noise of `statistics.mean` and
    `statistics.histogram`; people who are asked have that of `local.Randomizer.variance`, and no
    shift. Both are weighed by the inverse of their mean squared errors. Means of several columns
    share one release of the records, and divide the agents.

    A shift leaves only the share 1 / E[target / source] of the records worth as much as a sample of
    the target, and moves the log-odds. Agents measure the intercept with the standard error that
    transfer.plan_calibration states; calibration takes it where it is less than the shift.

    What public numbers do not say is averaged over: luck, base rates of .05, .2 and .5, and shifts
    of 1, 3, 10 and 30 with log-odds that move by 0 to 3; for a finite class also whether labels are
    sharp, and whether the target follows the rule of a part of the source. Each is as likely as any
    other, and a range reaches from the 6th to the 94th percentile. That is no knowledge of your
    data: where you know more, pass `target`, `base_rate` and `best_error`. For means and tables it
    is how far people differ, and how far source and target are apart (up to a tenth of the width of
    the bounds), and the range is that of all such populations.

    Args:
        n: Number of private records; 0 only with a public source and agents.
        d: Number of feature columns, or of means that are wanted together, at least 1; 1 for a
            table.
        epsilon: Privacy parameter of the records, 0.001 to 1,000; math.inf protects none.
        agents: Number of agents N who may be asked a question each; 0 where there are none.
        pool: Number of public points. With a private source they have no labels and are of the
            target; with a public source they are its labeled records, at least 1.
        classes: Number K of labels, 2 to 256.
        delta: Privacy parameter of the records, in [1e-200, 1).
        agents_epsilon: Privacy parameter of each agent's answer, above 0.
        learner: "linear" for models of a score that is linear in the columns; "regression" for a
            number between public bounds; "finite" for a class of `size` hypotheses, of which one is
            wanted; "other" where a linear model may not fit. "mean" is no model, but the mean of
            each of d numbers between public bounds, and "table" the share of each of `size`
            categories.
        size: Number of hypotheses of a finite class, at least 1, or of categories of a table, from
            2 to `2**24`; None for other learners.
        target: Whether the population that the model is for is the "same" as that of the source,
            "shifted", or "unknown".
        source: Whether the source is "private". With a "public" source, n private records of the
            target are protected.
        base_rate: Share of label 1 in the target where it is known publicly, in [1e-6, 1 - 1e-6].
        best_error: Error that such a model has without privacy, as far as public sources tell it,
            in [0, error of the constant). For numbers it is the share of their variance that is not
            explained.
        changes: Whether to search for what would make another method the first one, which takes
            most of the time.

    Returns:
        The Advice. Its repr is a table.

    Raises:
        ParameterError: An argument is out of range or does not fit the others.

    Guarantee:
        No record is read; the advice is a function of its arguments.

    Cost:
        Tenths of a second, most of them for the tables of votes.

    Source:
        Wang 2018 (sufficient statistics), Bassily, Thakkar and Thakurta 2018 (votes), Kohen and
        Sheffet 2022 (reweighing); the laws were measured (docs/start/which_method.md).

    Examples:
        >>> import hdp_fast
        >>> task = {"n": 3_500, "d": 40, "classes": 10, "pool": 1_000, "target": "same"}
        >>> advice = hdp_fast.advise(**task, epsilon=1.0, changes=False)
        >>> [one.name for one in advice.candidates if one.useful]
        ['statistics', 'linear model', 'votes']
        >>> advice.best.call.split("(")[0]
        'labels.StatisticsLabeler'
        >>> counted = {"n": 500, "agents": 20_000, "d": 1, "learner": "table", "size": 4}
        >>> hdp_fast.advise(**counted, epsilon=1.0, target="same", changes=False).best.name
        'records and agents'
    """
    # Nothing else is local yet.
    numbers = {name: value for name, value in locals().items() if name != "changes"}
    sizes = Sizes(**numbers)
    candidates = _order(sizes)
    if not any(one.useful for one in candidates):
        rule = "no method keeps a quarter of what can be learned: more records or agents are needed"
        note(f"n = {sizes.n:,} and agents = {sizes.agents:,}, but {rule}")
    return Advice(
        candidates=candidates,
        missing=tuple(_list_missing(sizes)),
        changes=tuple(_list_changes(sizes)) if changes else (),
        sizes=dataclasses.asdict(sizes),
        constant_error=sizes.constant_error,
        room=sizes.room,
    )


def _order(sizes: Sizes) -> tuple[Forecast, ...]:
    """Forecasts from the least expected loss; where two are equal, the cheaper one is first."""
    runnable = [method for method in list_methods(sizes) if method.lack(sizes) is None]
    return tuple(sorted((_forecast(one, sizes) for one in runnable), key=lambda one: one.lost))


def _forecast(method: Method, sizes: Sizes) -> Forecast:
    outlook, setting = method.forecast(sizes)
    lost = _round(sizes, outlook)
    call = method.make_call(sizes, *setting)
    return Forecast(
        name=method.name,
        low=min(1.0, sizes.room * outlook.low),
        expected=min(1.0, sizes.room * min(max(lost, outlook.low), outlook.high)),
        high=min(1.0, sizes.room * outlook.high),
        lost=lost,
        useful=lost <= USELESS and method is not CONSTANT,
        basis=method.explain(sizes, *setting),
        call=None if call is None else repr(call),
        command=method.write_command(sizes, *setting),
    )


def _list_missing(sizes: Sizes) -> Iterator[tuple[str, str]]:
    for method in list_methods(sizes):
        reason = method.lack(sizes)
        if reason is not None:
            yield method.name, reason


def _find_best(sizes: Sizes) -> str:
    """Name of the best method, without the words of its forecast."""
    outlooks: list[tuple[float, str]] = [
        (_round(sizes, method.forecast(sizes)[0]), method.name)
        for method in list_methods(sizes)
        if method.lack(sizes) is None
    ]
    lost, name = min(outlooks, key=lambda pair: pair[0])
    return name if lost <= USELESS else CONSTANT.name


def _round(sizes: Sizes, outlook: Outlook) -> float:
    """To hundredths, or to two digits where laws are exact."""
    return float(f"{outlook.mean:.2g}") if sizes.is_estimate else round(outlook.mean, 2)


def _list_changes(sizes: Sizes) -> Iterator[str]:
    """The nearest number, of each kind, at which another method is the best."""
    best = _find_best(sizes)
    for name, words in _COUNTS.items():
        count, factors = getattr(sizes, name), _FACTORS[name]
        more = [count * factor for factor in factors] if count else list(_FIRST)
        more = [one for one in more if one <= MOST]
        fewer = [count // factor for factor in factors if count // factor >= _FEWEST]
        yield from _find_change(sizes, best, name, more, f"{words} or more")
        yield from _find_change(sizes, best, name, fewer, f"{words} or fewer")
    for name in _PRIVACIES if sizes.agents else _PRIVACIES[:1]:
        value = getattr(sizes, name)
        for values in ([value * 2, value * 4], [value / 2, value / 4]):
            values = [one for one in values if LEAST_EPSILON <= one <= LARGEST_EPSILON]
            yield from _find_change(sizes, best, name, values, f"for {name}")
    for target in ("same", "shifted"):
        other = _try(sizes, target=target)
        if other not in (None, best):
            yield f'target "{target}": {other}'


def _find_change(
    sizes: Sizes, best: str, name: str, values: list[int] | list[float], words: str
) -> Iterator[str]:
    for value in values:
        other = _try(sizes, **{name: value})
        if other not in (None, best):
            yield f"{value:,} {words}: {other}"
            return


def _try(sizes: Sizes, **changes: object) -> str | None:
    """Name of the best method at other sizes; None where they are none."""
    changed = sizes.change(**changes)
    if dataclasses.asdict(changed) == dataclasses.asdict(sizes):
        return None
    return _find_best(changed)
