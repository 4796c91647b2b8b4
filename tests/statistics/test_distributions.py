"""Distribution functions: sensitivity of counts, least squares, bands that cover, folding."""

import itertools
import math
import warnings

import numpy as np
import pytest
from cases import each_case

from hdp_fast import Budget, statistics
from hdp_fast.data.rows import Bounds
from hdp_fast.data.states import Tally
from hdp_fast.exceptions import ParameterError, ShapeError, UtilityWarning
from hdp_fast.statistics import Job, distributions
from hdp_fast.statistics.ranks import Grid, count_points
from hdp_fast.statistics.release_noise import Noise

BOUNDS = {"low": 0.0, "high": 100.0}
RELATIONS = ["replace_one", "add_remove"]
AGES = np.random.default_rng(0).integers(0, 100, 6_000)


def counts_of(records, plan):
    return plan.tally(Tally(*np.unique(np.array(records, np.int64), return_counts=True)))


@each_case("relation", RELATIONS)
@each_case("tree", [(5, 5, 1), (5, 3, 2), (5, 2, 3)])
def test_counts_of_neighbors_differ_by_what_the_noise_is_for(tree, relation):
    """Over all data sets of up to three records and their neighbors, in both norms."""
    plan = distributions._Tree(*tree)
    made = {
        rows: counts_of(rows, plan)
        for n in range(4)
        for rows in itertools.combinations_with_replacement(range(5), n)
    }
    most = plan.depth * (2 if relation == "replace_one" else 1)
    worst = 0
    for rows in made:
        for place in range(len(rows)):
            left = rows[:place] + rows[place + 1 :]
            others = [left] if relation == "add_remove" else [
                tuple(sorted((*left, point))) for point in range(5)
            ]  # fmt: skip
            for other in others:
                apart = made[rows] - made[other]
                worst = max(worst, np.abs(apart).sum(), (apart**2).sum())
    assert worst == most


TREES = [(5, 5, 1), (20, 5, 2), (27, 3, 3), (60, 8, 2), (14, 2, 4)]


def by_lstsq(plan, noisy, n):
    """The sums by least squares over all counts and the known total, as a linear system."""
    cells = plan.width**plan.depth
    matrix = np.vstack([
        np.kron(np.eye(size), np.ones(cells // size)) for size in plan.sizes
    ])  # fmt: skip
    aims = noisy.astype(float)
    if n is not None:
        # A weight that large holds the total.
        matrix, aims = np.vstack([matrix, 1e6 * np.ones(cells)]), np.append(aims, 1e6 * n)
    return np.cumsum(np.linalg.lstsq(matrix, aims, rcond=None)[0])[: plan.cells]


@each_case("n", [None, 70])
@each_case("tree", TREES)
def test_sums_are_those_of_least_squares(tree, n):
    plan = distributions._Tree(*tree)
    noisy = np.random.default_rng(7).integers(-5, 9, sum(plan.sizes))
    sums = plan.add_up(plan.average(noisy.astype(float)), n)
    assert sums == pytest.approx(by_lstsq(plan, noisy, n), abs=1e-4)


@each_case("known", [False, True])
@each_case("tree", TREES)
def test_bounds_are_those_of_the_weights_of_the_noise(tree, known):
    """Each sum's bound is that of all its draws, taken one by one."""
    plan, drawn = distributions._Tree(*tree), Noise("laplace", 7)
    total = 0 if known else None
    # The sums of unit vectors are the weights.
    weights = np.array([plan.add_up(plan.average(row), total) for row in np.eye(sum(plan.sizes))])
    plain = distributions.bound_sums(7, weights, np.ones_like(weights), [0.01])
    assert plan.bound(drawn, [0.01], known=known) == pytest.approx(plain, rel=1e-6, abs=1e-4)


def test_trees_are_deeper_for_more_cells():
    trees = [distributions._Tree.plan(cells) for cells in (2, 30, 121, 4096, 16_385)]
    assert [tree.depth for tree in trees] == [1, 1, 2, 3, 3]
    assert all(tree.width**tree.depth >= tree.cells for tree in trees)


def test_projections_have_their_totals_and_are_nearest():
    rng = np.random.default_rng(2)
    rows, totals = rng.normal(size=(40, 6)), rng.exponential(size=40)
    made = distributions.project_on_totals(rows, totals)
    assert made.sum(axis=1) == pytest.approx(totals)
    assert (made >= 0).all()
    for _ in range(50):
        other = rng.dirichlet(np.ones(6) / 2, 40) * totals[:, None]
        assert (((made - rows) ** 2).sum(axis=1) <= ((other - rows) ** 2).sum(axis=1)).all()
    assert (
        distributions.project_on_totals(rows[:2], np.array([0.0, -1.0])).tolist() == [[0] * 6] * 2
    )


@each_case("relation", RELATIONS)
@each_case("epsilon", [0.1, 2.0])
def test_bands_cover_all_points_together(epsilon, relation):
    coins, misses, beyond = np.random.default_rng(1), [], []
    truth = (AGES[:, None] <= np.arange(121)).mean(axis=0)
    population = np.minimum(np.arange(1, 122) / 100, 1)
    for _ in range(20):
        released = statistics.distribution(
            AGES, low=0, high=120, epsilon=epsilon, neighbors=relation, random_state=coins
        )
        assert len(released.points) == 121
        assert (np.diff(released.value) >= 0).all()
        assert (released.low <= released.value).all()
        assert (released.value <= released.high).all()
        assert (released.population_low <= released.low + 1e-12).all()
        misses.append(((released.low > truth) | (truth > released.high)).any())
        outside = (released.population_low > population) | (population > released.population_high)
        beyond.append(outside.any())
    assert np.mean(misses) <= 0.15
    assert np.mean(beyond) <= 0.15
    assert (released.high - released.low).max() < (0.3 if epsilon < 1 else 0.03)


def test_shares_and_quantiles_are_read_off():
    released = statistics.distribution(AGES, low=0, high=120, epsilon=50.0)
    assert released.points.tolist() == list(range(121))
    assert released.at([-1, 120, 1e9, math.nan]) == pytest.approx([0, 1, 1, math.nan], nan_ok=True)
    assert released.at(49.5) == pytest.approx((AGES <= 49).mean(), abs=0.005)
    assert released.quantiles([[0, 0.5], [0.9, 1]]).shape == (2, 2)
    assert abs(released.quantiles(0.5) - np.median(AGES)) <= 1
    with pytest.raises(ParameterError, match="levels"):
        released.quantiles([1.5])


@each_case("relation", RELATIONS)
@each_case("grouped", [False, True])
def test_parts_release_what_all_records_do(grouped, relation):
    table = {"age": AGES, "size": AGES / 7}
    keys = np.where(AGES % 2, "f", "m")
    more = {"groups": ["f", "m"]} if grouped else {}
    job = Job("distribution", low=0, high=120, neighbors=relation, **more)
    parts = [slice(0, 1), slice(1, 2_000), slice(2_000, None)]
    state = sum(
        job.fold({n: v[part] for n, v in table.items()}, **({"by": keys[part]} if grouped else {}))
        for part in parts
    )
    ours = job.release(state, epsilon=1.0, random_state=3)
    theirs = statistics.distribution(
        table, low=0, high=120, epsilon=1.0, neighbors=relation, random_state=3,
        **({"by": keys, **more} if grouped else {}),
    )  # fmt: skip
    for key in ["f", "m"] if grouped else [None]:
        for name in table:
            one, other = (held[key] if grouped else held for held in (ours, theirs))
            assert one[name].value.tolist() == other[name].value.tolist()
            assert one[name].record == other[name].record
    sizes = [len(part.points) for part in (ours["f"] if grouped else ours).values()]
    assert sizes == [121, 4096]


def test_columns_and_groups_share_one_release():
    budget = Budget(1.0)
    statistics.distribution({"a": AGES, "b": AGES}, **BOUNDS, epsilon=1.0, budget=budget)
    assert budget.spent.epsilon == 1.0
    alone = statistics.distribution(AGES, **BOUNDS, epsilon=1.0)
    both = statistics.distribution({"a": AGES, "b": AGES}, **BOUNDS, epsilon=1.0)["a"]
    wider = (both.high - both.low).mean() / (alone.high - alone.low).mean()
    assert 1.8 < wider < 2.2


def test_people_with_several_rows_need_more_noise():
    ids = np.arange(6_000) // 2
    alone = statistics.distribution(AGES, **BOUNDS, epsilon=1.0)
    owned = statistics.distribution(AGES, **BOUNDS, epsilon=1.0, ids=ids, rows_per_person=2)
    assert "person" in owned.record.neighbors
    assert (owned.high - owned.low).mean() > 1.8 * (alone.high - alone.low).mean()


WORST = np.array([math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324])


@each_case("relation", RELATIONS)
@each_case("values", [WORST, WORST[:1], np.full(9, 100.0), np.empty(0)])
def test_private_values_show_in_no_error_warning_or_shape(values, relation):
    if not len(values) and relation == "replace_one":
        with pytest.raises(ShapeError, match="no record"):
            statistics.distribution(values, **BOUNDS, epsilon=1.0)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UtilityWarning)
        for steps in (1, 7, None):
            released = statistics.distribution(
                values, **BOUNDS, epsilon=1.0, neighbors=relation, steps=steps
            )
            assert released.value.shape == ((steps or 4095) + 1,)
            for ends in (released.value, released.low, released.high):
                assert np.isfinite(ends).all()
                assert ends.min() >= 0
                assert ends.max() <= 1


def test_points_of_a_grid_are_counted_as_those_of_quantiles():
    grid = Grid(Bounds(np.array([0.0]), np.array([4.0])), (4,))
    tally = count_points(np.array([[0.0], [1.4], [9.0], [math.nan]]), grid)[0][0]
    assert tally.places.tolist() == [0, 1, 4]


BAD = {
    "steps": [0, -1, 1.5, 2**14 + 1, "x"],
    "low": [math.nan, 100.0, None],
    "epsilon": [0, math.nan, "1", 1e-30],
    "neighbors": ["local"],
    "confidence": [0, 1],
    "values": [[["a"]], 3, [1j], {}],
    "budget": [1],
}


@each_case(("argument", "value"), [(name, value) for name, some in BAD.items() for value in some])
def test_bad_input_is_refused_before_anything_is_spent(argument, value):
    budget = Budget(5.0)
    settings = {"epsilon": 1.0, "budget": budget, **BOUNDS, argument: value}
    with pytest.raises((ParameterError, ShapeError), match=argument):
        statistics.distribution(settings.pop("values", [0.0, 1.0]), **settings)
    assert budget.spent.epsilon == 0
