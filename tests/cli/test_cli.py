"""The command line: what it reads, prints and writes, and one clear line for every bad input."""

import gzip
import io
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import fails

import hdp_fast
from hdp_fast import bench
from hdp_fast.cli import main
from hdp_fast.cli.output import show
from hdp_fast.data import files
from hdp_fast.exceptions import HdpFastError, ParameterError, ShapeError

D = 6
MASK = np.array([1, 0, 1, 1, 0, 0], dtype=np.uint8)
# At this epsilon the sampling rate is about .98 and every run that isn't bottom finds the mask.
EPSILON = "8"


@pytest.fixture
def examples():
    rng = np.random.default_rng(1)
    X = rng.integers(2, size=(400, D), dtype=np.uint8)
    return X, (X @ MASK % 2).astype(np.uint8)


@pytest.fixture
def npz(tmp_path, examples):
    path = tmp_path / "data.npz"
    np.savez(path, X=examples[0], y=examples[1])
    return path


def write_csv(path, X, y, header=None):
    rows = np.column_stack([X, y])
    lines = [",".join(map(str, row)) for row in rows.tolist()]
    path.write_text("\n".join([*([header] if header else []), *lines]) + "\n")
    return path


def released(capsys, *argv):
    """The JSON of the first of a few runs that is not bottom, which each is with .96."""
    for _ in range(10):
        code = main([*map(str, argv), "--json"])
        result = json.loads(capsys.readouterr().out)
        assert code == (0 if result["released"] else 1)
        if result["released"]:
            return result
        assert result["mask"] is None
    raise AssertionError("bottom ten times in a row")


def test_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"hdp-fast {hdp_fast.__version__}\n"


@pytest.mark.thorough(beside="test_version")
def test_module_runs():
    done = subprocess.run(
        [sys.executable, "-m", "hdp_fast", "parity", "plan", "--d", "x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("hdp-fast: error: argument --d: ")
    assert "Traceback" not in done.stderr


def test_plan_of_the_main_example(capsys):
    arguments = ["parity", "plan", "--d", "10000", "--alpha", ".05", "--epsilon", "1"]
    assert main([*arguments, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["n"], plan["n_paper"]) == (330_555, 83_204_509)
    assert main(arguments) == 0
    assert "330,555" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--epsilon", "0"),
        ("--epsilon", "nan"),
        ("--epsilon", "-1"),
        ("--epsilon", "x"),
        ("--alpha", "0"),
        ("--alpha", "nan"),
        ("--beta", "1"),
        ("--d", "0"),
        ("--d", "1.5"),
        ("--method", "magic"),
        ("--neighbors", "none"),
    ],
)
def test_plan_names_the_wrong_argument(capsys, option, value):
    options = {"--d": "10", "--alpha": ".1", "--epsilon": "1", option: value}
    line = fails(capsys, "parity", "plan", *[text for pair in options.items() for text in pair])
    assert option.removeprefix("--") in line


def test_missing_command_and_argument(capsys):
    assert "COMMAND" in fails(capsys)
    assert "--epsilon" in fails(capsys, "parity", "plan", "--d", "3", "--alpha", ".1")


def test_learn_from_npz(capsys, npz, tmp_path):
    output = tmp_path / "result.json"
    result = released(capsys, "parity", "learn", npz, "--epsilon", EPSILON, "--output", output)
    assert result["mask"] == "".join(map(str, MASK))
    assert result["record"]["epsilon"] == float(EPSILON)
    assert json.loads(output.read_text()) == result
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz", "result.json"]


def test_learn_from_packed_npz_and_affine(capsys, tmp_path, examples):
    X, y = examples
    path = tmp_path / "packed.npz"
    packed = np.packbits(X, axis=1, bitorder="little")
    np.savez(path, X_packed=packed, ncols=D, y=y ^ 1)
    result = released(capsys, "parity", "learn", path, "--epsilon", EPSILON, "--affine")
    assert result["mask"] == "".join(map(str, MASK))
    assert result["intercept"] == 1


def test_learn_from_npy_with_labels(capsys, tmp_path, examples):
    X, y = examples
    np.save(tmp_path / "X.npy", X.astype(float))
    np.save(tmp_path / "y.npy", y.astype(bool))
    arguments = ["--labels", tmp_path / "y.npy", "--epsilon", EPSILON]
    result = released(capsys, "parity", "learn", tmp_path / "X.npy", *arguments)
    assert result["mask"] == "".join(map(str, MASK))
    line = fails(capsys, "parity", "learn", tmp_path / "X.npy", "--epsilon", EPSILON)
    assert "labels must be given" in line


def test_learn_from_several_files_is_learning_from_one(capsys, tmp_path, examples):
    X, y = examples
    whole, parts = tmp_path / "whole.npz", [tmp_path / "b.npz", tmp_path / "a.csv"]
    np.savez(whole, X=X, y=y)
    packed = np.packbits(X[:150], axis=1, bitorder="little")
    np.savez(parts[0], X_packed=packed, ncols=D, y=y[:150])
    write_csv(parts[1], X[150:], y[150:])
    learn = ["parity", "learn", "--epsilon", EPSILON]
    result, alone = released(capsys, *learn, *parts), released(capsys, *learn, whole)
    assert result["mask"] == "".join(map(str, MASK))
    assert result["alpha"] == alone["alpha"]
    learn = [*learn, *parts]
    assert "must come alone" in fails(capsys, *learn, "-")
    assert "must hold their labels" in fails(capsys, *learn, "--labels", tmp_path / "a.csv")
    assert "missing.npz" in fails(capsys, *learn, tmp_path / "missing.npz")


def test_learn_from_csv_as_text(capsys, tmp_path, examples):
    path = write_csv(tmp_path / "data.csv", *examples)
    code = main(["parity", "learn", str(path), "--epsilon", EPSILON])
    out = capsys.readouterr().out
    assert "record" in out
    assert ("".join(map(str, MASK)) in out) == (code == 0)
    assert ("bottom" in out) == (code == 1)


@pytest.mark.parametrize("delimiter", [";", "tab", " "])
def test_learn_from_a_text_with_another_delimiter(capsys, tmp_path, examples, delimiter):
    path = write_csv(tmp_path / "data.txt", *examples, "a,b,c,d,e,f,label")
    path.write_text(path.read_text().replace(",", "\t" if delimiter == "tab" else delimiter))
    learn = ["parity", "learn", path, "--epsilon", EPSILON]
    assert "delimiter must be given" in fails(capsys, *learn)
    result = released(capsys, *learn, "--delimiter", delimiter, "--label", "label")
    assert result["mask"] == "".join(map(str, MASK))


def test_learn_from_the_standard_input_and_from_gzip(capsys, tmp_path, examples, monkeypatch):
    path = write_csv(tmp_path / "data.csv", *examples)
    with gzip.open(tmp_path / "data.csv.gz", "wb") as handle:
        handle.write(path.read_bytes())
    learn = ["parity", "learn", tmp_path / "data.csv.gz", "--epsilon", EPSILON]
    assert released(capsys, *learn)["mask"] == "".join(map(str, MASK))
    source = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr("sys.stdin", source)
    # Nothing released leaves nothing to read again.
    assert main(["parity", "learn", "-", "--epsilon", "50", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mask"] == "".join(map(str, MASK))


@pytest.mark.parametrize("header", ["", "a;b\n"])
def test_another_delimiter_is_guessed(capsys, tmp_path, header):
    path = tmp_path / "data.csv"
    path.write_text(f"{header}1;0\n0;1\n")
    line = fails(capsys, "parity", "learn", path, "--epsilon", "1")
    assert "did you mean --delimiter ';'?" in line
    rule = ["--epsilon", "1", "--delimiter", ";", "--labels", path]
    assert "must not go with a .npz file" in fails(capsys, "parity", "learn", "x.npz", *rule)


def test_transfer(capsys, npz, tmp_path, examples):
    rng = np.random.default_rng(2)
    X = np.repeat(rng.integers(2, size=(4_000, D), dtype=np.uint8), 2, axis=0)
    agents = tmp_path / "agents.npz"
    np.savez(agents, X=X, y=(X @ MASK % 2).astype(np.uint8))
    arguments = ["--agents", agents, "--epsilon", EPSILON, "--agents-epsilon", "4"]
    result = released(capsys, "parity", "transfer", npz, *arguments, "--alpha", ".1")
    assert result["mask"] == "".join(map(str, MASK))
    low, high = result["interval"]
    assert low <= result["target_error"] <= high
    assert abs(result["target_error"]) < 0.1
    assert result["agents_record"]["epsilon"] == 4


def shown_budget(capsys, *argv):
    assert main(["budget", *map(str, argv), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_budget_is_made_and_shown(capsys, tmp_path):
    path = tmp_path / "ledger"
    assert "FILE" in fails(capsys, "budget")
    assert "epsilon" in fails(capsys, "budget", path)
    made = shown_budget(capsys, path, "--epsilon", "20", "--delta", "1e-6")
    assert made["limit"] == {"epsilon": 20, "delta": 1e-6}
    assert made == shown_budget(capsys, path)
    assert "20.0" in fails(capsys, "budget", path, "--epsilon", "30")
    assert main(["budget", str(path)]) == 0
    out = capsys.readouterr().out
    assert "remaining" in out
    assert "releases" in out


def test_learn_and_transfer_spend_from_a_budget(capsys, npz, tmp_path):
    path = tmp_path / "ledger"
    shown_budget(capsys, path, "--epsilon", "20")
    common = [npz, "--epsilon", "8", "--budget", path]
    transfer = ["--agents", npz, "--agents-epsilon", "4", "--alpha", ".2"]
    for command in (["learn", *common], ["transfer", *common, *transfer]):
        assert main(["parity", *map(str, command)]) in (0, 1)
    capsys.readouterr()
    found = shown_budget(capsys, path)
    assert found["spent"]["epsilon"] == 16
    assert [entry["state"] for entry in found["records"]] == ["committed"] * 2
    line = fails(capsys, "parity", "learn", *common, code=3)
    assert all(number in line for number in ("16.0", "20.0", "8.0"))
    assert shown_budget(capsys, path) == found


def test_a_command_that_fails_spends_nothing(capsys, npz, tmp_path):
    path = tmp_path / "ledger"
    assert "epsilon" in fails(capsys, "parity", "learn", npz, "--epsilon", "1", "--budget", path)
    shown_budget(capsys, path, "--epsilon", "20")
    missing = ["parity", "learn", tmp_path / "none.npz", "--epsilon", "1", "--budget", path]
    fails(capsys, *missing)
    fails(capsys, "parity", "learn", npz, "--epsilon", "-1", "--budget", path)
    relation = ["--neighbors", "add_remove"]
    assert "replace_one" in fails(
        capsys, "parity", "learn", npz, "--epsilon", "1", "--budget", path, *relation
    )
    assert shown_budget(capsys, path)["records"] == []


@pytest.mark.parametrize("header", [None, "a,b,c,d,e,f,label"])
@pytest.mark.parametrize("ending", ["", "\n\n", " \n"])
def test_csv_is_read_exactly(tmp_path, examples, header, ending):
    X, y = examples
    path = write_csv(tmp_path / "data.csv", X, y, header)
    path.write_text(path.read_text() + ending)
    read = files.read_examples(path)
    np.testing.assert_array_equal(read.X, X)
    np.testing.assert_array_equal(read.y, y)


def test_csv_in_chunks_and_other_spellings(tmp_path, examples, monkeypatch):
    X, y = examples
    path = write_csv(tmp_path / "data.csv", X, y, "a,b,c,d,e,f,label")
    monkeypatch.setattr(files, "_CHUNK_VALUES", 7 * (D + 1))
    np.testing.assert_array_equal(files.read_examples(path, label="b").y, X[:, 1])
    path.write_text('\ufeff"a","y"\r\n1.0, 0\r\n"0",1e0\r\n', encoding="utf-8")
    read = files.read_examples(path, label="a")
    np.testing.assert_array_equal(read.X, [[0], [1]])
    np.testing.assert_array_equal(read.y, [1, 0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad.csv is empty"),
        ("\n1,0\n", "empty line"),
        ("a,b\n", "at least one row"),
        ("1\n0\n", "a label column"),
        ("1,0\n0,1,1\n", "line 2 .* must have 2 values, 3 found"),
        ("1,0\n0,nan\n", "line 2, column 2 .* must be 0 or 1$"),
        ("a,b\n1,0\n\n2,1\n", "line 4, column 1 .* must be 0 or 1$"),
        ("1,0\n1,inf\n", "line 2, column 2 .* must be 0 or 1$"),
        ("1,0\n1,\n", "line 2, column 2 .* must be 0 or 1$"),
        ("1,0\n1,x\n", "line 2, column 2 .* must be 0 or 1$"),
        ("1,x\n1,0\n", "all names or all 0 and 1$"),
        ("1,0\n0.5,1\n", "line 2, column 1 .* must be 0 or 1$"),
        ("1,0\n# 1,0\n", "line 2, column 1 .* must be 0 or 1$"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(HdpFastError, match=message):
        files.read_examples(path)


def test_csv_that_is_no_text(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ParameterError, match="UTF-8"):
        files.read_examples(path)


def test_unknown_and_missing_files(capsys, tmp_path, npz):
    learn = ["parity", "learn"]
    assert "must end in" in fails(capsys, *learn, tmp_path / "data.dat", "--epsilon", "1")
    for suffix in ("npy", "npz", "csv"):
        path = tmp_path / f"missing.{suffix}"
        labels = ["--labels", npz] if suffix == "npy" else []
        line = fails(capsys, *learn, path, *labels, "--epsilon", "1")
        assert "No such file" in line
        assert str(path) in line
    (tmp_path / "folder.csv").mkdir()
    assert "directory" in fails(capsys, *learn, tmp_path / "folder.csv", "--epsilon", "1")
    assert "label" in fails(capsys, *learn, npz, "--label", "a", "--epsilon", "1")
    both = ["--labels", npz, "--label", "a"]
    assert "labels" in fails(capsys, *learn, npz, *both, "--epsilon", "1")


def test_pickles_are_never_loaded(capsys, tmp_path):
    # A pickle that would leave a file behind if it were ever loaded.
    trace = tmp_path / "trace"
    path = tmp_path / "evil.npy"
    path.write_bytes(b"cposix\nmkdir\n(V" + os.fsencode(trace) + b"\ntR.")
    for name in ("evil.npy", "evil.npz"):
        (tmp_path / name).write_bytes(path.read_bytes())
        line = fails(capsys, "parity", "learn", tmp_path / name, "--epsilon", "1")
        assert "pickled objects are never loaded" in line
    np.savez(tmp_path / "objects.npz", X=np.array([[None]]), y=np.array([1]))
    line = fails(capsys, "parity", "learn", tmp_path / "objects.npz", "--epsilon", "1")
    assert "can't read X" in line
    assert not trace.exists()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": [[1]]}, "must hold X and y"),
        ({"X": [[1]]}, "labels must be given"),
        ({"X": [1], "y": [1]}, "2 dimensions"),
        ({"X": [[1], [0]], "y": [1]}, r"shape \(2,\)"),
        ({"X": [[1]], "y": [[1]]}, r"shape \(1,\)"),
        ({"X": [[np.nan]], "y": [1]}, "only 0 and 1, but"),
        ({"X": [[0.5]], "y": [1]}, "only 0 and 1, but"),
        ({"X": [["1"]], "y": [1]}, "only 0 and 1, got dtype"),
        ({"X_packed": [[1]], "ncols": 1, "y": [1]}, "must be uint8"),
        ({"X_packed": np.ones((1, 1), np.uint8), "ncols": [1, 2], "y": [1]}, "one integer"),
        ({"X_packed": np.ones((1, 1), np.uint8), "ncols": 100, "y": [1]}, None),
        ({"X_packed": np.ones((1, 1), np.uint8), "ncols": -1, "y": [1]}, None),
    ],
)
def test_bad_npz(tmp_path, arrays, message):
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)
    with pytest.raises(HdpFastError, match=message):
        files.read_examples(path)


def test_truncated_numpy_files(tmp_path, npz):
    content = npz.read_bytes()
    for cut in (0, 3, 100, len(content) // 2, len(content) - 5):
        npz.write_bytes(content[:cut])
        with pytest.raises(ParameterError):
            files.read_examples(npz)
    np.save(tmp_path / "X.npy", np.ones((50, 50)))
    content = (tmp_path / "X.npy").read_bytes()
    for cut in (0, 5, 60, len(content) - 1):
        (tmp_path / "X.npy").write_bytes(content[:cut])
        with pytest.raises(ParameterError):
            files.read_examples(tmp_path / "X.npy", labels=tmp_path / "X.npy")
    # An archive under the name of an array, and the reverse.
    np.savez(tmp_path / "other.npz", X=[[1]])
    (tmp_path / "other.npz").rename(tmp_path / "other.npy")
    with pytest.raises(ParameterError, match="what its name says"):
        files.read_examples(tmp_path / "other.npy")


def test_labels_of_one_column_only(tmp_path, npz, examples):
    np.save(tmp_path / "y.npy", np.ones((400, 2), dtype=int))
    with pytest.raises(ShapeError, match="one column"):
        files.read_examples(npz, labels=tmp_path / "y.npy")
    (tmp_path / "y.csv").write_text("y\n" + "1\n" * 400)
    assert files.read_examples(npz, labels=tmp_path / "y.csv").y.sum() == 400
    with pytest.raises(ParameterError, match="must end in"):
        files.read_examples(npz, labels=tmp_path / "y.txt")


@pytest.mark.parametrize("value", [2, -1])
def test_integers_other_than_0_and_1(capsys, tmp_path, examples, value):
    X, y = examples[0].astype(int), examples[1].astype(int)
    path = tmp_path / "data.npz"
    for damaged in (X, y):
        keep, damaged.flat[5] = damaged.flat[5], value
        np.savez(path, X=X, y=y)
        line = fails(capsys, "parity", "learn", path, "--epsilon", "1")
        assert "0" in line
        assert "1" in line
        damaged.flat[5] = keep


def test_output_is_checked_before_the_run(capsys, npz, tmp_path):
    learn = ["parity", "learn", npz, "--epsilon", EPSILON, "--output"]
    assert "existing directory" in fails(capsys, *learn, tmp_path / "no" / "result.json")
    assert "regular file" in fails(capsys, *learn, tmp_path)
    assert "regular file" in fails(capsys, *learn, os.devnull)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    files.write_atomically(path, b"old")

    def full_disk(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(ParameterError, match="No space left"):
        files.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    files.write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_interrupt(capsys, monkeypatch):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hdp_fast.parity.plan", interrupted)
    assert main(["parity", "plan", "--d", "3", "--alpha", ".1", "--epsilon", "1"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def redirected(how, *argv):
    """The exit code and the error stream of a run whose standard streams are redirected."""
    command = ["sh", "-c", f'exec "$@" {how}', "sh", sys.executable, "-m", "hdp_fast"]
    run = subprocess.run(
        [*command, *map(str, argv)], capture_output=True, text=True, check=False, timeout=60
    )
    return run.returncode, run.stderr


FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
PLAN = ("parity", "plan", "--d", "9", "--alpha", ".1", "--epsilon", "1")


@pytest.mark.thorough(cases=2)
@FULL
@pytest.mark.parametrize("argv", [("--help",), PLAN, (*PLAN, "--json"), ("demo", "--help")])
def test_a_full_disk_under_the_standard_output_is_one_line(argv):
    code, error = redirected(">/dev/full", *argv)
    assert (code, error.count("\n")) == (2, 1)
    assert "No space left on device" in error


@pytest.mark.thorough(cases=1)
@FULL
@pytest.mark.parametrize("how", [">/dev/full", ">&-"])
def test_a_result_that_cannot_be_printed_is_kept(npz, tmp_path, how):
    output = tmp_path / "result.json"
    learn = ("parity", "learn", npz, "--epsilon", EPSILON, "--quiet")
    code, error = redirected(how, *learn, "--output", output)
    assert (code, error.count("\n")) == (2, 1)
    assert error.endswith(f"; the result is in {output}\n")
    assert json.loads(output.read_text())["record"]["epsilon"] == float(EPSILON)


@FULL
def test_a_result_that_is_lost_is_said_to_be_paid_for(npz):
    code, error = redirected(">/dev/full", "parity", "learn", npz, "--epsilon", EPSILON, "--quiet")
    assert (code, error.count("\n")) == (2, 1)
    assert "No space left on device; the result has been paid for and is lost" in error


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("argv", [PLAN, ("bench", "--size", "1"), ("budget", "none")])
def test_nothing_runs_where_nothing_can_be_printed(argv):
    code, error = redirected(">&-", *argv)
    assert (code, error.count("\n")) == (2, 1)
    assert "the standard output is closed" in error


def test_nothing_is_spent_where_nothing_can_be_printed(capsys, npz, tmp_path):
    ledger = tmp_path / "ledger"
    shown_budget(capsys, ledger, "--epsilon", "20")
    learn = ("parity", "learn", npz, "--epsilon", "1", "--budget", ledger)
    assert redirected(">&-", *learn)[0] == 2
    assert shown_budget(capsys, ledger)["records"] == []


@pytest.mark.thorough(cases=2)
@FULL
@pytest.mark.parametrize("how", ["2>&-", "2>/dev/full", ">&- 2>&-", ">/dev/full 2>/dev/full"])
def test_the_exit_code_needs_no_error_stream(how):
    code, error = redirected(how, "parity", "plan", "--d", "x")
    assert (code, error) == (2, "")


def test_whoever_has_read_enough_ends_it_in_silence():
    assert redirected("| head -0; exit 0", *PLAN) == (0, "")


@pytest.mark.thorough(beside="test_whoever_has_read_enough_ends_it_in_silence")
def test_a_closed_input_is_one_line(tmp_path):
    question = tmp_path / "question.json"
    bounds = ("--low", "0", "--high", "1")
    ask = ("local", "question", "mean", "pay", *bounds, "--epsilon", "1", "--output", question)
    assert redirected("", *ask) == (0, "")
    for verb in ("randomize", "collect"):
        code, error = redirected("<&-", "local", verb, "--question", question)
        assert (code, error.count("\n")) == (2, 1)
        assert "the standard input is closed" in error


@pytest.mark.thorough(beside="test_whoever_has_read_enough_ends_it_in_silence")
def test_a_result_is_printed_where_its_letters_are_missing(capsys, tmp_path, monkeypatch):
    path = tmp_path / "public.csv"
    path.write_text("gr\u00f6\u00dfe,y\n" + "1,a\n2,b\n" * 100, encoding="utf-8")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    argv = ("local", "frequency", path, "--column", "y", "--categories", "a,\u00df")
    assert redirected("", *argv, "--epsilon", "1") == (0, "")


@pytest.mark.thorough(beside="test_medians_take_turns")
def test_bench_prints_ratios(capsys):
    assert main(["bench", "--size", "1", "70"]) == 0
    out = capsys.readouterr().out
    assert "rank, numpy" in out
    assert main(["bench", "--size", "64", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["size"] == 64
    assert all(seconds > 0 for seconds in row["seconds"].values())
    assert "size must be" in fails(capsys, "bench", "--size", "0")


def test_medians_take_turns():
    order = []
    actions = {"a": lambda: order.append("a"), "b": lambda: (order.append("b"), time.sleep(0.01))}
    seconds = bench.medians(actions, repeats=2)
    assert order == ["a", "b"] * 3
    assert seconds["a"] < 0.01 <= seconds["b"]
    order.clear()
    bench.medians(actions, repeats=100, seconds=0)
    assert order == ["a", "b"] * 2


def test_people_read_short_numbers_and_pipelines_all_digits(capsys):
    summary = {
        "released": False,
        "promise": "noted",
        "n": 12345,
        "share": 1 / 3,
        "limit": {"epsilon": 2.0, "delta": None},
        "shares": {"0": 0.25, "always 1": 0.75},
        "interval": [0.0, 2 / 3],
        "record": {"mechanism": "m", "epsilon": 1.0, "delta": 1e-6, "numerics": "exact"}
        | {"neighbors": "local", "rng": "operating system entropy", "version": "x"}
        | {"source": "s", "noise": "n"},
    }
    show(summary, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "released  no",
        "n         12,345",
        "share     0.333333",
        "limit     epsilon = 2",
        "shares    0: 0.25, always 1: 0.75",
        "interval  [0, 0.666667]",
        "record    epsilon = 1, delta = 1e-06, attacker's advantage at most 0.463; "
        "neighbors local, numerics exact, rng operating system entropy; m",
    ]
    show(summary, as_json=True)
    assert json.loads(capsys.readouterr().out) == summary


def test_a_plan_says_what_it_promises(capsys):
    assert main(["parity", "plan", "--d", "12", "--alpha", ".1", "--epsilon", "1"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    promised = "344 records: an error of at most 0.1, missed with probability 0.05"
    assert first.split(maxsplit=1) == ["promise", promised]


def test_demo_learns_its_secret_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--seed", "3"]) == 0
    text = capsys.readouterr().out
    assert "learned: 0 bits differ from the secret" in text
    low, high = text.split("private answers: ")[1].split("\n")[0].split(" to ")
    assert float(low) < 0.02 < float(high) < 0.1
    assert list(tmp_path.iterdir()) == []
    assert main(["demo", "--seed", "-1"]) == 2
    assert "--seed = -1" in capsys.readouterr().err
