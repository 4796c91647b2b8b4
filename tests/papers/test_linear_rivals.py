"""The comparison with rivals: splits, store, paired differences, ranks; and the rivals in numpy."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each_case
from scripts import PAPERS, loaded

from hdp_fast.accounting import gaussian_mu

PATH = PAPERS / "linear_rivals.py"
PEERS = PAPERS.parent / "peers"
PAGE = PAPERS.parents[1] / "docs" / "reproduction" / "rivals.md"

pytestmark = pytest.mark.skipif(not PATH.exists(), reason="needs benches/")


@pytest.fixture(scope="module")
def script():
    with loaded(PATH) as module:
        yield module


@pytest.fixture(scope="module")
def scores(script):
    with loaded(PAPERS / "_linear_scores.py") as module:
        yield module


@pytest.fixture(scope="module")
def summary(scores):
    with loaded(PAPERS / "_linear_summary.py") as module:
        yield module


@pytest.fixture(scope="module")
def peer():
    with loaded(PEERS / "peer_tasks.py") as module:
        yield module


@pytest.fixture(scope="module")
def adassp(peer):
    with loaded(PEERS / "adassp_models.py") as module:
        yield module


@pytest.fixture(scope="module")
def dp_sgd(peer):
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    with loaded(PEERS / "dp_sgd_models.py") as module:
        yield module


@pytest.fixture
def store(script, summary, tmp_path):
    """Two classes: ours .8, .9 everywhere, and a rival the better the larger its epsilon."""
    store = script.Store.open(tmp_path / "scores.json", {"limit": 10})
    store.tables["made"] = {"records": 7, "columns": 2, "classes": 2, "fresh": True}
    for rival in summary.rivals_of("two classes"):
        for epsilon in (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0):
            cell = {"score": [0.5 + epsilon / 10, 0.6 + epsilon / 10], "loss": [0.7, 0.6]}
            if rival.name == "AdaSSP":
                cell = {"failure": "ValueError: no"}
            store.keep("made", rival.name, epsilon, cell | {"seconds": 0.1})
    for epsilon in summary.EPSILONS:
        cell = {"score": [0.8, 0.9], "loss": [0.5, 0.4], "seconds": 0.1}
        store.keep("made", summary.OURS, epsilon, cell)
        cell = {"score": [0.6, 0.6], "loss": [0.45, 0.35], "seconds": 0.0}
        store.keep("made", summary.CONSTANT, epsilon, cell)
    return store


def test_the_page_has_the_summary_of_the_stored_scores(script):
    lines = script.summarize_page(script.Store.open(script.STORE))
    assert PAGE.read_text().endswith(script.HEADING + "\n".join(lines) + "\n")


def test_a_split_learns_from_at_most_the_limit_and_tests_on_three_tenths(scores):
    task = SimpleNamespace(y=np.zeros(1_000))
    for limit, train in ((10_000, 700), (70, 70)):
        (order,) = scores.make_orders(task, range(1), limit)
        assert scores.count_train(order) == train
        assert len(order) - train == pytest.approx(train * 3 / 7, abs=1)
        assert len(set(order)) == len(order)


def test_a_store_is_what_was_written(script, store):
    store.write()
    again = script.Store.open(store.path, {"limit": 10})
    assert again.cells == store.cells
    assert again.tables == store.tables
    assert json.loads(store.path.read_text())["settings"] == {"limit": 10}


def test_a_store_of_other_settings_is_refused(script, store):
    store.write()
    with pytest.raises(SystemExit, match="name another --store"):
        script.Store.open(store.path, {"limit": 11})


def test_a_store_lacks_cells_with_fewer_splits_but_no_failures(store):
    assert store.lacks("made", "DP-EBM", 1.0, 3)
    assert not store.lacks("made", "DP-EBM", 1.0, 2)
    assert store.lacks("made", "DP-EBM", 3.0, 2)
    assert not store.lacks("made", "AdaSSP", 1.0, 3)


@each_case(
    "name, relation, theirs",
    [
        ("DP-EBM", "same relation", 0.75),
        ("DP-EBM", "stated epsilon", 0.95),
        ("diffprivlib logistic", "same relation", 0.95),
    ],
)
def test_a_pair_halves_epsilon_where_a_record_is_added_or_removed(
    summary, store, name, relation, theirs
):
    rival = next(rival for rival in summary.RIVALS if rival.name == name)
    pair = summary.compare(store, "made", 4.0, "accuracy", rival, relation)
    assert pair.theirs == pytest.approx(theirs)
    assert pair.difference == pytest.approx(0.85 - theirs)
    assert (pair.is_ahead, pair.is_behind) == (theirs < 0.85, theirs > 0.85)
    loss = summary.compare(store, "made", 4.0, "log loss", rival, relation)
    assert loss.difference == pytest.approx(0.2)
    assert loss.is_ahead


def test_a_pair_within_two_errors_is_neither_ahead_nor_behind(summary):
    names = ("made", 1.0, "R^2", "DP-SGD", "same relation", 0.0, 0.0)
    for difference, ahead, behind in (
        (0.19, False, False),
        (0.21, True, False),
        (-0.21, False, True),
    ):
        pair = summary.Pair(*names, difference, 0.1)
        assert (pair.is_ahead, pair.is_behind) == (ahead, behind)


def test_ranks_put_ties_in_their_middle_and_failures_last(summary, store):
    ranks = summary.rank(store, "made", 4.0, "accuracy", "two classes")
    assert ranks["AdaSSP"] == 7
    assert ranks["ours"] == 3
    assert ranks["diffprivlib logistic"] == ranks["PrivateSGD"] == 1.5
    assert sum(ranks.values()) == sum(range(1, 8))


def test_the_summary_counts_failures_and_cells(summary, store):
    text = "\n".join(summary.summarize(store, 1.0))
    assert "- AdaSSP, `ValueError: no`: made" in text
    assert "### Two classes, accuracy: 1 tables, 4 cells" in text
    assert "### Behind, same relation: 2 of 40 cells, 2 of them from epsilon 1 on" in text
    assert "### Behind, the constant without noise: 4 of 8 cells, 2 of them" in text


@each_case("classes", [0, 2, 3])
def test_rivals_are_measured_as_ours(scores, peer, classes):
    rng = np.random.default_rng(3)
    codes = rng.integers(classes, size=40) if classes else rng.uniform(-1, 1, 40)
    predicted = rng.dirichlet(np.ones(classes), 20) if classes else rng.normal(size=20)
    predicted = np.array(predicted)
    if classes:
        predicted[0] = np.eye(classes)[(codes[20] + 1) % classes]
    test = np.arange(20, 40)
    ours = scores.measure(SimpleNamespace(codes=codes, classes=classes), predicted, test)
    theirs = peer.measure(SimpleNamespace(y=codes, classes=classes), predicted, test)
    assert ours == theirs
    if classes:
        assert ours[1] > -math.log(2e-4) / 20


def test_adassp_is_least_squares_without_noise(adassp):
    rng = np.random.default_rng(4)
    X, weights = rng.uniform(-1, 1, (200, 3)), np.array([[0.2], [-0.1], [0.3]])
    solved = adassp.solve(X, X @ weights, math.sqrt(3), (1e9, 1e-6), rng)
    np.testing.assert_allclose(solved, weights, atol=1e-5)


def test_adassp_has_the_noise_and_the_ridge_of_its_paper(adassp):
    """Without records the answers are the noise of X'y over the ridge, but for that of X'X."""
    epsilon, delta, norm, d = 1.0, 1e-6, 2.0, 400
    solved = adassp.solve(
        np.zeros((1, d)), np.zeros((1, 1)), norm, (epsilon, delta), np.random.default_rng(5)
    )
    log, third = math.log(6 / delta), epsilon / 3
    noise = math.sqrt(log) / third * norm
    ridge = math.sqrt(d * log * math.log(2 * d**2 / adassp.RHO)) * norm**2 / third
    assert solved.std() * ridge / noise == pytest.approx(1, abs=0.25)


def test_dp_sgd_has_the_noise_of_one_gaussian_mechanism_where_all_records_are_drawn_once(dp_sgd):
    """Renyi accounting asks for at most a fifth more than the exact law."""
    exact = 1 / gaussian_mu(1.0, 1e-6)
    assert exact < dp_sgd.noise_multiplier(1.0, 1e-6, 1.0, 1) < 1.2 * exact


def test_dp_sgd_learns_what_is_easy_and_nothing_where_noise_is_all(dp_sgd, peer):
    rng = np.random.default_rng(6)
    rows = rng.random((600, 2))
    facts = {"columns": rows, "nominal": np.zeros(2, bool), "numeric": np.ones(2, bool)}
    y = (rows[:, 0] > 0.5).astype(int)
    task = peer.PeerTask(rows=rows, y=y, classes=2, norm=math.sqrt(2), delta=1e-6, **facts)
    scores = [
        peer.score(
            dp_sgd.by_descent,
            task,
            {"train": 400, "orders": [np.arange(600)]},
            epsilon,
        )["score"][0]
        for epsilon in (4.0, 1e-3)
    ]
    assert scores[0] > 0.9
    assert scores[1] < 0.8


def test_a_rival_that_raises_has_failed(peer):
    def learn(*_):
        raise ValueError("no such table")

    cell = peer.score(learn, None, {"train": 1, "orders": [np.arange(3)]}, 1.0)
    assert cell == {"failure": "ValueError: no such table"}
