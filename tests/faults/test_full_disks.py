"""A disk that is full or can't be written: one clear line, and nothing is underspent or torn."""

import random
from collections import Counter

import pytest
from disks import FULL, UNWRITABLE
from harness import figure, size, watched
from processes import as_nobody, forking
from verbs import COST, VERBS, entries, fresh, show

from hdp_fast import Budget
from hdp_fast.data import files
from hdp_fast.exceptions import HdpFastError

pytestmark = [forking, pytest.mark.usefixtures("quick_plan")]
# Beyond what any of the files needs.
MOST_ROOM = 1 << 17


@pytest.fixture(params=FULL, ids=lambda kind: kind.__name__)
def disk(memory, request):
    made = request.param(memory)
    yield made
    made.close()


def rooms(cases, seed):
    """How many bytes are left, from none to enough, and more often few."""
    rng = random.Random(seed)
    return [int(((case + rng.random()) / cases) ** 2 * MOST_ROOM) for case in range(cases)]


def clear(work):
    """The work, which prints the kind of the one error that it may end with."""

    def bound():
        try:
            work()
        except (HdpFastError, OSError) as error:
            show(f"!{type(error).__name__}")

    return bound


def one_line(run):
    """Asserts that a command ended well, or with one line that says why not."""
    if run.code:
        assert run.code == 2, run.err
        first, *others = run.err.splitlines()
        assert first.startswith("hdp-fast: error: "), run.err
        assert all(line.startswith("hdp-fast: note: ") for line in others), run.err


@pytest.mark.thorough(cases=1)
def test_a_ledger_on_a_full_disk_has_paid_for_all_that_it_showed(disk):
    path, cases, failed = disk.folder / "ledger", size(8, 120), 0

    def spend():
        budget = Budget.open(path, epsilon=1000)
        for _ in range(10):
            with budget.reserve(COST):
                show("x")

    for room in rooms(cases, seed=1):
        path.unlink(missing_ok=True)
        run = disk.run(clear(spend), room)
        assert run.code == 0, run.err
        seen = run.out.count("x")
        if path.exists():
            assert seen <= len(entries(path)) <= seen + 1
        assert path.exists() or not seen
        failed += "!" in run.out
        with Budget.open(path, epsilon=1000).reserve(COST):
            pass
    assert 0 < failed < cases
    figure(f"full disk ({type(disk).__name__}): a ledger", cases, f"{failed} clear errors")


@pytest.mark.thorough(cases=1)
def test_a_file_on_a_full_disk_is_the_old_one_or_the_new_one(disk):
    cases, written = size(12, 60), 0
    path, old, new = disk.folder / "file", b"old" * 10_000, b"new!" * 10_000
    for room in rooms(cases, seed=2):
        path.write_bytes(old)
        run = disk.run(clear(lambda: files.write_atomically(path, new)), room)
        assert run.code == 0, run.err
        assert path.read_bytes() == (old if "!" in run.out else new)
        assert {entry.name for entry in disk.folder.iterdir()} == {"file"}
        written += path.read_bytes() == new
    assert 0 < written < cases
    figure(f"full disk ({type(disk).__name__}): an atomic write", cases, f"{written} written")


@pytest.mark.thorough(cases=2)
@pytest.mark.parametrize("name", VERBS)
def test_a_command_on_a_full_disk_says_so_and_can_be_run_again(disk, inputs, name):
    if name.startswith("label"):
        pytest.importorskip("sklearn")
    verb, folder, came = VERBS[name], disk.folder / "run", Counter()
    work, cases = verb.work(inputs, folder), size(3, 40)
    fresh(inputs, folder)
    assert work() == 0  # here, so that children inherit its plan and its imports
    for room in rooms(cases, seed=name):
        fresh(inputs, folder)
        run = disk.run(work, room)
        one_line(run)
        came[verb.after(run, inputs, folder)] += 1
    outcome = ", ".join(f"{count} {what}" for what, count in sorted(came.items()))
    figure(f"full disk ({type(disk).__name__}): {name}", cases, outcome)


@pytest.mark.thorough(cases=2)
@pytest.mark.parametrize("protect", UNWRITABLE)
@pytest.mark.parametrize("name", VERBS)
def test_a_command_that_cannot_write_says_so_and_spends_nothing(inputs, name, protect):
    if name.startswith("label"):
        pytest.importorskip("sklearn")
    folder = inputs / "run"
    work = VERBS[name].work(inputs, folder)
    fresh(inputs, folder)
    assert work() == 0  # here, so that the child, who may read little, need not import
    fresh(inputs, folder)
    for path in (inputs, *inputs.iterdir()):
        path.chmod(0o777)
    with protect(folder):
        run = watched(as_nobody(work))
    one_line(run)
    assert (run.code, run.out) == (2, "")
    assert entries(inputs / "ledger") == ()
    assert list(folder.iterdir()) == []
    figure(f"unwritable folder ({protect.__name__}): {name}", 1, "one line, nothing spent")
