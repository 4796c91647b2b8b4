"""The discrepancy beside exact fractions, known optima and brute force; its release and uses."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from scipy.optimize import minimize_scalar

from hdp_fast import accounting, adaptation
from hdp_fast.adaptation import classification_discrepancy, discrepancy, release_discrepancy
from hdp_fast.budget import Budget
from hdp_fast.exceptions import BudgetExceeded, ParameterError, ShapeError

METHODS = ["exact", "dca"]


def sample(rng, n, d, shift=0.0):
    """Rows of norm at most 1 and labels in [-1, 1] that partly follow them."""
    X = rng.normal(size=(n, d)) + shift
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    return X, np.clip(X[:, 0] + 0.3 * rng.normal(size=n), -1, 1)


def problem(seed, m=40, n=30, d=2):
    rng = np.random.default_rng(seed)
    return *sample(rng, m, d), *sample(rng, n, d, 0.3)


def differences(data, weights):
    """Mean target loss less mean source loss for each row of weights, by the definition."""
    Xs, ys, Xt, yt = data
    target = ((weights @ Xt.T - yt) ** 2).mean(axis=1)
    return target - ((weights @ Xs.T - ys) ** 2).mean(axis=1)


def disc(radius, center=(0.0, 0.0), angles=4000, rings=60):
    """Points of a disc, its edge in particular."""
    turns = np.linspace(0, 2 * math.pi, angles, endpoint=False)
    edge = radius * np.column_stack([np.cos(turns), np.sin(turns)])
    inner = [edge[::20] * r for r in np.linspace(0, 1, rings)]
    return np.concatenate([edge, *inner]) + np.array(center)


def exact_loss(X, y, w):
    """The mean squared loss in fractions."""
    rows = [[Fraction(float(x)) for x in row] for row in X]
    errors = (
        sum((x * Fraction(float(v)) for x, v in zip(row, w, strict=True)), -Fraction(float(label)))
        for row, label in zip(rows, y, strict=True)
    )
    return sum((e * e for e in errors), Fraction(0)) / len(y)


def exact_difference(data, w):
    return exact_loss(*data[2:], w) - exact_loss(*data[:2], w)


# The supremum -----------------------------------------------------------------------------------


@pytest.mark.thorough(cases=6)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("m", "n"), [(1, 1), (20, 7), (300, 4096 + 5)])
def test_one_feature_beside_exact_fractions(seed, m, n):
    data, radius = problem(seed, m, n, 1), 1.5
    # The difference is a parabola: its ends and its vertex.
    values = {x: exact_difference(data, [x]) for x in (-1, 0, 1)}
    curve, slope = (values[1] + values[-1]) / 2 - values[0], (values[1] - values[-1]) / 2
    candidates = [Fraction(radius), Fraction(-radius)]
    if curve and abs(slope / (2 * curve)) <= radius:
        candidates.append(-slope / (2 * curve))
    expected = max(abs(curve * x * x + slope * x + values[0]) for x in candidates)
    for method in METHODS:
        found = discrepancy(*data, radius=radius, norm_bound=1, method=method)
        assert abs(Fraction(found.value) - expected) <= Fraction(found.gap)
        assert found.gap < 1e-10


@each_case("seed", range(12))
@each_case("radius", [0.2, 1.0, 4.0])
@each_case("method", METHODS)
def test_two_features_beside_a_grid(seed, radius, method):
    data = problem(seed)
    found = discrepancy(*data, radius=radius, norm_bound=1, method=method)
    values = differences(data, disc(radius))
    # Twice the angle between points, squared, times the curvature.
    assert np.abs(values).max() <= found.value + found.gap
    assert found.value <= np.abs(values).max() + 4e-6 * (radius + 1) ** 2
    assert found.sign == np.sign(values[np.abs(values).argmax()])
    assert found.gap < 1e-10
    assert np.linalg.norm(found.w) <= radius
    at_w = exact_difference(data, found.w) * found.sign
    assert abs(at_w - Fraction(found.value)) <= Fraction(found.gap)


@pytest.mark.parametrize("seed", range(6))
def test_the_gap_holds_in_exact_arithmetic(seed):
    """Lower and upper bounds in fractions, the upper one by a multiplier and Cramer's rule."""
    data, radius = problem(seed, 9, 8), 2.0
    found = discrepancy(*data, radius=radius, norm_bound=1)
    Xs, ys, Xt, yt = ([[Fraction(float(v)) for v in np.atleast_1d(row)] for row in a] for a in data)

    def mean(rows, *pick):
        return sum(math.prod((p(r) for p in pick), start=Fraction(1)) for r in rows) / len(rows)

    def entry(*pick):
        joined = [x + y for x, y in zip(Xt, yt, strict=True)]
        return mean(joined, *pick) - mean([x + y for x, y in zip(Xs, ys, strict=True)], *pick)

    column = [lambda r, i=i: r[i] for i in range(3)]
    a, b, c = (entry(column[i], column[j]) for i, j in ((0, 0), (0, 1), (1, 1)))
    q, constant = [entry(column[i], column[2]) for i in (0, 1)], entry(column[2], column[2])
    s = found.sign

    def dual(shift):
        """No weights have s (w'Pw - 2 q'w + constant) above this; None where that is not proved."""
        x, y, z = Fraction(shift) - s * a, -s * b, Fraction(shift) - s * c
        det = x * z - y * y
        if det <= 0 or x <= 0:
            return None
        quad = (z * q[0] ** 2 - 2 * y * q[0] * q[1] + x * q[1] ** 2) / det
        return quad + Fraction(shift) * Fraction(radius) ** 2 + s * constant

    def floating(shift):
        value = dual(shift)
        return 1e9 if value is None else float(value)

    shift = minimize_scalar(floating, bounds=(0, 3), method="bounded", options={"xatol": 1e-12}).x
    upper, lower = dual(shift), s * exact_difference(data, found.w)
    assert lower <= upper
    assert upper - lower < 1e-9
    assert Fraction(found.value) - Fraction(found.gap) <= lower
    assert lower <= Fraction(found.value) + Fraction(found.gap)
    assert found.gap < 1e-11


@pytest.mark.parametrize("method", METHODS)
def test_equal_samples_have_no_discrepancy(method):
    X, y, *_ = problem(0)
    found = discrepancy(X, y, X[::-1], y[::-1], radius=2, method=method)
    assert abs(found.value) <= found.gap <= 1e-12


def test_invariances():
    Xs, ys, Xt, yt = data = problem(5, d=4)
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    found = discrepancy(*data, radius=2)
    order = rng.permutation(len(yt))
    same = [
        discrepancy(Xs @ turn, ys, Xt @ turn, yt, radius=2),
        discrepancy(Xs, ys, Xt[order], yt[order], radius=2),
        discrepancy(Xs, ys, np.tile(Xt, (3, 1)), np.tile(yt, 3), radius=2),
        discrepancy(10 * Xs, ys, 10 * Xt, yt, radius=0.2),
        discrepancy(-Xs, -ys, -Xt, -yt, radius=2),
        discrepancy(np.c_[Xs, 0 * ys], ys, np.c_[Xt, 0 * yt], yt, radius=2),
    ]
    assert [each.value for each in same] == pytest.approx([found.value] * len(same), abs=1e-12)
    swapped = discrepancy(Xt, yt, Xs, ys, radius=2)
    assert (swapped.value, swapped.sign) == (pytest.approx(found.value), -found.sign)
    assert discrepancy(*data, radius=3).value >= found.value - 1e-12
    double = discrepancy(2 * Xs, 2 * ys, 2 * Xt, 2 * yt, radius=2)
    assert double.value == pytest.approx(4 * found.value)


def test_float32_rows_are_taken_for_what_they_are():
    Xs, ys, Xt, yt = problem(2, d=5)
    narrow = discrepancy(Xs.astype(np.float32), ys, Xt.astype(np.float32), yt, radius=2)
    wide = discrepancy(Xs.astype(np.float32).astype(float), ys, Xt.astype(np.float32).astype(float),
                       yt, radius=2)  # fmt: skip
    assert narrow.value == wide.value


# Local discrepancy ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_local_discrepancy_inside_the_ball_is_exact(method):
    data, center = problem(7), np.array([0.8, -0.5])
    found = discrepancy(*data, radius=2, norm_bound=1, around=center, local_radius=0.7,
                        method=method)  # fmt: skip
    greatest = np.abs(differences(data, disc(0.7, center))).max()
    assert found.exact
    assert greatest <= found.value + found.gap
    assert found.value <= greatest + 1e-5
    assert np.linalg.norm(found.w - center) <= 0.7 + 1e-12
    assert found.gap < 1e-10


@pytest.mark.parametrize("local", [0.3, 1.0, 1.9, 2.5, 5.0])
def test_local_discrepancy_across_the_edge_bounds_the_intersection(local):
    for seed in range(4):
        data, center = problem(seed), np.array([1.2, 1.3])
        found = discrepancy(*data, radius=2, norm_bound=1, around=center, local_radius=local)
        points = disc(2.0)
        inside = points[np.linalg.norm(points - center, axis=1) <= local]
        assert np.abs(differences(data, inside)).max() <= found.value + found.gap
        # The ball is the least one: no farther out than either.
        wider = [discrepancy(*data, radius=2, norm_bound=1).value]
        wider.append(discrepancy(*data, radius=9, around=center, local_radius=local).value)
        assert found.exact == (local == 5.0)
        if found.exact:
            assert found.value == pytest.approx(wider[0])


# Bounds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("huge", [3.0, 1e40, 1e300])
def test_private_records_are_projected_silently(huge, recwarn):
    Xs, ys, Xt, yt = problem(4)
    Xt[3], yt[5] = [huge, -huge], -huge
    found = discrepancy(Xs, ys, Xt, yt, radius=2, norm_bound=1)
    other = discrepancy(Xt, yt, Xs, ys, radius=2, norm_bound=1, private="source")
    assert other.value == pytest.approx(found.value)
    Xt[3], yt[5] = [math.sqrt(0.5), -math.sqrt(0.5)], -1
    by_hand = discrepancy(Xs, ys, Xt, yt, radius=2)
    assert found.value == pytest.approx(by_hand.value, abs=1e-12)
    assert not recwarn.list


def test_public_records_beyond_their_bounds_are_refused():
    Xs, ys, Xt, yt = problem(4)
    far, wrong = 1.1 * Xs, 3 * ys
    with pytest.raises(ParameterError, match=r"X_source has a longer row, but its norm must"):
        discrepancy(far, ys, Xt, yt, radius=2, norm_bound=1)
    with pytest.raises(ParameterError, match=r"y_source holds .*, but every label must lie in"):
        discrepancy(Xs, wrong, Xt, yt, radius=2, norm_bound=1)
    with pytest.raises(ParameterError, match="X_target has a longer row"):
        discrepancy(Xs, ys, 2 * Xt, yt, radius=2, norm_bound=1, private="source")
    # Rows that were scaled to the bound are off it by roundings.
    discrepancy(Xs * (1 + 1e-12), ys, Xt, yt, radius=2, norm_bound=1)


GOOD = dict(zip(("X_source", "y_source", "X_target", "y_target"), problem(0), strict=True))
BAD = [
    ({"radius": 0}, ParameterError, "radius = 0"),
    ({"radius": math.nan}, ParameterError, "radius = nan"),
    ({"norm_bound": -1}, ParameterError, "norm_bound = -1"),
    ({"private": "both"}, ParameterError, "private = 'both', but it must be one of target, source"),
    ({"private": None}, ParameterError, "private = None, but it must be one of target, source"),
    ({"around": [0, 0]}, ParameterError, "both must be given, or none"),
    ({"local_radius": 1}, ParameterError, "both must be given, or none"),
    ({"around": [0], "local_radius": 1}, ShapeError, r"around has shape \(1,\)"),
    ({"around": [math.inf, 0], "local_radius": 1}, ParameterError, "around holds something else"),
    ({"around": [2, 3], "local_radius": 1}, ParameterError, "around has norm 3.6"),
    ({"around": [0, 0], "local_radius": 0}, ParameterError, "local_radius = 0"),
    ({"X_target": np.ones((30, 3))}, ShapeError, "X_target has 3 features, but X_source has 2"),
    ({"X_target": np.ones(30)}, ShapeError, r"X_target has shape \(30,\)"),
    ({"X_target": np.ones((0, 2)), "y_target": []}, ShapeError, r"X_target has shape \(0, 2\)"),
    ({"y_source": np.ones(3)}, ShapeError, r"y_source has shape \(3,\)"),
    ({"X_source": np.full((40, 2), np.nan)}, ParameterError, "X_source has an infinite entry"),
    ({"y_target": np.full(30, np.inf)}, ParameterError, "y_target has an infinite entry"),
    ({"y_target": ["a"] * 30}, ParameterError, "y_target has dtype"),
    ({"X_source": [[1, 2], [3]]}, ShapeError, "X_source has rows that differ"),
]


@each_case(("given", "kind", "text"), BAD)
def test_bad_input_is_named(given, kind, text):
    with pytest.raises(kind, match=text):
        discrepancy(**(GOOD | {"radius": 2} | given))
    budget = Budget(1.0)
    arguments = {"radius": 2, "norm_bound": 1, "epsilon": 1, "budget": budget}
    with pytest.raises(kind, match=text):
        release_discrepancy(**(GOOD | arguments | given))
    assert budget.spent.epsilon == 0


def test_an_unknown_method_is_refused():
    with pytest.raises(ParameterError, match="method = 'cutting planes', but it must be one of"):
        discrepancy(**GOOD, radius=2, method="cutting planes")


def released(data, **options):
    return release_discrepancy(*data, **({"radius": 2, "norm_bound": 1} | options))


def test_release_says_what_it_did():
    data = problem(3)
    found = released(data, epsilon=0.5, random_state=1)
    assert found == released(data, epsilon=0.5, random_state=1)
    assert (found.record.epsilon, found.record.delta) == (0.5, 0)
    assert found.record.numerics == "exact"
    assert found.loss_bound == 9
    assert found.deviation == pytest.approx(math.sqrt(2) * 9 / (30 * 0.5), rel=1e-5)
    assert found.sizes == (40, 30)
    assert accounting.pure_epsilon(found.mechanism) == 0.5
    gaussian = released(data, mu=0.2, delta=1e-5, random_state=1)
    assert gaussian.deviation == pytest.approx(9 / (30 * 0.2), rel=1e-5)
    assert gaussian.record.epsilon == accounting.gaussian_epsilon(0.2, 1e-5)
    assert gaussian.mechanism == accounting.GaussianMechanism(0.2)


@pytest.mark.parametrize("noise", [{"epsilon": 1e-9}, {"mu": 1e-9}])
def test_the_most_noise_can_be_drawn(noise):
    assert released(problem(3), **noise).deviation > 1e8


def test_noise_has_the_promised_size_and_values_stay_in_range():
    data = problem(3, 300, 200)
    true = discrepancy(*data, radius=2).value
    for options in ({"epsilon": 10.0}, {"mu": 5.0}):
        draws = [released(data, random_state=seed, **options) for seed in range(200)]
        errors = np.array([each.value for each in draws]) - true
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(draws[0].deviation, rel=0.25)
        assert abs(errors.mean()) < 0.25 * draws[0].deviation
    wild = [released(problem(3), epsilon=1e-3, random_state=seed).value for seed in range(20, 40)]
    assert set(wild) == {0.0, 9.0}


def test_budget_is_charged_once_and_refused_without_a_trace():
    budget = Budget(1.0)
    released(problem(3), epsilon=0.75, budget=budget)
    assert budget.spent.epsilon == 0.75
    with pytest.raises(BudgetExceeded):
        released(problem(3), epsilon=0.5, budget=budget)
    assert budget.spent.epsilon == 0.75


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "exactly one"),
        ({"epsilon": 1, "mu": 1}, "exactly one"),
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": 1e-12}, "epsilon = 1e-12"),
        ({"mu": 1e7}, "mu = 10000000.0, but it must lie in"),
        ({"mu": 0}, "mu = 0"),
        ({"epsilon": 1, "private": None}, "private = None"),
        ({"mu": 1, "delta": 1}, "delta = 1"),
        ({"epsilon": 1, "norm_bound": None}, "norm_bound = None"),
        ({"epsilon": 1, "random_state": -1}, "random_state = -1"),
    ],
)
def test_bad_releases_are_named(options, text):
    with pytest.raises(ParameterError, match=text):
        released(problem(3), **options)


# Bounds on the target loss ----------------------------------------------------------------------


def test_complexity_bounds_all_signs():
    """Every sign vector of ten records of one feature, its parabola solved exactly."""
    rng = np.random.default_rng(0)
    (X, y), q, radius = sample(rng, 10, 1), rng.uniform(size=10), 1.5
    found = adaptation.learning_bound(
        0, q, source=4, alpha=0.5, discrepancy=0, radius=radius, norm_bound=1
    )
    total = 0.0
    for signs in itertools.product((-1, 1), repeat=10):
        weights = q * signs
        a, b, c = weights @ X[:, 0] ** 2, weights @ (X[:, 0] * y), weights @ y**2
        points = [radius, -radius, *([b / a] if abs(b) <= radius * abs(a) else [])]
        total += max(a * w * w - 2 * b * w + c for w in points)
    assert 0 < 2 * total / 2**10 <= found.complexity
    assert found.complexity == pytest.approx(2 * 2 * 2.5 * 1.5 * math.sqrt((q**2).sum()))


def test_both_learning_bounds_by_hand():
    q = np.array([0.3, 0.3, 0.1, 0.1, 0.1])
    options = {
        "source": 2, "alpha": 0.5, "discrepancy": 0.2, "radius": 1, "norm_bound": 1,
        "confidence": 0.9,
    }  # fmt: skip
    p = np.array([0.25, 0.25, 0.5 / 3, 0.5 / 3, 0.5 / 3])
    away, length = np.abs(q - p).sum(), math.sqrt(0.21)
    tight = adaptation.learning_bound(0.4, q, **options)
    assert tight.discrepancy == pytest.approx(0.12)
    assert tight.drift == pytest.approx(12 * away)
    straight = length + np.linalg.norm(q - p)
    assert tight.deviation == pytest.approx(4 * straight * math.sqrt(math.log(10) / 2))
    assert tight.value == pytest.approx(sum(tight[1:]))
    paper = adaptation.learning_bound(0.4, q, variant="paper", **options)
    assert paper.drift == pytest.approx(24 * away)
    root = math.sqrt(math.log(math.log2(2 / (1 - away)))) + math.sqrt(math.log(20) / 2)
    assert paper.deviation == pytest.approx(4 * (length + 2 * away) * root)


def test_the_tight_bound_is_never_larger():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = np.repeat([0.4 / 30, 0.6 / 20], [30, 20])
        q = np.clip(p * rng.exponential(size=50) ** rng.uniform(0, 2), 0, 1)
        options = {"source": 30, "alpha": 0.4, "discrepancy": 0.1, "radius": 1, "norm_bound": 1}
        tight, paper = (
            adaptation.learning_bound(0.1, q, variant=v, **options) for v in ("tight", "paper")
        )
        assert tight.value <= paper.value


def test_the_bound_holds_for_the_worst_predictor_of_most_samples():
    """Labels are fair coins: the target loss of w is w**2 + 1, and no predictor is far below."""
    rng, broken, slack = np.random.default_rng(0), 0, []
    p = np.repeat([0.5 / 400, 0.5 / 300], [400, 300])
    options = {"source": 400, "alpha": 0.5, "discrepancy": 0.0, "radius": 1, "norm_bound": 1}
    free = adaptation.learning_bound(0, p, **options).value
    for _ in range(200):
        b = p @ rng.choice([-1.0, 1.0], size=700)
        # sup of w**2 + 1 less (w**2 - 2 b w + 1)
        slack.append(2 * abs(b))
        broken += slack[-1] > free
    assert broken <= 20
    assert max(slack) > free / 20


@pytest.mark.parametrize(("epsilon", "sizes"), [(5, (4000, 3000)), (1, (300, 20)), (50, (50, 900))])
def test_the_suggested_share_is_where_the_bound_is_least(epsilon, sizes):
    for seed in range(4):
        found = released(problem(seed, *sizes), epsilon=epsilon, radius=0.3, random_state=seed)
        m, n = sizes

        def bound(alpha, found=found, m=m, n=n):
            q = np.repeat([alpha / m, (1 - alpha) / n], [m, n])
            return adaptation.learning_bound(
                0, q, source=m, alpha=alpha, discrepancy=found.value, radius=0.3, norm_bound=1
            ).value

        least = 1 / (m + n)
        best = minimize_scalar(bound, bounds=(least, 1 - least), method="bounded")
        alpha = adaptation.suggested_alpha(found)
        assert 0 < alpha < 1
        assert bound(alpha) <= best.fun + 1e-9


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"weights": [0.1, 1.2]}, ParameterError, "weights holds"),
        ({"weights": [[0.1, 0.2]]}, ShapeError, "weights has shape"),
        ({"source": 2}, ParameterError, "source = 2"),
        ({"source": 0}, ParameterError, "source = 0"),
        ({"alpha": 1}, ParameterError, "alpha = 1"),
        ({"confidence": 1}, ParameterError, "confidence = 1"),
        ({"discrepancy": -1}, ParameterError, "discrepancy = -1"),
        ({"variant": "loose"}, ParameterError, "variant = 'loose'"),
    ],
)
def test_bad_bounds_are_named(change, kind, text):
    good = {
        "weights": [0.5, 0.5], "source": 1, "alpha": 0.5, "discrepancy": 0, "radius": 1,
        "norm_bound": 1,
    }  # fmt: skip
    with pytest.raises(kind, match=text):
        adaptation.learning_bound(0, **(good | change))
    with pytest.raises(ParameterError, match="released = 3"):
        adaptation.suggested_alpha(3)


# Classification ---------------------------------------------------------------------------------


def classes(seed):
    rng = np.random.default_rng(seed)
    Xs, Xt = rng.normal(size=(80, 2)), rng.normal(size=(70, 2)) + 0.5
    ys, yt = (Xs @ [1, 0.3] > 0.2), (Xt @ [0.4, -1] + 0.5 * rng.normal(size=70) > 0)
    return Xs, ys, Xt, yt


def losses(kind, X, y, weights):
    scores, signs = weights @ X.T, 2 * y - 1
    if kind == "zero_one":
        return ((scores >= 0) != y).mean(axis=1)
    return np.log1p(np.exp(-scores * signs)).mean(axis=1)


@pytest.mark.parametrize("loss", ["logistic", "zero_one"])
def test_the_lower_bound_is_one_and_comes_close(loss):
    for seed in range(5):
        Xs, ys, Xt, yt = classes(seed)
        found = classification_discrepancy(Xs, ys, Xt, yt, radius=2, loss=loss)
        points = disc(2.0)
        grid = np.abs(losses(loss, Xt, yt, points) - losses(loss, Xs, ys, points)).max()
        w = found.w[None]
        at_w = (losses(loss, Xt, yt, w) - losses(loss, Xs, ys, w))[0]
        assert found.lower_bound == pytest.approx(found.sign * at_w)
        assert found.lower_bound <= grid + 1e-3
        assert found.lower_bound >= (0.999 if loss == "logistic" else 0.9) * grid
        assert np.linalg.norm(found.w) <= 2 + 1e-12


def test_bad_classification_is_named():
    Xs, ys, Xt, yt = classes(0)
    for options, text in (
        ({"loss": "hinge"}, "loss = 'hinge'"),
        ({"steps": 0}, "steps = 0"),
        ({"starts": 0}, "starts = 0"),
        ({"radius": -1}, "radius = -1"),
    ):
        with pytest.raises(ParameterError, match=text):
            classification_discrepancy(Xs, ys, Xt, yt, **({"radius": 1} | options))
    with pytest.raises(ParameterError, match="y_source holds something else"):
        classification_discrepancy(Xs, 2 * ys.astype(int), Xt, yt, radius=1)
