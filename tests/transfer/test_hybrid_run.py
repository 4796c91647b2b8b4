"""A panel and a survey in one run, from Python: simulated and real agents, prices, bad input."""

import itertools
import json
import math
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hybrid_people import PANEL, PUBLIC, TOWN, Phones, held, hybrid, later, panel, town
from hybrid_tables import SCHEMA

from hdp_fast import Budget, ParameterError, ShapeError, UtilityWarning, local, noise, transfer
from hdp_fast.accounting import gaussian_mu
from hdp_fast.data import Chunks, Column, Schema, Table, read_frame
from hdp_fast.data.rows import Rows
from hdp_fast.exceptions import AgentsExhausted, BudgetExceeded
from hdp_fast.learners import (
    PrivateModel,
    additive_choice,
    centered_classes,
    centered_rows,
    score_of,
)
from hdp_fast.local.estimation import advantage, debias
from hdp_fast.transfer import HybridRun, hybrid_model, hybrid_run
from hdp_fast.transfer.calibration_plan import count_people
from hdp_fast.transfer.hybrid_run import describe_rows

pytestmark = pytest.mark.filterwarnings("ignore::hdp_fast.UtilityWarning")
# What it does ------------------------------------------------------------------------------------


def test_hybrid_run_takes_five_lines():
    run = transfer.HybridRun(PUBLIC, epsilon=2.0, delta=1e-6, features="numbers")
    agents = run.simulate(town, n=PANEL, epsilon=4.0)
    result = run.run(panel, agents, budget=(budget := Budget(2.0, 1e-6)))
    shares = result.model.probabilities(later)[:, 1]
    again = PrivateModel.from_json(result.model.to_json())
    truth = later["bought"] == "yes"
    before = result.panel_model.probabilities(later)[:, 1]
    assert abs(shares.mean() - truth.mean()) < abs(before.mean() - truth.mean()) / 2
    assert result.left_out == ("channel=app", "channel=phone", "channel=shop")
    assert result.certificates["after"].high < result.certificates["before"].low
    assert (again.probabilities(later)[:, 1] == shares).all()
    assert agents.remaining == 0
    assert (budget.spent.epsilon, budget.spent.delta) == (2.0, 1e-6)
    of_panel, of_agents = result.records
    assert (of_panel.neighbors, of_agents.neighbors) == ("replace_one", "local")
    assert (of_panel.epsilon, of_panel.delta, of_panel.law) == (2.0, 1e-6, "gaussian")
    assert "means, " in of_panel.mechanism
    assert len(budget.records) == 1
    assert "4 features" in repr(result)
    assert "after: Certificate" in repr(result)
    assert json.loads(result.to_json())["model"] == json.loads(result.model.to_json())


@pytest.mark.parametrize("features", ["numbers", "bits"])
def test_hybrid_run_asks_each_person_once(monkeypatch, features):
    """Whoever is asked, simulated or real: the numbers of a plan, in a row and without overlap."""
    run, asked = hybrid(features=features), []
    reserve = local.Agents._reserve

    def record(self, count):
        asked.append((start := reserve(self, count), start + count))
        return start

    monkeypatch.setattr(local.Agents, "_reserve", record)
    agents = run.simulate(town, n=PANEL, epsilon=4.0)
    result = run.run(panel, agents, random_state=1)
    places = sorted(place for place in asked if place[0] < place[1])
    assert places[0][0] == 0
    assert all(one[1] == other[0] for one, other in itertools.pairwise(places))
    plan = result.plan
    assert plan.screen + plan.calibrate + plan.certify == TOWN
    assert (plan.features, plan.columns) == (features, agents.d)


def test_real_people_are_asked_by_json_alone():
    run, phones = hybrid(), Phones("numbers", 4.0, 0.8)
    agents = local.RemoteAgents(phones.ask, epsilon=4.0, count=TOWN, response_rate=0.8)
    result = run.run(panel, agents)
    assert phones.next == TOWN
    assert result.calibrated.outcome == "calibrated"
    assert result.certificates["after"].high < result.certificates["before"].low
    assert result.records[-1].rng == "the agents' own"
    # Shifts; the calibration and its check; both certificates.
    assert [question["kind"] for question in phones.questions] == [
        "stage", "stage", "query", "stage"]  # fmt: skip
    assert result.plan.rounds == 4


def test_simulated_and_real_people_tell_the_same(in_turn):
    """With an epsilon at which no answer is flipped, both runs end with one model."""
    run = hybrid(screen=0.0)
    simulated = local.Agents(*held("numbers"), epsilon=60.0)
    real = local.RemoteAgents(Phones("numbers", 60.0).ask, epsilon=60.0, count=TOWN)
    one, other = (run.run(panel, agents, random_state=3) for agents in (simulated, real))
    for name in ("features", "constant", "calibration"):
        assert json.loads(one.model.to_json())[name] == json.loads(other.model.to_json())[name]
    for name in ("before", "after"):
        assert one.certificates[name].value == other.certificates[name].value


def test_the_share_of_label_1_has_one_interval_by_all_answers_about_it():
    """Those of the calibration and of both certificates.

    A question's random name decides who of a stage is asked it: right code fails with probability
    at most 1e-6 for the interval, and as much for the rest.
    """
    run, phones = hybrid(beta=1e-6), Phones("numbers", 4.0)
    agents = local.RemoteAgents(phones.ask, epsilon=4.0, count=TOWN)
    result = run.run(panel, agents)
    before, after = (one.constants for one in result.certificates.values())
    assert before == after
    plan, (answers, ones) = result.plan, result.calibrated.labels
    assert before.agents == pytest.approx(answers + 2 * (plan.certify // 2 // 5), rel=0.05)
    assert answers == pytest.approx(0.6 * 0.35 * plan.calibrate, rel=0.1)
    truth = (town["bought"] == "yes").mean()
    assert before.zero_low < truth < before.zero_high
    assert before.zero_high - before.zero_low < 0.12
    assert debias(ones / answers, advantage(4.0)) == pytest.approx(truth, abs=0.08)


def test_the_people_that_a_diagram_needs_are_those_of_the_whole_survey():
    run = hybrid(screen=0.0)
    learned = run.learn(panel, run.simulate(town, n=PANEL, epsilon=1.0), random_state=0)
    with pytest.raises(ParameterError, match="not calibrated"):
        learned.count_people(0.25)
    result = run.repair(learned, run.simulate(town, n=PANEL, epsilon=1.0), random_state=0)
    people, agents = result.count_people(0.25), count_people(result.calibrated, 0.25)
    assert people == math.ceil(agents * TOWN / result.plan.calibrate)
    assert people > TOWN
    with pytest.raises(ParameterError, match="half_width = 0"):
        result.count_people(0)


def test_learn_then_repair_is_run():
    run = hybrid()
    rng = np.random.default_rng(3)
    agents = run.simulate(town, n=PANEL, epsilon=4.0)
    learned = run.learn(panel, agents, random_state=rng)
    assert learned.calibrated is None
    assert not learned.certificates
    assert learned.predictor == learned.panel_predictor
    assert agents.remaining == learned.plan.calibrate + learned.plan.certify
    parts = run.repair(learned, agents, random_state=rng)
    agents = run.simulate(town, n=PANEL, epsilon=4.0)
    whole = run.run(panel, agents, random_state=np.random.default_rng(3))
    assert parts.to_json() == whole.to_json()


@pytest.mark.parametrize("method", ["descent", "additive"])
def test_repair_takes_up_what_people_answered(tmp_path, monkeypatch, method):
    """After a crash between calibration and certificate no one is asked twice."""
    run, state = hybrid(screen=0.0, method=method), tmp_path / "state"
    phones = Phones("numbers", 4.0)

    def people():
        return local.RemoteAgents(phones.ask, epsilon=4.0, count=TOWN, state=state)

    agents = people()
    learned = run.learn(panel, agents)
    certify = hybrid_model.ask_certificate

    def crash(*arguments, **options):
        raise OSError("the network")

    monkeypatch.setattr(hybrid_model, "ask_certificate", crash)
    with pytest.raises(OSError, match="the network"):
        run.repair(learned, agents)
    asked = phones.next
    assert asked == learned.plan.calibrate
    monkeypatch.setattr(hybrid_model, "ask_certificate", certify)
    result = run.repair(learned, people())
    assert phones.next == TOWN
    assert result.calibrated.answers == learned.plan.calibrate


def test_a_count_is_all_that_is_asked():
    run = hybrid()
    agents = run.simulate(town, n=PANEL, epsilon=4.0)
    result = run.run(panel, agents, count=8_000)
    assert agents.remaining == TOWN - 8_000
    assert result.plan.screen + result.plan.calibrate + result.plan.certify == 8_000


def test_tables_and_frames_are_the_same():
    columns = {name: Column(tuple(map(str, values.tolist())), np.arange(len(values)))
               for name, values in panel.items()}  # fmt: skip
    tables = Table(columns, PANEL), panel
    run = hybrid(screen=0.0)
    one, other = (
        run.learn(table, run.simulate(town, n=PANEL, epsilon=4.0), random_state=1)
        for table in tables
    )
    assert one.model.to_json() == other.model.to_json()


# Shapes that bend --------------------------------------------------------------------------------


def bend(table, seed):
    """The same people, of whom those in the middle of their lives buy."""
    odds = 2.5 * np.cos((table["age"] - 50) / 8) + (table["home"] == "own") - 0.5
    odds = odds - np.where(table["channel"] == "app", 0.0, 1.5)
    shares = np.random.default_rng(seed).random(len(odds))
    return {**table, "bought": np.where(shares < 1 / (1 + np.exp(-odds)), "yes", "no")}


bent, bent_town = bend(panel, 3), bend(town, 4)


def test_real_people_calibrate_and_certify_shapes_that_bend():
    """Their devices hold the schema's numbers, and compute what the model predicts of tables."""
    run, phones = hybrid(method="additive"), Phones("numbers", 4.0)
    phones.labels = PUBLIC.labels(bent_town)
    agents = local.RemoteAgents(phones.ask, epsilon=4.0, count=TOWN)
    result = run.run(bent, agents, budget=(budget := Budget(2.0, 1e-6)), random_state=1)
    assert result.left_out == ("channel=app", "channel=phone", "channel=shop")
    assert (result.model.method, result.plan.features, len(budget.records)) == (
        "additive", "numbers", 1)  # fmt: skip
    (asked,) = phones.questions[2]["terms"]
    asked = asked["model"]
    assert (asked.keys(), len(asked["cuts"])) == ({"kind", "cuts", "weights", "bias"}, 7)
    shares = result.panel_model.probabilities(town)
    odds = np.log(shares[:, 1] / shares[:, 0])
    np.testing.assert_allclose(score_of(asked)(phones.rows), odds, rtol=1e-6, atol=1e-9)
    linear = hybrid().run(bent, local.Agents(*held("numbers"), epsilon=4.0), random_state=1)
    truth = PUBLIC.labels(bent_town) == 1
    losses = [
        -np.log(np.where(truth, told, 1 - told)).mean()
        for told in (one.model.probabilities(town)[:, 1] for one in (result, linear))
    ]
    assert losses[0] < losses[1] - 0.1
    again = PrivateModel.from_json(result.model.to_json())
    assert (again.probabilities(later) == result.model.probabilities(later)).all()
    assert {name.split(">=")[0] for name in result.predictor.coefficients} == {
        "age", "home=own", "home=rent", "visits"}  # fmt: skip


@pytest.mark.parametrize(("method", "screen"), [("auto", None), ("additive", 0.0)])
def test_shapes_of_a_panel_in_parts_are_those_of_the_table(method, screen):
    run = hybrid(method=method, screen=screen)
    results = [
        run.learn(one, run.simulate(bent_town, n=PANEL, epsilon=4.0), random_state=1)
        for one in (bent, Chunks(cut(bent)))
    ]
    assert results[0].model.method == "additive"
    assert results[0].to_json() == results[1].to_json()


def square_of_classes(plan, unit, means):
    """What the releases of a linear plan take of the square of mu, in exact fractions."""
    total = 1 / Fraction(plan.of_classes) ** 2 + 2 / Fraction(plan.margins) ** 2
    total += plan.descent.steps * Fraction(2 * plan.grid.length) ** 2 / plan.grid.sigma**2
    if means and plan.means is not None:
        bits, sigma = plan.means
        total += Fraction(unit.squared_distance(2) << (2 * bits)) / sigma**2
    return total


@pytest.mark.parametrize("screen", [0.0, 0.3])
@pytest.mark.parametrize("taken", [None, True, False])
def test_means_a_look_and_shapes_have_the_mu_of_the_record(monkeypatch, screen, taken):
    """Whatever a look tells: with it, what is released has no more than the whole."""
    seen = []
    names = ("choose_additive", "learn_additive", "learn_classes", "release_center")
    for name in names:
        real = getattr(hybrid_run, name)
        monkeypatch.setattr(
            hybrid_run,
            name,
            lambda plan, *parts, _name=name, _real=real, **options: (
                seen.append((_name, plan)) or _real(plan, *parts, **options)
            ),
        )
    monkeypatch.setattr(additive_choice.Look, "is_for_additive", lambda *_: taken)
    run = hybrid(screen=screen, method="additive" if taken is None else "auto")
    result = run.learn(bent, run.simulate(town, n=PANEL, epsilon=4.0), random_state=0)
    plans, unit = dict(seen), Rows(PUBLIC)
    assert len(plans) == len(seen)
    square, spent = Fraction(gaussian_mu(2.0, 1e-6)) ** 2, Fraction(0)
    if "choose_additive" in plans:
        look = plans["choose_additive"]
        spent += look.square * additive_choice.share_of_look(look.clear)
    if "learn_additive" in plans:
        spent += plans["learn_additive"].square
    if "learn_classes" in plans:
        spent += square_of_classes(plans["learn_classes"], unit, True)
    elif "release_center" in plans:
        bits, sigma = plans["release_center"].means
        spent += Fraction(unit.squared_distance(2) << (2 * bits)) / sigma**2
    order = [name for name, _ in seen]
    means = ["release_center"] if screen else []
    expected = {
        None: [*means, "learn_additive"],
        True: [*means, "choose_additive", "learn_additive"],
        False: [*means, "choose_additive", *["release_center"][: not screen], "learn_classes"],
    }
    assert order == expected[taken]
    assert square * Fraction(99, 100) < spent <= square
    assert result.records[0].mu == gaussian_mu(2.0, 1e-6)
    assert result.records[0].neighbors == "replace_one"


def test_auto_with_few_records_is_the_linear_run():
    """Public numbers say so: what people hold, and every digit."""
    few = {name: column[:600] for name, column in panel.items()}
    one, other = (
        (run := hybrid(features="auto", method=method)).learn(
            few, run.simulate(town, n=600, epsilon=4.0), random_state=2
        )
        for method in ("descent", "auto")
    )
    assert one.to_json() == other.to_json()


# A panel in parts --------------------------------------------------------------------------------


def cut(table, cuts=(0, 0, 1, 700, 4_000, PANEL)):
    """Parts of a panel, the first of which has no row."""
    places = itertools.pairwise(cuts)
    return [{name: x[start:end] for name, x in table.items()} for start, end in places]


@pytest.mark.parametrize("screen", [None, 0.0])
@pytest.mark.parametrize("features", ["auto", "numbers", "bits"])
def test_a_panel_in_parts_has_the_run_of_the_table(features, screen):
    run, parts = hybrid(features=features, screen=screen), cut(panel)
    results = [
        run.run(one, run.simulate(town, n=PANEL, epsilon=4.0), random_state=1)
        for one in (panel, Chunks(parts), Chunks([parts[4], *parts[:4]]))
    ]
    assert (results[0].left_out == ()) == (screen == 0.0)
    assert len({result.to_json() for result in results}) == 1


def test_workers_have_the_run_of_the_table(monkeypatch, tmp_path):
    monkeypatch.setattr(centered_rows, "_MOST_KEPT", 0)
    pandas = pytest.importorskip("pandas")
    for place, part in enumerate(cut(panel)):
        pandas.DataFrame(part).to_csv(tmp_path / f"{place}.csv", index=False)
    run = hybrid()
    one, other = (
        run.learn(table, run.simulate(town, n=PANEL, epsilon=4.0), random_state=1)
        for table in (panel, Chunks(tmp_path, workers=2))
    )
    assert one.to_json() == other.to_json()


@pytest.mark.parametrize("features", ["numbers", "bits"])
def test_a_column_that_leaves_takes_nothing_else_along(features):
    """Rows of what is left are the other columns of all rows, missing and unknown cells too."""
    dirty = {**panel, "age": panel["age"].copy(), "home": panel["home"].astype(object)}
    dirty["age"][:50], dirty["home"][25:75] = np.nan, "boat"
    cells, plain = read_frame(dirty), Rows(PUBLIC, bits=features == "bits")
    whole = plain.plain(cells)
    for left_out in itertools.chain.from_iterable(
        itertools.combinations(plain.names, size) for size in (1, 2, 3)
    ):
        kept = plain.without(left_out)
        columns = np.isin(plain.names, kept.names)
        assert (kept.plain(cells) == whole[:, columns]).all()


def test_parts_are_refused_before_anything_is_spent():
    pyarrow = pytest.importorskip("pyarrow")
    run, budget, parts = hybrid(), Budget(2.0, 1e-6), cut(panel)
    agents = run.simulate(town, n=PANEL, epsilon=4.0)
    lacking = [*parts[:4], {name: x for name, x in parts[4].items() if name != "visits"}]
    for chunks, error, words in (
        (Chunks(lacking), ParameterError, "panel lacks 1"),
        (Chunks([*parts[:4], read_frame(lacking[4])]), ParameterError, "column = 'visits'"),
        (Chunks(parts, ids="home"), ParameterError, "ids = 'home'"),
        (Chunks(parts, label="bought"), ParameterError, "without label="),
        (Chunks(pyarrow.table(panel).to_reader()), ParameterError, "RecordBatchReader"),
        (Chunks(parts[:1]), ParameterError, "n = 0"),
        (Chunks([panel["age"][:, None]]), ParameterError, "named columns"),
    ):
        for call in (run.run, run.learn):
            with pytest.raises(error, match=words):
                call(chunks, agents, budget=budget)
    assert agents.remaining == TOWN
    assert budget.spent == (0, 0)
    run.learn(Chunks(parts), agents, budget=budget)
    assert budget.spent == (2.0, 1e-6)


# Public numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 7.0, 1e3])
@pytest.mark.parametrize("delta", [1e-6, 3e-9])
def test_the_squares_of_mu_of_both_releases_are_that_of_the_total(epsilon, delta):
    numbers = {"n": 10**6, "agents": 10**6, "agents_epsilon": 1.0}
    mu = gaussian_mu(epsilon, delta)
    plan = hybrid(epsilon=epsilon, delta=delta, screen=0.3).plan(**numbers)
    assert math.hypot(plan.screen_mu, plan.model_mu) == pytest.approx(mu)
    assert plan.screen_mu == pytest.approx(mu * math.sqrt(0.1))
    bare = hybrid(epsilon=epsilon, delta=delta, screen=0.0).plan(**numbers)
    assert (bare.screen_mu, bare.model_mu) == (None, mu)


@pytest.mark.parametrize(("n", "epsilon", "kind"), [(10, 1e3, "bits"), (10, 999.0, "numbers")])
def test_features_are_chosen_by_public_numbers(n, epsilon, kind):
    run = hybrid(epsilon=epsilon, features="auto")
    plan = run.plan(n=n, agents=10_000, agents_epsilon=1.0)
    assert plan.features == kind
    agents = run.simulate(town, n=n, epsilon=1.0)
    assert agents.d == plan.columns == len(PUBLIC.names if kind == "bits" else PUBLIC.float_names)


@pytest.mark.parametrize(
    ("n", "agents", "epsilon", "screens"),
    [(20_000, 60_000, 1.0, True), (20_000, 2_000, 1.0, False), (300, 60_000, 1.0, False),
     (20_000, 60_000, 0.02, False)],
)  # fmt: skip
def test_nobody_is_asked_what_too_few_would_not_tell(n, agents, epsilon, screens):
    plan = hybrid(epsilon=epsilon).plan(n=n, agents=agents, agents_epsilon=2.0)
    assert plan.screen_share == (0.3 if screens else 0.0)
    assert plan.screen == (int(agents * 0.3) if screens else 0)
    assert (plan.screen_mu is not None) == screens


def test_columns_leave_a_schema_by_their_features():
    numbers, bits = Rows(PUBLIC), Rows(PUBLIC, bits=True)
    less = numbers.without(["age", "channel=app"])
    assert less.names == ["home=own", "home=rent", "channel=phone", "channel=shop", "visits"]
    assert numbers.without([]).schema == PUBLIC
    dropped = ["age>=54", "home=own", "home=rent"]
    assert bits.without(dropped).names == [name for name in PUBLIC.names if name not in dropped]
    cuts = [name for name in PUBLIC.names if ">=" in name]
    assert bits.without(cuts).names == [name for name in PUBLIC.names if ">" not in name]
    assert bits.without(bits.names) is bits


def test_features_are_centered_and_come_back():
    center = np.linspace(0.1, 0.7, 7)
    features = Rows(PUBLIC, center=center)
    less = features.without(["home=rent", "visits"])
    assert less.center.tolist() == center[[0, 1, 3, 4, 5]].tolist()
    assert features.without(features.names) is features
    with_cells = {"age": "54", "home": "own", "channel": "shop", "visits": "12"}
    columns = {name: Column((text,), np.zeros(1, int)) for name, text in with_cells.items()}
    weights = np.arange(1.0, 9.0)
    table = Table(columns, 1)
    score = features(table)[0] @ weights
    intercept, coef = features.to_units(weights)
    in_units = intercept + 54 * coef["age"] + coef["home=own"] + coef["channel=shop"]
    assert score == pytest.approx(in_units + 12 * coef["visits"])
    assert features.norm == pytest.approx(np.sqrt(1 + (center * (1 - center)).sum()))
    kept = np.array([name not in ("home=rent", "visits") for name in PUBLIC.float_names])
    asked = describe_rows(less, np.arange(1.0, 7.0), kept)
    plain = features.plain(table)[0] @ asked["weights"] + asked["bias"]
    assert plain == pytest.approx(less(table)[0] @ np.arange(1.0, 7.0))
    scaled = Rows(PUBLIC, center=center, factor=np.linspace(1, 3, 7)).without(["visits"])
    kept = np.array([name != "visits" for name in PUBLIC.float_names])
    asked = describe_rows(scaled, np.arange(1.0, 8.0), kept)
    plain = features.plain(table)[0] @ asked["weights"] + asked["bias"]
    assert plain == pytest.approx(scaled(table)[0] @ np.arange(1.0, 8.0))


@pytest.mark.parametrize("features", ["numbers", "bits"])
def test_people_are_asked_about_the_scores_of_the_model(monkeypatch, features):
    """What their devices compute of plain features is the log-odds that the model predicts."""
    asked, repair = [], hybrid_run.repair

    def keep(model, *arguments, **options):
        asked.append(model)
        return repair(model, *arguments, **options)

    monkeypatch.setattr(hybrid_run, "repair", keep)
    run = hybrid(features=features, screen=0.3)
    result = run.run(panel, run.simulate(town, n=PANEL, epsilon=4.0), random_state=0)
    shares = result.panel_model.probabilities(town)
    scores = held(features)[0] @ np.array(asked[0]["weights"]) + asked[0]["bias"]
    np.testing.assert_allclose(scores, np.log(shares[:, 1] / shares[:, 0]), rtol=1e-6, atol=1e-9)


# What protects the panel -------------------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch):
    """The noise that is asked for, and what the descent is made of."""
    kept = {"noise": [], "records": []}
    draw, descend = noise.rounded_gaussian, centered_classes.descend

    def spy(sigma, shape, *, random_state):
        kept["noise"].append((sigma, shape))
        return draw(sigma, shape, random_state=random_state)

    def keep(records, plan, drawn):
        kept["records"].append(records)
        return descend(records, plan, drawn)

    monkeypatch.setattr(noise, "rounded_gaussian", spy)
    monkeypatch.setattr(centered_classes, "descend", keep)
    return kept


@pytest.mark.parametrize("features", ["numbers", "bits"])
@pytest.mark.parametrize("screen", [0.0, 0.3])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1e3])
def test_all_noise_on_the_panel_has_the_mu_of_the_record(seen, features, screen, epsilon):
    """Whatever the screen leaves out, with distances that no record exceeds."""
    run = hybrid(features=features, screen=screen, epsilon=epsilon)
    result = run.learn(panel, run.simulate(town, n=PANEL, epsilon=4.0), random_state=0)
    *means, shares, steps, margins = seen["noise"]
    assert len(means) == 1 if screen else len(means) <= 1
    (records,) = seen["records"]
    spent = Fraction(2) / margins[0] ** 2 + 1 / shares[0] ** 2
    spent += steps[1][0] * Fraction(2 * records.grid.length) ** 2 / steps[0] ** 2
    plain = Rows(PUBLIC, bits=features == "bits")
    for sigma, _ in means:
        spent += (
            Fraction(plain.squared_distance(2 if features == "numbers" else 1) << 40) / sigma**2
        )
    mu = Fraction(result.records[0].mu)
    assert mu == Fraction(gaussian_mu(epsilon, 1e-6))
    assert mu**2 * Fraction(99, 100) < spent <= mu**2
    assert (screen == 0) == (result.shift is None)
    assert steps[1][1] == len(result.panel_model.rows.names) + 1


def neighbors_of(table, place, values):
    """The table with one record replaced."""
    changed = {name: column.copy() for name, column in table.items()}
    for name, value in values.items():
        changed[name] = changed[name].astype(object)
        changed[name][place] = value
    return changed


FAR = {"age": 90.0, "home": "rent", "channel": "shop", "visits": 30.0, "bought": "no"}
NEAR = {"age": 18.0, "home": "own", "channel": "app", "visits": 0.0, "bought": "yes"}


@pytest.mark.parametrize("features", ["numbers", "bits"])
def test_no_record_moves_a_sum_by_more_than_its_noise_is_for(seen, monkeypatch, features):
    """Sums of means, and of gradients at any weights, by records that are far apart."""
    run = hybrid(features=features, epsilon=1.0, screen=0.3)
    few = {name: column[:600] for name, column in panel.items()}
    fixed, center = [], hybrid_run.release_center

    def release(plan, unit, rows, stream):
        fixed.append(center(plan, unit, rows, stream))
        return fixed[0]  # what was released before is the same on both

    monkeypatch.setattr(hybrid_run, "release_center", release)
    plain = Rows(PUBLIC, bits=features == "bits")
    tables = [few, neighbors_of(few, 5, FAR), neighbors_of(few, 5, NEAR)]
    made = [plain(read_frame(table)) for table in tables]
    sums = [centered_rows._add_powers(plain, rows, False, 20) for rows in made]
    for table in tables:
        run.learn(table, run.simulate(town, n=600, epsilon=4.0), random_state=0)
    records = seen["records"]
    rng = np.random.default_rng(0)
    for one, other in itertools.combinations(range(3), 2):
        moved = int(((sums[one] - sums[other]) ** 2).sum())
        assert 0 < moved <= plain.squared_distance(2) << 40
        for scale in (0.0, 0.1, 1.0, 100.0):
            weights = scale * rng.normal(size=(records[0].entries.shape[1], 1))
            parts = [records[place].add_gradients(weights) for place in (one, other)]
            distance = sum(int(entry) ** 2 for entry in (parts[0] - parts[1])[:, 0])
            assert distance <= (2 * records[0].grid.length) ** 2
            # A bound that nothing comes near would say little.
            assert scale or distance > records[0].grid.length ** 2 / 4


@pytest.mark.parametrize("epsilon", [1e-12, 1e-2, 1e6, 1e308])
@pytest.mark.parametrize("n", [1, 40])
@pytest.mark.parametrize("columns", [["age"], ["home"], ["age", "home", "channel"]])
def test_panels_of_any_size_have_a_model_at_any_epsilon(epsilon, n, columns):
    schema = {**SCHEMA, "columns": {name: SCHEMA["columns"][name] for name in columns}}
    options = {"epsilon": epsilon, "delta": 1e-6}
    for features, screen in itertools.product(["numbers", "bits"], [0.0, 0.3, None]):
        public = Schema.from_json(json.dumps(schema))
        run = HybridRun(public, **options, features=features, screen=screen)
        few = {name: panel[name][:n] for name in (*columns, "bought")}
        agents = run.simulate({name: town[name][:400] for name in few}, n=n, epsilon=1.0)
        budget = Budget(1e308, 1e-6)
        result = run.run(few, agents, budget=budget, random_state=1)
        assert np.isfinite(result.model.weights).all()
        assert budget.spent.epsilon == epsilon


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": math.inf}, "epsilon = inf"),
        ({"epsilon": -1e-9}, "epsilon = -1e-09"),
        ({"delta": 1}, "delta = 1"),
        ({"beta": 0}, "beta = 0"),
        ({"screen": 1}, "screen = 1"),
        ({"screen": "all"}, "screen = 'all'"),
        ({"certify": 0}, "certify = 0"),
        ({"certify": 0.7}, "screen = 0.3 and certify = 0.7"),
        ({"features": "floats"}, "features = 'floats'"),
        ({"method": "sgd"}, "method = 'sgd'"),
        ({"features": "bits", "method": "auto"}, "features = 'bits' and method = 'auto'"),
    ],
)
def test_hybrid_run_refuses_bad_parameters(changed, words):
    with pytest.raises(ParameterError, match=words):
        hybrid(**changed)


def test_what_people_interrupt_is_paid_for():
    """An answer that never comes: the means that they were asked about are released."""
    run, budget = hybrid(screen=0.3), Budget(2.0, 1e-6)

    def fail(text, k):
        raise OSError("the network")

    agents = local.RemoteAgents(fail, epsilon=4.0, count=TOWN)
    with pytest.raises(OSError, match="the network"):
        run.learn(panel, agents, budget=budget)
    assert (budget.spent.epsilon, budget.spent.delta) == (2.0, 1e-6)


def test_hybrid_run_refuses_a_label_that_is_a_number():
    numbers = {**SCHEMA, "label": {"column": "bought", "bounds": [0, 1]}}
    with pytest.raises(ParameterError, match="bounds make it a number"):
        HybridRun(Schema.from_json(json.dumps(numbers)), epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="schema"):
        HybridRun(SCHEMA, epsilon=1.0, delta=1e-6)


WRONG = {
    "a panel without a column": ({"panel": {"age": [1.0]}}, ParameterError, "panel lacks 4"),
    "an array": ({"panel": np.ones((9, 5))}, ParameterError, "named columns"),
    "no agents": ({"agents": None}, ParameterError, "agents = NoneType"),
    "others' features": (
        {"agents": local.Agents(np.zeros((TOWN, 3)), np.zeros(TOWN, int), epsilon=1.0)},
        ShapeError,
        "agents have 3 features, but the run asks about the schema's 7 numbers",
    ),
    "too few": ({"count": 70}, AgentsExhausted, "70 people"),
    "more than there are": ({"count": TOWN + 1}, AgentsExhausted, "20,000 agents are left"),
    "no count": ({"count": -1}, ParameterError, "count = -1"),
    "a seed": ({"random_state": -1}, ParameterError, "random_state"),
    "a small budget": ({"budget": Budget(1.0, 1e-6)}, BudgetExceeded, "epsilon"),
    "rows that come and go": (
        {"budget": Budget(9.0, 1e-3, neighbors="add_remove")}, ParameterError, "add_remove",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", WRONG)
def test_hybrid_run_refuses_before_anything_is_spent(how):
    changed, error, words = WRONG[how]
    run, budget = hybrid(), Budget(2.0, 1e-6)
    agents = run.simulate(town, n=PANEL, epsilon=4.0)
    options = {"panel": panel, "agents": agents, "budget": budget} | changed
    for call in (run.run, run.learn):
        with pytest.raises(error, match=words):
            call(**options)
    assert agents.remaining == TOWN
    assert budget.spent.epsilon == 0
    assert options["budget"].spent.epsilon == 0


def test_repair_refuses_other_agents_before_they_are_asked():
    run = hybrid(screen=0.0)
    learned = run.learn(panel, run.simulate(town, n=PANEL, epsilon=4.0))
    for epsilon, count, error, words in (
        (1.0, TOWN, ParameterError, "agents.epsilon = 1"),
        (4.0, 100, AgentsExhausted, "100 agents are left"),
    ):
        rows, labels = held("numbers")
        agents = local.Agents(rows[:count], labels[:count], epsilon=epsilon)
        with pytest.raises(error, match=words):
            run.repair(learned, agents)
        assert agents.remaining == count
    with pytest.raises(ParameterError, match="learned"):
        run.repair(None, agents)


def test_repair_refuses_what_its_learn_did_not_return():
    run = hybrid(screen=0.0)
    agents = run.simulate(town, n=PANEL, epsilon=4.0)
    learned = run.learn(panel, agents)
    columns = {name: kind for name, kind in SCHEMA["columns"].items() if name != "age"}
    other = Schema.from_json(json.dumps(SCHEMA | {"columns": columns}))
    other = HybridRun(other, epsilon=2.0, delta=1e-6, features="numbers")
    with pytest.raises(ParameterError, match="another schema"):
        other.repair(learned, agents)
    assert agents.remaining == TOWN
    repaired = run.repair(learned, agents)
    with pytest.raises(ParameterError, match="calibrated already"):
        run.repair(repaired, run.simulate(town, n=PANEL, epsilon=4.0))


def test_hybrid_run_returns_what_is_paid_for_where_warnings_are_errors():
    run = hybrid(screen=0.0)
    agents = run.simulate(town, n=PANEL, epsilon=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        result = run.run(panel, agents)
    assert result.calibrated.outcome != "calibrated"
    assert result.model.calibration is None
    assert list(result.certificates) == ["before"]


def test_a_panel_is_screened_where_its_means_tell_moves_apart():
    """Not one record before their sampling alone, by Hoeffding's bound, is near enough."""
    d, beta, coarse = 5, 0.05, hybrid_model._COARSE
    plain = SimpleNamespace(names=range(d), squared_distance=lambda powers: 1.0)
    least = math.floor(2 * math.log(8 * d / beta) / coarse**2) + 1
    goal = {"agents": 10**7, "agents_epsilon": 4.0, "beta": beta}
    shares = [hybrid_model.choose_screen(plain, 1e12, n=n, **goal) for n in (least - 1, 2 * least)]
    assert shares == [0.0, hybrid_model.SCREEN]
