"""Advice: its order, its forecasts, the calls that it prints, and what it refuses."""

import itertools
import json
import math
import random
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import hdp_fast
from hdp_fast import adaptation, labels, learners, local, sklearn, statistics, transfer
from hdp_fast.accounting import gaussian_mu
from hdp_fast.advice import Forecast, advise
from hdp_fast.cli import main
from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.exceptions import ParameterError, UtilityWarning
from hdp_fast.learners.noisy_descent import plan_descent

POOL = {"n": 3_500, "d": 40, "classes": 10, "pool": 1_000, "epsilon": 1.0}
SURVEY = {"n": 40_000, "d": 48, "agents": 60_000, "epsilon": 1.0, "base_rate": 0.03}
FINITE = {**SURVEY, "learner": "finite", "size": 100, "target": "shifted", "pool": 500}
PUBLIC = {"n": 80, "d": 12, "pool": 210, "epsilon": 4.0, "source": "public"}
OTHER = {"n": 40_000, "d": 60, "pool": 1_000, "epsilon": 1.0, "learner": "other"}
MEAN = {"n": 2_000, "d": 1, "agents": 50_000, "epsilon": 1.0, "learner": "mean"}
TABLE = {**MEAN, "n": 500, "learner": "table", "size": 12, "target": "same"}
TASKS = {
    "pool": POOL, "survey": SURVEY, "finite": FINITE, "public": PUBLIC, "other": OTHER,
    "mean": MEAN, "table": TABLE, "means": {**MEAN, "d": 5},
}  # fmt: skip


def draw_tasks(count):
    rng = random.Random(20)
    for _ in range(count):
        task = {
            "n": round(10 ** rng.uniform(1, 6)),
            "d": round(10 ** rng.uniform(0, 2.5)),
            "epsilon": rng.choice([0.1, 1.0, 4.0, math.inf]),
            "agents": rng.choice([0, 10, 1_000, 100_000]),
            "pool": rng.choice([50, 2_000]),
            "classes": rng.choice([2, 2, 10]),
            "learner": rng.choice(["linear", "other", "regression"]),
            "target": rng.choice(["same", "shifted", "unknown"]),
            "source": rng.choice(["private", "public"]),
            "agents_epsilon": rng.choice([0.5, 2.0]),
        }
        if task["learner"] == "regression":
            task["classes"] = 2
        elif task["classes"] == 2 and rng.random() < 0.3:
            task |= {"learner": "finite", "size": rng.choice([2, 50, 8_193])}
        yield task


DRAWN = list(draw_tasks(30))


def order(task):
    """The candidates of advise, without what would change their order, which takes longer."""
    return advise(**task, changes=False).candidates


def forecasts(task):
    return {one.name: one for one in order(task)}


@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
@pytest.mark.parametrize("task", [*TASKS.values(), *DRAWN])
def test_candidates_are_ordered_by_their_forecasts_and_the_useless_stand_last(task):
    candidates = order(task)
    expected = [one.expected for one in candidates]
    assert [one.lost for one in candidates] == sorted(one.lost for one in candidates)
    assert all(after >= before - 0.011 for before, after in itertools.pairwise(expected))
    useful = [one.useful for one in candidates]
    assert useful == sorted(useful, reverse=True)
    for one in candidates:
        assert 0 <= one.low <= one.expected <= one.high <= 1
        assert one.useful == (one.lost <= 0.75)
        assert one.basis
        assert (one.call is None) == (one.name == "constant")
    assert candidates == order(task)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_method_stands_in_the_advice_once(task):
    advice = advise(**task)
    names = [one.name for one in advice.candidates] + [name for name, _ in advice.missing]
    assert len(names) == len(set(names))
    assert "constant" in names
    assert advice.best.useful or advice.best.name == "constant"
    assert advice.candidates == order(task)
    assert not advise(**task, changes=False).changes


@pytest.mark.thorough(cases=24)
@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
@pytest.mark.parametrize("number", ["n", "agents"])
@pytest.mark.parametrize("task", [*TASKS.values(), *DRAWN])
def test_more_people_never_make_a_forecast_worse(task, number):
    if not task.get(number):
        return
    few, many = forecasts(task), forecasts({**task, number: 4 * task[number]})
    for name in few.keys() & many.keys():
        # Settings that are best on average leave a range's ends as they may be.
        has_settings = name in {"votes", "records and agents"}
        for part in ("lost",) if has_settings else ("low", "lost", "high"):
            assert getattr(many[name], part) <= getattr(few[name], part) + 1e-12, name


@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
@pytest.mark.parametrize("task", [*TASKS.values(), *DRAWN])
def test_a_known_population_never_makes_the_best_forecast_worse(task):
    same = order({**task, "target": "same"})[0]
    shifted = order({**task, "target": "shifted"})[0]
    assert same.lost <= shifted.lost


def test_more_privacy_costs_accuracy():
    for name, task in TASKS.items():
        strict, loose = (forecasts({**task, "epsilon": epsilon}) for epsilon in (0.5, 8.0))
        for method in (strict.keys() & loose.keys()) - {"votes"}:
            assert loose[method].lost <= strict[method].lost, (name, method)


def test_what_is_certain_is_what_the_formulas_say():
    same = {"d": 4, "target": "same", "base_rate": 0.5}
    few, many = (
        forecasts({"n": 10**12, "epsilon": 1.0, **same}),
        forecasts({"n": 1, "epsilon": 0.01, **same}),
    )
    assert few["linear model"].high < 1e-3
    assert many["linear model"].expected > 0.9 * 0.5
    # With a known room noise takes 1.35 s**-.6 r**-.7 of it, more or less by luck.
    task = {"n": 4_000, "epsilon": 1.0, **same, "best_error": 0.1}
    signal, room = 4_000 * gaussian_mu(1.0, 1e-6) / math.sqrt(5), 0.8
    noise = 1.35 * signal**-0.6 * room**-0.7
    chance = 0.06 * 1_000**-0.65 * room**-1.75
    luck = np.array([0.05, 0.4, 0.9, 1.8, 5.0])
    one = forecasts(task)["linear model"]
    assert one.lost == pytest.approx((luck * (noise + chance)).mean(), abs=0.005)
    ends = np.quantile(luck, [0.06, 0.94]) * (noise + chance)
    assert [one.low, one.high] == pytest.approx(0.4 * ends)


def test_a_number_has_a_law_of_its_own():
    task = {"n": 4_000, "d": 4, "epsilon": 1.0, "target": "same", "learner": "regression"}
    advice = advise(**task, best_error=0.4)
    assert (advice.constant_error, advice.room) == (1.0, 0.6)
    signal = 4_000 * gaussian_mu(1.0, 1e-6) / math.sqrt(5)
    lost = 1.75 * signal**-0.7 * 0.6**-0.8 + 0.4 / 0.6 / 1_000
    luck = np.array([0.05, 0.4, 0.9, 1.8, 5.0]).mean()
    assert advice.best.lost == pytest.approx(luck * lost, abs=0.005)
    assert "share of the variance" in repr(advice)
    missing = dict(advise(**task, agents=5_000, pool=500).missing)
    assert missing["votes"] == "they are on classes"
    assert missing["calibrate"] == "agents answer about two classes"


def test_a_standard_error_is_that_of_exact_variances():
    """Of a fair coin, whose mean is hardest to learn: the largest of the range."""
    coins = forecasts({**MEAN, "target": "same"})
    # Discrete Laplace noise of scale 1 / epsilon on integers, and one of Warner's coins each.
    grid = 1 << 20
    noise = 1 / (math.sqrt(2) * math.sinh(0.5 / grid)) / grid
    chance = 0.25 / 2_000
    assert coins["records"].high == pytest.approx(math.sqrt((noise / 2_000) ** 2 + chance))
    answer = 0.25 / math.tanh(0.5) ** 2
    assert coins["agents"].high == pytest.approx(math.sqrt(answer / 50_000))
    rare = coins["agents"].low ** 2 * 50_000
    assert answer - 0.25 < rare < answer - 0.23  # of a number that hardly varies, at an end
    share = float(coins["records and agents"].call.split(" * ")[0])
    joined = share**2 * coins["records"].high ** 2 + (1 - share) ** 2 * answer / 50_000
    assert coins["records and agents"].high == pytest.approx(math.sqrt(joined))
    cells = forecasts(TABLE)
    chance = (1 - 1 / 12) / 12
    variance = local.best_frequency(12, 1.0).variance()
    assert cells["agents"].high == pytest.approx(math.sqrt((variance + chance) / 50_000))


def test_a_shift_spoils_records_and_no_answers_of_agents():
    same, shifted = (forecasts({**MEAN, "target": target}) for target in ("same", "shifted"))
    assert (shifted["agents"].low, shifted["agents"].high) == (
        same["agents"].low,
        same["agents"].high,
    )
    assert shifted["records"].high == pytest.approx(math.hypot(same["records"].high, 0.1))
    assert shifted["records and agents"].lost <= shifted["agents"].lost
    many = {**MEAN, "n": 1 << 30, "target": "same"}
    assert advise(**many).best.name == "records"


def test_questions_of_a_survey_divide_the_people():
    one, five = forecasts(MEAN), forecasts({**MEAN, "agents": 5 * MEAN["agents"], "d": 5})
    assert five["agents"].high == one["agents"].high
    assert "5 questions" in five["agents"].basis
    few = dict(advise(**{**MEAN, "agents": 4, "d": 5}).missing)
    assert few["agents"] == "5 questions need an agent each"


def test_answers_at_a_large_epsilon_are_piecewise():
    loose = forecasts({**MEAN, "agents_epsilon": 4.0, "target": "same"})["agents"]
    assert loose.call.startswith("local.Piecewise(epsilon=4.0")
    assert "--randomizer piecewise" in loose.command


def test_a_shifted_model_may_be_worse_than_a_constant():
    task = {"n": 445, "d": 22, "agents": 8_000, "epsilon": 0.5, "base_rate": 0.34}
    one = forecasts({**task, "target": "shifted"})["linear model"]
    assert one.lost > 1
    assert one.high > one.expected > 0.34
    assert not one.useful


def test_a_standard_error_of_the_intercept_is_that_of_the_plan():
    plan = transfer.plan_calibration(60_000, epsilon=1.0, base_rate=0.03)
    basis = forecasts(SURVEY)["calibrate"].basis
    assert f"standard error of the intercept {plan.forecast:.2g}," in basis


def test_few_records_of_a_shifted_source_leave_agents_alone():
    task = {"n": 445, "d": 21, "agents": 7_996, "epsilon": 1.0, "base_rate": 0.34}
    assert advise(**task).best.name == "agents alone"
    assert advise(**{**task, "n": 40_000}).best.name == "calibrate"


def test_a_rule_of_a_minority_is_found_by_reweighing():
    task = {"n": 5_000, "d": 64, "agents": 24_000, "epsilon": 1.0, "learner": "finite"}
    shifted = advise(**task, size=8_193, target="shifted", base_rate=0.45)
    assert shifted.best.name == "reweigh"
    same = advise(**task, size=8_193, target="same", base_rate=0.45)
    assert same.best.name == "exponential mechanism"


def test_what_would_change_the_order_does():
    advice = advise(**SURVEY)
    assert advice.changes
    for change in advice.changes:
        other = change.rpartition(": ")[2]
        assert other != advice.best.name
    fewer = next(one for one in advice.changes if "records or fewer" in one)
    n = int(fewer.split()[0].replace(",", ""))
    assert advise(**{**SURVEY, "n": n}).best.name == fewer.rpartition(": ")[2]


def test_no_method_of_use_is_noted():
    with pytest.warns(UtilityWarning, match="n = 5 and agents = 0, but no method keeps a quarter"):
        advice = advise(n=5, d=50, epsilon=0.1)
    assert advice.best.name == "constant"
    assert not any(one.useful for one in advice.candidates)


# After a run -------------------------------------------------------------------------------------


def certificate(value, low, high):
    return SimpleNamespace(value=value, low=low, high=high)


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (certificate(0.12, 0.11, 0.13), "as forecast"),
        (certificate(0.02, 0.01, 0.03), "better"),
        (certificate(0.45, 0.4, 0.5), "worse"),
        (certificate(0, 0, 0.2), "as forecast"),
    ],
)
def test_a_certificate_stands_beside_the_forecast(measured, verdict):
    advice = advise(n=9_000, d=20, epsilon=1.0, target="same", best_error=0.1)
    comparison = advice.compare(measured)
    assert comparison.verdict == verdict
    assert comparison.measured == measured.value
    assert verdict in repr(comparison)
    least, most = comparison.forecast
    assert least == pytest.approx(0.1 + advice.best.low)
    assert most == pytest.approx(0.1 + advice.best.high)
    assert json.loads(comparison.to_json())["verdict"] == verdict


def test_a_real_certificate_is_taken():
    X, y = make_records(3_000, 3, np.random.default_rng(1))
    advice = advise(n=2_000, d=3, epsilon=8.0, target="same", changes=False)
    model = advice.run(X=X[:2_000], y=y[:2_000], bounds=(-1, 1))
    measured = transfer.certify(model, local.Agents(X[2_000:], y[2_000:], epsilon=4.0))
    comparison = advice.compare(measured)
    assert comparison.name == advice.best.name
    assert comparison.verdict == "as forecast"
    assert comparison.interval == (measured.low, measured.high)


def test_nobody_knows_more_than_the_constant_without_a_best_error():
    advice = advise(n=9_000, d=20, epsilon=1.0, base_rate=0.3)
    assert advice.compare(certificate(0.2, 0.1, 0.3), "linear model").forecast[1] == 0.3
    assert advice.compare(certificate(0.5, 0.4, 0.6)).verdict == "worse"


@pytest.mark.parametrize(
    ("measured", "name", "message"),
    [
        (0.3, None, "certificate = 0.3, but it must have value, low and high"),
        (certificate(0.5, 0.6, 0.7), None, "its value must lie between low and high"),
        (certificate(2, 0.6, 0.7), None, "certificate.value = 2, but it must lie strictly"),
        (certificate(math.nan, 0.1, 0.7), None, "certificate.value = nan, but it must lie"),
        (certificate(0.5, 0.4, 0.7), "vote", "name = 'vote', but it must be one of"),
    ],
)
def test_what_is_no_certificate_is_refused(measured, name, message):
    advice = advise(n=9_000, d=20, epsilon=1.0)
    with pytest.raises(ParameterError, match=message):
        advice.compare(measured, name)


# Calls -------------------------------------------------------------------------------------------


def make_records(n, d, rng, classes=2):
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.argmax(X[:, :classes], axis=1)


def names_for(task):
    rng = np.random.default_rng(0)
    d, classes = task["d"], task.get("classes", 2)
    X, y = make_records(task["n"], d, rng, classes)
    source_X, source_y = make_records(task.get("pool", 1), d, rng, classes)
    agents_X, agents_y = make_records(task.get("agents", 0), d, rng)
    if task.get("learner") == "finite":
        X, agents_X = (X > 0).astype(np.uint8), (agents_X > 0).astype(np.uint8)
    return {
        "X": X, "y": y, "pool": source_X, "source_X": source_X, "source_y": source_y,
        "agents_X": agents_X, "agents_y": agents_y, "bounds": (-5, 5), "target_bounds": (0, 1),
        "learner": lambda X, y: lambda Q: np.argmax(Q[:, :classes], axis=1),
        "hypotheses": learners.Stumps(d),
        "questions": {f"x{j}": local.Query.value(j, -5, 5) for j in range(d)},
    }  # fmt: skip


# What stands before the calls of a program that runs them as they are printed.
MODULES = {
    "adaptation": adaptation, "labels": labels, "learners": learners, "local": local, "math": math,
    "sklearn": sklearn, "statistics": statistics, "transfer": transfer,
}  # fmt: skip


KEEPS_EPSILON = {"statistics", "linear model", "adapt", "records"}
RUNS = {
    "linear": {"n": 3_000, "d": 4, "agents": 3_000, "pool": 100, "epsilon": 2.0},
    "classes": {"n": 3_000, "d": 6, "agents": 0, "pool": 100, "epsilon": 2.0, "classes": 3},
    "shifted": {"n": 3_000, "d": 4, "agents": 99, "pool": 4, "epsilon": 2.0, "target": "shifted"},
    "without privacy": {"n": 900, "d": 4, "agents": 3_000, "pool": 9, "epsilon": math.inf},
    "public": {"n": 300, "d": 4, "agents": 900, "pool": 200, "epsilon": 2.0, "source": "public"},
    "finite": {
        "n": 3_000, "d": 4, "agents": 3_000, "pool": 9, "epsilon": 2.0, "learner": "finite",
        "size": 8,
    },
    "numbers": {
        "n": 900, "d": 4, "pool": 300, "epsilon": 2.0, "source": "public", "learner": "regression",
    },
    "mean": {"n": 900, "d": 1, "agents": 2_000, "epsilon": 2.0, "learner": "mean"},
    "means": {"n": 900, "d": 3, "agents": 2_000, "epsilon": 2.0, "learner": "mean"},
    "table": {
        "n": 900, "d": 1, "agents": 2_000, "epsilon": 2.0, "learner": "table", "size": 5,
    },
    "finite without privacy": {
        "n": 900, "d": 4, "agents": 3_000, "pool": 9, "epsilon": math.inf, "learner": "finite",
        "size": 8,
    },
}  # fmt: skip


def test_the_call_for_a_table_is_the_estimator_with_its_accuracy():
    """It had .147 where the estimator had .051: rows were not centered, bounds not used."""
    rng = np.random.default_rng(4)
    X = 40 + rng.standard_normal((4_000, 6))  # far from 0, within public bounds
    y = (X[:, 0] + X[:, 1] > 80).astype(int)
    advice = advise(n=3_000, d=6, epsilon=1.0, target="same", changes=False)
    assert advice.best.name == "linear model"
    model = advice.run(X=X[:3_000], y=y[:3_000], bounds=(35, 45))
    assert isinstance(model, sklearn.PrivateClassifier)
    assert model.score(X[3_000:], y[3_000:]) > 0.9
    assert model.record_.epsilon == 1.0


@pytest.mark.parametrize(("classes", "least"), [(2, 0.4), (10, 0.1)])
def test_a_linear_model_has_the_signal_of_its_plan(classes, least):
    """More records take more steps; gradients that are not clipped gain less from them."""
    task = {"d": 20, "epsilon": 1.0, "target": "same", "classes": classes}
    kept = [1 - forecasts({**task, "n": n})["linear model"].lost for n in (10, 1_000, 100_000)]
    assert kept == sorted(kept)
    assert kept[0] < least < kept[1] < kept[2]
    plan = plan_descent(1_000 * gaussian_mu(1.0, 1e-6) / math.sqrt(21 * (classes - 1)), classes)
    basis = forecasts({**task, "n": 1_000})["linear model"].basis
    assert basis.endswith(f", {plan.steps} steps on all records")


def test_what_cannot_be_kept_is_not_offered():
    """Linear models blend the rules of a source: reweighing them is worse than a constant."""
    missing = dict(advise(**SURVEY, changes=False).missing)
    assert (
        missing["reweigh"] == "the class is not finite, and reweighing picks one of its hypotheses"
    )
    assert missing["statistics"] == "there is no pool"
    other = dict(advise(**{**POOL, "target": "shifted"}, changes=False).missing)
    assert other["statistics"] == "the pool is of another population"


@pytest.mark.thorough(cases=3)
@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
@pytest.mark.parametrize("name", RUNS)
def test_every_printed_call_runs(name):
    task = RUNS[name]
    names = names_for(task)
    advice = advise(**task, changes=False)
    for candidate in advice.candidates:
        if candidate.call is None:
            continue
        result = advice.run(candidate.name, **names)
        printed = eval(candidate.call, {**MODULES, **names})
        assert type(result) is type(printed)
        record = getattr(result, "record", None) or getattr(result, "record_", None)
        if record is not None and candidate.name in KEEPS_EPSILON:
            assert record.epsilon <= task["epsilon"] * (1 + 1e-9)


def test_a_call_imports_what_it_needs():
    code = """
import numpy as np
import hdp_fast
X = np.linspace(-1, 1, 8_000).reshape(-1, 2)
advice = hdp_fast.advise(n=4_000, d=2, epsilon=4.0, target="same", changes=False)
print(advice.run(X=X, y=(X[:, 0] > 0).astype(int), bounds=(-1, 1)).predict([[0.9, 0.9]]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[1]\n"


def test_a_call_says_what_it_needs(monkeypatch):
    advice = advise(n=3_000, d=4, epsilon=2.0, target="same", changes=False)
    X, y = make_records(3_000, 4, np.random.default_rng(1))
    with pytest.raises(ParameterError, match=r"data = .* they must have bounds, which the call"):
        advice.run(X=X, y=y)
    fitted = []
    with monkeypatch.context() as patched:
        patched.setattr(sklearn.PrivateClassifier, "fit", lambda *_: fitted.append(1))
        task = {"n": 3_000, "d": 4, "agents": 3_000, "epsilon": 2.0}
        with pytest.raises(ParameterError, match="they must have agents_X"):
            advise(**task, changes=False).run("calibrate", X=X, y=y, bounds=(-1, 1))
    assert not fitted
    with pytest.raises(ParameterError, match="name = 'constant', but it must be a method that"):
        advice.run("constant", X=X, y=y)
    with pytest.raises(ParameterError, match="name = 'votes', but it must be one of"):
        advice.run("votes", X=X, y=y)


COMMANDS = {
    "panel": ({"agents": 3_000, "agents_epsilon": 2.0}, {"hybrid", "fit"}),
    "pool": ({"pool": 300, "target": "same"}, {"label", "fit"}),
    "unknown pool": ({"pool": 300}, {"label", "fit"}),
    "public source": ({"pool": 3_000, "source": "public"}, {"adapt", "fit"}),
    "number": ({"learner": "regression"}, {"fit"}),
    "mean": ({"learner": "mean", "d": 1, "agents": 3_000}, {"stats", "local"}),
    "table": ({"learner": "table", "d": 1, "size": 4, "agents": 3_000}, {"stats", "local"}),
}
OF_PRIVATE_RECORDS = {"hybrid", "label", "stats"}


@pytest.mark.thorough(cases=3)
@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
@pytest.mark.parametrize("epsilon", [2.0, math.inf])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_printed_command_runs(name, epsilon, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    for file in ("private", "panel", "survey", "source", "pool"):
        X, y = make_records(300 if file == "pool" else 3_000, 3, rng)
        y = X[:, 0] if name == "number" else abs(X[:, 0]) if name == "mean" else y
        rows = zip(*X.T.tolist(), y.tolist(), strict=True)
        text = "\n".join(",".join(map(str, row)) for row in rows)
        Path(f"{file}.csv").write_text(f"a,b,c,y\n{text}\n")
    columns = {name: Number(-1, 1) for name in "abc"}
    bounds = {"number": (-1, 1), "mean": (0, 1)}
    label = Label("y", bounds=bounds[name]) if name in bounds else Label("y", above=0.5)
    if name == "table":
        columns, label = columns | {"y": Category(("0", "1", "2", "3"))}, Label("a", above=0.5)
        del columns["a"]
    Path("schema.json").write_text(Schema(label, columns).to_json())
    sizes, verbs = COMMANDS[name]
    task = {"n": 3_000, "d": 3, "epsilon": epsilon, **sizes}
    commands = [one.command for one in order(task) if one.command]
    expected = verbs if epsilon < math.inf else verbs - OF_PRIVATE_RECORDS
    assert {one.split()[1] for one in commands} == expected
    for command in commands:
        before = set(Path().iterdir())
        assert main(shlex.split(command)[1:]) in {0, 1}, capsys.readouterr().err
        made = set(Path().iterdir()) - before
        # A command of statistics or answers prints what it has.
        assert made or capsys.readouterr().out
        for file in made:
            file.unlink()
        assert command in repr(advise(**task, changes=False))
    assert [one.command for one in order(POOL)] == [None] * len(order(POOL))


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": -1}, "n = -1, but it must be an integer of at least 0"),
        ({"n": 0}, "n = 0, but there must be private records, or a public source and agents"),
        ({"n": 2.5}, "n = 2.5, but"),
        ({"n": 1 << 60}, "n = .*, but it must be an integer from 0 to"),
        ({"d": 0}, "d = 0, but"),
        ({"epsilon": 0}, r"epsilon = 0, but it must lie in \[0.001, 1000\], or be infinite"),
        ({"epsilon": 1e4}, "epsilon = 10000.0, but"),
        ({"delta": 1e-300}, "delta = 1e-300, but it must be at least 1e-200"),
        ({"base_rate": 1e-9}, "base_rate = 1e-09, but it must lie in"),
        ({"epsilon": math.nan}, "epsilon = nan, but"),
        ({"epsilon": "1"}, "epsilon = '1', but"),
        ({"delta": 0}, "delta = 0, but"),
        ({"delta": 1}, "delta = 1, but"),
        ({"agents": None}, "agents = None, but"),
        ({"agents_epsilon": -1}, "agents_epsilon = -1, but"),
        ({"pool": -3}, "pool = -3, but"),
        ({"classes": 1}, "classes = 1, but it must be at least 2"),
        ({"classes": 300}, "classes = 300, but it must be an integer from 1 to 256"),
        (
            {"learner": "tree"},
            "learner = 'tree', but it must be one of linear, regression, finite, other, mean",
        ),
        ({"learner": "table"}, r"size = None, but a table has from 2 to 2\*\*24 cells"),
        ({"learner": "table", "size": 1}, "size = 1, but a table has"),
        ({"learner": "table", "size": 1 << 25}, "size = 33554432, but a table has"),
        ({"learner": "table", "size": 4}, "d = 4, but it is one table: take 1"),
        ({"learner": "mean", "size": 4}, "size = 4, but learner is 'mean': only a finite class"),
        ({"learner": "mean", "pool": 4}, "pool = 4, but learner is 'mean': leave it out"),
        ({"learner": "mean", "classes": 3}, "classes = 3, but learner is 'mean': leave it out"),
        ({"learner": "mean", "base_rate": 0.2}, "base_rate = 0.2, but learner is 'mean'"),
        ({"learner": "mean", "best_error": 0.2}, "best_error = 0.2, but learner is 'mean'"),
        ({"learner": "mean", "n": 0}, "n = 0, but there must be private records or agents"),
        (
            {"learner": "mean", "source": "public", "pool": 9},
            "pool = 9, but learner is 'mean': leave it out",
        ),
        ({"learner": "regression", "classes": 3}, "classes = 3, but learner is 'regression'"),
        ({"learner": "regression", "base_rate": 0.3}, "base_rate = 0.3, but learner is"),
        ({"learner": "finite"}, "size = None, but a finite class has a number of hypotheses"),
        ({"size": 9}, "size = 9, but learner is 'linear': only a finite class and a table"),
        ({"learner": "finite", "size": 0}, "size = 0, but"),
        ({"learner": "finite", "size": 9, "classes": 3}, "classes = 3, but the hypotheses"),
        ({"target": "other"}, "target = 'other', but it must be one of same, shifted, unknown"),
        ({"source": "secret"}, "source = 'secret', but it must be one of private, public"),
        ({"source": "public"}, "pool = 0, but a public source has records: pass their number"),
        ({"base_rate": 0}, "base_rate = 0, but"),
        ({"base_rate": 0.1, "classes": 3}, "base_rate = 0.1, but it is the share of label 1"),
        ({"best_error": 0.5}, "best_error = 0.5, but it must be below the constant's error, 0.5"),
        ({"best_error": -0.1}, "best_error = -0.1, but"),
    ],
)
def test_a_bad_argument_is_one_clear_error(changes, message):
    with pytest.raises(ParameterError, match=message):
        advise(**{"n": 100, "d": 4, "epsilon": 1.0, **changes})


EXTREMES = {
    "n": (1, 20, 1 << 53), "d": (1, 1 << 53), "epsilon": (0.001, 1_000.0, math.inf),
    "agents": (0, 1, 60, 1 << 53), "pool": (1, 1 << 53), "classes": (2, 256),
    "delta": (1e-200, 0.999), "agents_epsilon": (1e-12, 1e5), "base_rate": (None, 1e-6),
    "learner": ("linear", "other", "finite", "regression", "mean", "table"),
    "source": ("private", "public"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
def test_extreme_sizes_have_advice():
    rng = random.Random(3)
    for _ in range(60):
        task = {name: rng.choice(values) for name, values in EXTREMES.items()}
        if task["learner"] == "finite":
            task |= {"size": rng.choice([1, 1 << 53]), "classes": 2}
        if task["learner"] == "regression":
            task["classes"] = 2
        if task["learner"] in ("mean", "table"):
            task |= {"pool": 0, "classes": 2, "base_rate": None, "source": "private"}
        if task["learner"] == "table":
            task |= {"d": 1, "size": rng.choice([2, 1 << 24])}
        if task["classes"] > 2 or task["learner"] == "regression":
            task["base_rate"] = None
        advice = advise(**task, changes=rng.random() < 0.1)
        assert "constant" in {one.name for one in advice.candidates}
        assert json.loads(advice.to_json(), parse_constant=pytest.fail)


def test_advice_is_json():
    advice = hdp_fast.advise(**SURVEY)
    fields = json.loads(advice.to_json(), parse_constant=pytest.fail)
    assert fields["best"] == advice.best.name
    assert fields["candidates"][0]["call"] == advice.candidates[0].call
    assert fields["sizes"]["n"] == 40_000
    first = json.loads(advice.best.to_json())
    assert Forecast(**first) == advice.best


def test_the_table_says_all():
    advice = advise(**SURVEY)
    text = repr(advice)
    for one in advice.candidates:
        assert one.basis in text
        assert one.call is None or one.call in text
    for name, reason in advice.missing:
        assert f"not possible: {name}, {reason}" in text
    assert "No data was read." in text
