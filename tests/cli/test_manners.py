"""What every verb of the command line shares: its options, its exit codes, its one line."""

import argparse
import io
import json
import re
import shlex
import sys

import numpy as np
import pytest
from command_line import fails

from hdp_fast import Budget, exceptions
from hdp_fast._support.notes import note
from hdp_fast.cli import command_line, main
from hdp_fast.cli.exit_codes import ExitCode
from hdp_fast.cli.output import Watch
from hdp_fast.cli.parser import HELP, make_manners
from hdp_fast.data import files

SCHEMA = ("--schema", "s.json")
PLAN = ("parity", "plan", "--d", "3", "--alpha", ".1", "--epsilon", "1")
# The least that each verb must be told.
VERBS = {
    ("demo",): (),
    ("advise",): ("--records", "9", "--features", "2", "--epsilon", "1"),
    ("parity", "plan"): PLAN[2:],
    ("parity", "learn"): ("x.csv", "--epsilon", "1"),
    ("parity", "transfer"): (
        *("x.csv", "--agents", "y.csv", "--agents-epsilon", "1"),
        *("--alpha", ".1", "--epsilon", "1"),
    ),
    ("gf2", "rank"): ("x.csv",),
    ("gf2", "solve"): ("x.csv", "y.csv"),
    ("gf2", "nullspace"): ("x.csv",),
    ("gf2", "inverse"): ("x.csv",),
    ("gf2", "multiply"): ("x.csv",),
    ("stats",): ("x.csv", *SCHEMA, "--epsilon", "1"),
    ("schema",): ("x.csv", "--label", "y", "--above", "1"),
    ("transfer",): (
        *("x.csv", "y.csv", *SCHEMA, "--agents-epsilon", "1", "--alpha", ".1", "--epsilon", "1"),
        *("--delta", "1e-6", "--kappa", ".1", "--eta", "1", "--rounds", "3"),
    ),
    ("hybrid",): (
        *("x.csv", "y.csv", *SCHEMA, "--epsilon", "1", "--delta", "1e-6"),
        *("--agents-epsilon", "1"),
    ),
    ("label",): (
        *("x.csv", "y.csv", *SCHEMA, "--estimator", "tree"),
        *("--epsilon", "1", "--delta", "1e-6"),
    ),
    ("fit",): (
        *("x.csv", *SCHEMA, "--epsilon", "1", "--delta", "1e-6"),
        *("--output", "model.json"),
    ),
    ("predict",): ("model.json", "x.csv"),
    ("adapt",): ("x.csv", "y.csv", *SCHEMA, "--epsilon", "1", "--delta", "1e-6"),
    ("local", "estimate"): ("x.csv", "--low", "0", "--high", "1", "--epsilon", "1"),
    ("local", "frequency"): ("x.csv", "--k", "3", "--epsilon", "1"),
    ("local", "masked-parity"): ("--d", "8", "--epsilon", "1"),
    ("local", "question", "mean"): ("pay", "--low", "0", "--high", "1", "--epsilon", "1"),
    ("local", "question", "frequency"): ("pay", "--k", "3", "--epsilon", "1"),
    ("local", "randomize"): ("1", "--question", "q.json"),
    ("local", "collect"): ("--question", "q.json"),
    ("survey", "create"): (
        *("town", "--asker", "me", "--epsilon", "1", "--people", "3"),
        *("--url", "https://example.org"),
    ),
    ("survey", "serve"): ("town",),
    ("budget",): ("ledger",),
    ("bench",): (),
    ("version",): (),
    ("help",): (),
}
each_verb = pytest.mark.parametrize("verb", VERBS, ids=" ".join)


def leaves(parser, names=()):
    """The parser of each verb, by its name."""
    parser.fill()
    parts = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not parts:
        yield names, parser
    for name, below in parts[0].choices.items() if parts else ():
        yield from leaves(below, (*names, name))


@pytest.fixture
def acting(monkeypatch):
    """Lets every verb do something else."""
    build = command_line._parser

    def let(act):
        def made():
            parser = build()
            for _, verb in leaves(parser):
                verb.set_defaults(command=lambda _arguments: act())
            return parser

        monkeypatch.setattr(command_line, "_parser", made)

    return let


def test_every_verb_is_among_them():
    assert set(VERBS) == {names for names, _ in leaves(command_line._parser())}


@pytest.mark.thorough(cases=24)
@each_verb
@pytest.mark.parametrize("option", ["--strict", "--quiet", "--force"])
def test_shared_options_stand_before_and_after_every_verb(verb, option):
    for argv in ([option, *verb, *VERBS[verb]], [*verb, *VERBS[verb], option]):
        arguments = command_line._parser().parse_args(argv, command_line.make_manners())
        assert vars(arguments)[option.removeprefix("--")] is True
    bare = command_line._parser().parse_args([*verb, *VERBS[verb]], command_line.make_manners())
    assert not any(getattr(bare, name) for name in ("strict", "quiet", "force"))


@each_verb
def test_the_most_bytes_of_a_table_stand_before_and_after_every_verb(verb):
    for argv in (
        ["--max-bytes", "1e6", *verb, *VERBS[verb]],
        [*verb, *VERBS[verb], "--max-bytes", "1e6"],
    ):
        arguments = command_line._parser().parse_args(argv, command_line.make_manners())
        assert arguments.max_bytes == 10**6
    bare = command_line._parser().parse_args([*verb, *VERBS[verb]], command_line.make_manners())
    assert bare.max_bytes == 2**32


@pytest.mark.thorough(cases=64)
@each_verb
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (exceptions.ParameterError("it is wrong"), 2),
        (exceptions.ShapeError("it is wrong"), 2),
        (OSError(28, "no space left"), 2),
        (ImportError("it is missing"), 2),
        (exceptions.BudgetExceeded("it is spent"), 3),
        (exceptions.InsufficientSamples("they are few"), 3),
        (exceptions.AgentsExhausted("they are few"), 3),
        (KeyError("SECRET"), 70),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_errors_of_every_verb_have_one_line_and_a_code(capsys, acting, verb, error, code):
    def fail():
        raise error

    acting(fail)
    line = fails(capsys, *verb, *VERBS[verb], code=code)
    assert "SECRET" not in line
    assert ("please report it" in line) == (code == 70)


@each_verb
def test_ctrl_c_in_every_verb(capsys, acting, verb):
    def interrupt():
        raise KeyboardInterrupt

    acting(interrupt)
    assert main([*verb, *VERBS[verb]]) == 130
    assert capsys.readouterr() == ("", "hdp-fast: interrupted\n")


@pytest.mark.thorough(cases=8)
@each_verb
def test_a_note_is_a_failure_where_it_must_be(capsys, acting, verb):
    acting(lambda: note("It is of no use."))
    for argv, code in (([], 0), (["--strict"], 1), (["--quiet"], 0)):
        assert main([*argv, *verb, *VERBS[verb]]) == code
        assert main([*verb, *VERBS[verb], *argv]) == code
        assert capsys.readouterr().err == "hdp-fast: note: It is of no use.\n" * 2
    acting(lambda: ExitCode.NOTHING_USEFUL)
    assert main([*verb, *VERBS[verb]]) == 1


def test_help_tells_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert [code for code in ExitCode if f"\n  {code:>3}  " in text] == list(ExitCode)


@pytest.mark.parametrize("verb", ["learn", "transfer"])
def test_a_parity_that_is_not_released_is_nothing_useful(capsys, tmp_path, verb):
    rng = np.random.default_rng(1)
    path = tmp_path / "noise.npz"
    np.savez(path, X=rng.integers(2, size=(400, 6)), y=rng.integers(2, size=400))
    argv = ["parity", verb, str(path), "--epsilon", "1", "--json"]
    if verb == "transfer":
        argv += ["--agents", str(path), "--agents-epsilon", "4", "--alpha", ".4"]
    assert main(argv) == 1
    assert json.loads(capsys.readouterr().out)["released"] is False


def test_quiet_hides_bars(monkeypatch, acting, capsys):
    shown = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    acting(lambda: shown.append(command_line.progress.can_show()))
    assert main(PLAN) == main(["--quiet", *PLAN]) == 0
    assert shown == [True, False]


# Where each verb writes: its arguments, and the file.
OUTPUTS = [
    (verb, ("--output",), "out.json")
    for verb in VERBS
    if verb
    not in (
        ("demo",),
        ("parity", "plan"),
        *(verb for verb in VERBS if verb[0] == "gf2"),
        ("label",),
        ("predict",),
        ("local", "randomize"),
        ("survey", "create"),
        ("survey", "serve"),
        ("budget",),
        ("bench",),
        ("version",),
        ("help",),
    )
]
OUTPUTS += [
    *((verb, ("--output",), "out.npz") for verb in VERBS if verb[0] == "gf2" and verb[1] != "rank"),
    (("label",), (), "y.labeled.csv"),
    (("label",), ("--output",), "out.csv"),
    (("label",), ("--record",), "out.json"),
    (("label",), ("--plot",), "out.png"),
    (("fit",), ("--report",), "out.html"),
    (("predict",), (), "x.predicted.csv"),
    (("predict",), ("--output",), "out.csv"),
    (("adapt",), ("--predict", "z.csv"), "z.predicted.csv"),
    (("adapt",), ("--predict", "z.csv", "--predictions"), "out.csv"),
    (("transfer",), ("--predict", "z.csv"), "z.predicted.csv"),
    (("transfer",), ("--predict", "z.csv", "--predictions"), "out.csv"),
    (("transfer",), ("--plot",), "out.png"),
    (("adapt",), ("--plot",), "out.png"),
    (("local", "estimate"), ("--plot",), "out.png"),
    (("local", "frequency"), ("--plot",), "out.png"),
    (("local", "collect"), ("--plot",), "out.png"),
    (("local", "collect"), ("--aggregate",), "out.npz"),
]


@pytest.mark.parametrize(("verb", "option", "name"), OUTPUTS)
def test_no_verb_replaces_a_file_by_itself(capsys, tmp_path, monkeypatch, verb, option, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("old")
    named = [name] if option and option[-1].startswith("--") else []
    line = fails(capsys, *verb, *VERBS[verb], *option, *named)
    assert f"got {name}, which is there: --force replaces it" in line
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "old"


@pytest.mark.parametrize(("verb", "option", "name"), OUTPUTS)
def test_force_never_replaces_a_file_of_state(capsys, tmp_path, monkeypatch, verb, option, name):
    """Nor stands anything in the place of its logs, whether they are there now or not."""
    monkeypatch.chdir(tmp_path)
    Budget.open(name, epsilon=1)
    content = (tmp_path / name).read_bytes()
    named = [name] if option and option[-1].startswith("--") else []
    line = fails(capsys, *verb, *VERBS[verb], *option, *named, "--force")
    assert "output must not replace a file of state" in line
    assert name in line
    if named and name == "out.json":
        # Any other name than .json may be refused for its ending.
        line = fails(capsys, *verb, *VERBS[verb], *option, f"{name}-wal", "--force")
        assert "a log of" in line
        assert name in line
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == content


BESIDE = [
    (("stats",), "--budget", "--output", "new-wal"),
    (("transfer",), "--checkpoint", "--output", "new-journal"),
    (("label",), "--save", "--record", "new.ledger"),
]


@pytest.mark.parametrize(("verb", "option", "output", "name"), BESIDE)
def test_an_output_is_nothing_that_comes_beside_a_file_of_state(
    capsys, tmp_path, monkeypatch, verb, option, output, name
):
    monkeypatch.chdir(tmp_path)
    line = fails(capsys, *verb, *VERBS[verb], option, "new", output, name)
    assert f"got {name}, which stands for another file of this command" in line
    assert list(tmp_path.iterdir()) == []


def test_force_replaces_outputs_and_nothing_else(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("y,z\n1,2\n3,1\n")
    for verb in (("schema",), ("local", "question", "mean")):
        (tmp_path / "out.json").write_text("old")
        assert main([*verb, *VERBS[verb], "--output", "out.json", "--force"]) == 0
        assert "hdp_fast" in (tmp_path / "out.json").read_text()
    capsys.readouterr()
    line = fails(capsys, "schema", *VERBS["schema",], "--output", "x.csv", "--force")
    assert "another file of this command" in line
    assert main(["budget", "ledger", "--epsilon", "1"]) == 0
    capsys.readouterr()
    assert "1.0" in fails(capsys, "budget", "ledger", "--epsilon", "2", "--force")


def test_a_replaced_file_is_known_from_an_old_one(tmp_path):
    old, new, replaced = (tmp_path / name for name in ("old", "new", "replaced"))
    for path in (old, replaced):
        files.write_atomically(path, b"old")
    watch = Watch([old, new, replaced, None])
    for path in (new, replaced):
        files.write_atomically(path, b"new")
    assert watch.describe() == [
        f"{old} is not written",
        f"{new} is written",
        f"{replaced} is written",
    ]


@pytest.mark.parametrize("verb", [["version"], ["help", "version"]])
def test_what_needs_no_arguments(capsys, verb):
    assert main(verb) == 0
    assert "version" in capsys.readouterr().out or verb == ["version"]


@pytest.mark.parametrize("verb", [(), ("parity",), *VERBS], ids=" ".join)
def test_help_is_a_verb(capsys, verb):
    assert main(["help", *verb]) == 0
    helped = capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main([*verb, "--help"])
    assert stopped.value.code == 0
    assert capsys.readouterr() == helped
    assert helped.out.startswith(" ".join(["usage: hdp-fast", *verb]))


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["shema"], "schema"),
        (["help", "lable"], "label"),
        (["parity", "lern"], "learn"),
        (["local", "question", "means"], "mean"),
        ([*PLAN, "--method", "Loop"], "loop"),
    ],
)
def test_a_slip_is_met_with_a_guess(capsys, argv, meant):
    line = fails(capsys, *argv)
    assert f"did you mean {meant!r}?" in line
    assert "did you mean" not in fails(capsys, "xyzzy")


@pytest.mark.parametrize(
    ("verb", "missing"),
    [
        ("fit", ["PRIVATE", "--schema", "--epsilon", "--delta", "--output"]),
        ("fit private.csv --epsilon inf", ["--schema", "--output"]),
        ("stats", ["PRIVATE", "--schema", "--epsilon"]),
        ("hybrid", ["SURVEY"]),
        ("hybrid panel.csv town.csv", ["--schema", "--epsilon", "--delta", "--agents-epsilon"]),
        ("label", ["PRIVATE", "PUBLIC", "--schema", "--epsilon", "--delta"]),
        ("adapt", ["SOURCE", "TARGET", "--schema", "--epsilon", "--delta"]),
    ],
)
def test_all_that_is_missing_is_listed_at_once_with_what_it_must_be(capsys, verb, missing):
    line = fails(capsys, *verb.split())
    names, _, rules = line.partition("arguments are required: ")[2].partition(" (")
    assert names.split(", ") == missing
    assert [rule.partition(": ")[0] for rule in rules.split("; ")] == missing


def test_whole_numbers_may_be_written_as_powers(capsys):
    outs = []
    for d in ("10000", "1e4", "1.0e4"):
        assert main(["parity", "plan", "--d", d, *PLAN[4:]]) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1] == outs[2]
    for d in ("1.5", "1e-4", "nan", "inf", "x", "1e30"):
        assert "--d: invalid" in fails(capsys, "parity", "plan", "--d", d, *PLAN[4:])


def test_tables_of_other_delimiters(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("y;z\n1;2\n3;1\n")
    asked = ["schema", "x.csv", "--label", "y", "--above", "1", "--quiet"]
    assert "x.csv names: did you mean --delimiter ';'?" in fails(capsys, *asked)
    assert main([*asked, "--delimiter", ";"]) == 0
    expected = capsys.readouterr().out
    (tmp_path / "x.txt").write_text("y\tz\n1\t2\n3\t1\n")
    asked[1] = "x.txt"
    assert "--delimiter" in fails(capsys, *asked).replace("delimiter must", "--delimiter must")
    for sign in ("\t", "\\t", "tab"):
        assert main([*asked, "--delimiter", sign]) == 0
        assert capsys.readouterr().out == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"y,z\n1,2\n3,1\n")))
    assert main(["schema", "-", *asked[2:]]) == 0
    assert capsys.readouterr().out == expected
    assert "did you mean 'y'?" in fails(
        capsys, "schema", "x.csv", "--delimiter", ";", "--label", "Y", "--above", "1"
    )


def protection(capsys, *argv):
    """The first line of a command, which must go well."""
    assert main([*argv, "--json"]) in (0, 1)
    first, *others = capsys.readouterr().err.splitlines()
    assert main([*argv, "--json", "--quiet", "--force"]) in (0, 1)
    # Notes hold released numbers, which differ from run to run; they stay, the rest is silent.
    quiet = capsys.readouterr().err.splitlines()
    assert all(line.startswith("hdp-fast: note: ") for line in quiet)
    return first.removeprefix("hdp-fast: "), "\n".join(others)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A table, a smaller one, and their schema."""
    monkeypatch.chdir(tmp_path)
    for name, n in (("large.csv", 4000), ("small.csv", 100)):
        lines = [f"{age},{age > 50:d}" for age in np.random.default_rng(n).integers(0, 100, n)]
        (tmp_path / name).write_text("\n".join(["age,buys", *lines, ""]))
    schema = ["schema", "large.csv", "--label", "buys", "--positive", "1", "--quiet"]
    assert main([*schema, "--output", "s.json"]) == 0


def test_adapt_says_which_file_is_protected(capsys, tables):
    private = ("--epsilon", "4", "--delta", "1e-6")
    descent = ("--method", "descent", "--steps", "5")
    argv = ["adapt", "large.csv", "small.csv", *SCHEMA]
    line, notes = protection(capsys, *argv, *private, "--predict", "small.csv")
    files = "public: large.csv, small.csv"
    assert line == f"protected: small.csv, epsilon = 4, delta = 1e-06; {files}"
    at_once = "small.csv is protected and public at once: what is written of it is not protected"
    assert at_once in notes
    line, notes = protection(capsys, *argv, *private, *descent, "--private", "source")
    assert line == "protected: large.csv, epsilon = 4, delta = 1e-06; public: small.csv"
    assert "swapped" not in notes
    line, notes = protection(capsys, *argv, "--epsilon", "inf")
    assert line == "protected: nothing; public: large.csv, small.csv"
    assert "swapped" not in notes
    line, notes = protection(capsys, "adapt", "small.csv", "large.csv", *SCHEMA, *private)
    assert line == "protected: large.csv, epsilon = 4, delta = 1e-06; public: small.csv"
    assert "TARGET has 4,000 and is protected: are the two swapped" in notes


def test_transfer_says_which_files_are_protected(capsys, tables):
    argv = ["transfer", "small.csv", "large.csv", *SCHEMA, "--agents-epsilon", "2"]
    argv += ["--alpha", ".15", "--kappa", ".5", "--eta", ".5", "--rounds", "2"]
    argv += ["--schedule", "final"]
    line, _ = protection(capsys, *argv, "--epsilon", "1", "--delta", "1e-6")
    assert line == "protected: small.csv, epsilon = 1, delta = 1e-06; large.csv, epsilon = 2"
    pytest.importorskip("sklearn")
    line, _ = protection(capsys, *argv, "--non-private")
    assert line == "protected: large.csv, epsilon = 2; public: small.csv"


def test_label_says_which_file_is_protected(capsys, tables):
    pytest.importorskip("sklearn")
    argv = [*SCHEMA, "--estimator", "naive-bayes", "--epsilon", "20", "--delta", "1e-6"]
    argv += ["--members", "20"]
    line, notes = protection(capsys, "label", "large.csv", "small.csv", *argv)
    assert line == "protected: large.csv, epsilon = 20, delta = 1e-06; public: small.csv"
    assert "swapped" not in notes
    line, notes = protection(capsys, "label", "small.csv", "large.csv", *argv)
    assert line == "protected: small.csv, epsilon = 20, delta = 1e-06; public: large.csv"
    assert "large.csv has 4,000 rows and labels, and is public, while small.csv" in notes
    argv += ["--output", "both.csv"]
    line, notes = protection(capsys, "label", "large.csv", "large.csv", *argv)
    assert "large.csv is protected and public at once" in notes


def test_parity_says_which_files_are_protected(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(1).integers(2, size=(2000, 6))
    for name in ("x.npz", "y.npz"):
        np.savez(name, X=X, y=X[:, 1])
    line, _ = protection(capsys, "parity", "learn", "x.npz", "--epsilon", "1")
    assert line == "protected: x.npz, epsilon = 1"
    argv = ["--agents", "y.npz", "--agents-epsilon", "2", "--alpha", ".3", "--epsilon", "1"]
    line, _ = protection(capsys, "parity", "transfer", "x.npz", *argv)
    assert line == "protected: x.npz, epsilon = 1; y.npz, epsilon = 2"


def test_an_output_of_a_dash_is_the_standard_output(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("local", "question", "mean", *VERBS["local", "question", "mean"])
    assert main(asked) == main([*asked, "--output", "-"]) == 0
    out = capsys.readouterr().out
    assert out[: len(out) // 2] * 2 == out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", HELP)
def test_the_help_of_a_verb_ends_in_an_example_that_is_read(verb, capsys):
    with pytest.raises(SystemExit):
        main([*verb.split(), "--help"])
    printed = capsys.readouterr().out
    assert f"example:\n  {HELP[verb].example}" in printed
    if verb not in ("", "help", "version"):
        assert re.search("protect|private|nothing is spent|Privacy", printed)
    program, *arguments = shlex.split(HELP[verb].example)
    assert program == "hdp-fast"
    assert " ".join(arguments).startswith(verb)
    command_line._parser().parse_args(arguments, make_manners())


def test_every_verb_has_an_example():
    assert {
        program.partition("hdp-fast")[2].strip() for program in programs(command_line._parser())
    } == set(HELP)


def programs(parser):
    parser.fill()
    yield parser.prog
    for action in parser._actions:
        for inner in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from programs(inner)
