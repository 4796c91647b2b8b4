"""hdp-fast gf2: matrices in files of every format, and what is printed, written and refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import fails

from hdp_fast import gf2
from hdp_fast.cli import main
from hdp_fast.gf2 import BitMatrix


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(capsys, *argv, code=0):
    assert main(["gf2", *map(str, argv)]) == code
    return capsys.readouterr()


def drawn(m, d, seed=1):
    return np.random.default_rng(seed).integers(0, 2, (m, d), dtype=np.uint8)


def write(name, X):
    match Path(name).suffix:
        case ".npz":
            BitMatrix.from_dense(X).to_npz(name)
        case ".npy":
            np.save(name, X)
        case _:
            np.savetxt(name, X, fmt="%d", delimiter="\t" if name.endswith(".tsv") else ",")
    return name


def read(name):
    match Path(name).suffix:
        case ".npz":
            return BitMatrix.from_npz(name).to_dense()
        case ".npy":
            return np.load(name)
    return np.loadtxt(name, dtype=int, delimiter="\t" if name.endswith(".tsv") else ",", ndmin=2)


def test_gf2_reads_and_writes_every_format(capsys):
    X = drawn(5, 70)
    names = [write(f"X{ending}", X) for ending in (".npz", ".npy", ".csv", ".tsv")]
    np.savez("plain.npz", X=X, y=X[:, 0])
    ranks = json.loads(run(capsys, "rank", *names, "plain.npz", "--json").out)
    assert ranks == dict.fromkeys([*names, "plain.npz"], gf2.rank(X))
    for name in names:
        output = "product" + Path(name).suffix
        write("I.npz", np.eye(70, dtype=np.uint8))
        shown = run(capsys, "multiply", name, "I.npz", "--output", output)
        assert shown.out.split() == ["rows", "5", "columns", "70"]
        assert np.array_equal(read(output), X)


def test_gf2_multiplies_from_left_to_right_and_prints_without_an_output(capsys):
    A, B, C = drawn(3, 4), drawn(4, 5, 2), drawn(5, 2, 3)
    names = [write(f"{k}.csv", X) for k, X in enumerate((A, B, C))]
    expected = A.astype(int) @ B @ C % 2
    for options in ((), ("--output", "-")):
        printed = run(capsys, "multiply", *names, *options).out
        assert printed == "".join(",".join(map(str, row)) + "\n" for row in expected)
    answer = json.loads(run(capsys, "multiply", *names, "--json").out)
    assert answer == {"rows": 3, "columns": 2, "matrix": expected.tolist()}


def test_gf2_inverse_and_nullspace_are_those_of_python(capsys):
    square = np.triu(drawn(9, 9), 1) + np.eye(9, dtype=np.uint8)
    run(capsys, "inverse", write("A.npy", square), "--output", "B.npz")
    assert BitMatrix.from_npz("B.npz") == gf2.inverse(square)
    run(capsys, "nullspace", write("W.csv", drawn(4, 9)), "--output", "N.npz")
    assert BitMatrix.from_npz("N.npz") == gf2.nullspace(drawn(4, 9))
    run(capsys, "nullspace", "A.npy", "--output", "none.csv")
    assert Path("none.csv").read_text() == ""


def test_gf2_solve_tells_which_right_hand_sides_have_none(capsys):
    A = np.array([[1, 0], [0, 1], [1, 1]], np.uint8)
    write("A.csv", A)
    write("b.npy", np.array([1, 0, 1], np.uint8))
    shown = run(capsys, "solve", "A.csv", "b.npy")
    assert (shown.out, shown.err) == ("1\n0\n", "")
    write("B.npy", np.array([[1, 1], [0, 0], [1, 0]], np.uint8))
    shown = run(capsys, "solve", "A.csv", "B.npy", "--output", "X.csv")
    assert "1 of 2 columns of B have a solution" in shown.err
    assert np.array_equal(read("X.csv"), [[1, 0], [0, 0]])
    assert run(capsys, "solve", "A.csv", "B.npy", "--quiet", "--output", "Y.csv").err == ""
    write("none.npy", np.array([1, 0, 0], np.uint8))
    run(capsys, "solve", "A.csv", "none.npy", code=1)
    write("row.npy", np.array([[0, 1]], np.uint8))
    x = np.loadtxt(
        run(capsys, "solve", "A.csv", "row.npy", "--left").out.splitlines(), delimiter=","
    )
    assert np.array_equal(x @ A % 2, [0, 1])


def test_gf2_refuses_wrong_files_and_outputs_in_one_line(capsys):
    write("A.csv", drawn(3, 4))
    write("B.csv", drawn(3, 4))
    Path("words.csv").write_text("0,1\n1,x\n")
    write("singular.npy", np.zeros((3, 3), np.uint8))
    np.save("cube.npy", np.zeros((2, 2, 2), np.uint8))
    np.save("twos.npy", np.full((2, 2), 2))
    for argv, text in {
        ("rank", "no.npz"): "no.npz",
        ("rank", "words.csv"): "line 2, column 2 of words.csv must be 0 or 1",
        ("rank", "A.pdf"): "must end in",
        ("rank", "cube.npy"): "cube.npy must have 2 dimensions",
        ("rank", "twos.npy"): "twos.npy holds something else",
        ("multiply", "A.csv", "B.csv"): "4 columns on the left and 3 rows on the right",
        ("inverse", "A.csv"): "only a square matrix",
        ("inverse", "singular.npy"): "A is singular",
        ("solve", "A.csv", "singular.npy", "--left"): "b has 3 columns",
        ("nullspace", "A.csv", "--output", "N.pdf"): "--output = 'N.pdf'",
        ("nullspace", "A.csv", "--output", "B.csv"): "--force replaces it",
        ("rank", "singular.npy", "--delimiter", ";"): "delimiter",
    }.items():
        assert text in fails(capsys, "gf2", *argv)
    run(capsys, "nullspace", "A.csv", "--output", "B.csv", "--force")
    assert np.array_equal(read("B.csv"), gf2.nullspace(drawn(3, 4)).to_dense())
