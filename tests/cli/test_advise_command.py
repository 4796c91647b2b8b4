"""hdp-fast advise: a table or JSON, and one line for what is wrong."""

import json

import pytest

from hdp_fast import advise
from hdp_fast.cli import main

WORDS = ["advise", "--records", "40000", "--features", "48", "--agents", "6e4", "--epsilon", "1"]
ADVICE = advise(n=40_000, d=48, agents=60_000, epsilon=1.0)


def test_the_table_is_that_of_python(capsys):
    assert main(WORDS) == 0
    assert capsys.readouterr().out == repr(ADVICE) + "\n"


def test_every_option_is_an_argument(capsys):
    words = [
        *("advise", "--records", "900", "--features", "8", "--epsilon", "2", "--delta", "1e-5"),
        *("--agents", "700", "--agents-epsilon", "3", "--pool", "70", "--classes", "2", "--json"),
        *("--learner", "finite", "--size", "9", "--target", "same", "--source", "public"),
        *("--base-rate", ".3", "--best-error", ".1"),
    ]
    assert main(words) == 0
    sizes = json.loads(capsys.readouterr().out)["sizes"]
    assert sizes == {
        "n": 900, "d": 8, "epsilon": 2.0, "delta": 1e-5, "agents": 700, "agents_epsilon": 3.0,
        "pool": 70, "classes": 2, "learner": "finite", "size": 9, "target": "same",
        "source": "public", "base_rate": 0.3, "best_error": 0.1,
    }  # fmt: skip


def test_json_and_a_file_hold_the_same(capsys, tmp_path):
    path = tmp_path / "advice.json"
    assert main([*WORDS, "--json", "--output", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(path.read_text())
    assert main([*WORDS, "--output", str(path)]) == 2
    assert "--force replaces it" in capsys.readouterr().err


def test_nothing_of_use_is_a_note_and_fails_with_strict(capsys):
    words = ["advise", "--records", "5", "--features", "50", "--epsilon", ".1"]
    assert main(words) == 0
    assert "note: n = 5 and agents = 0, but no method keeps" in capsys.readouterr().err
    assert main([*words, "--strict"]) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--records", "0", "--features", "5", "--epsilon", "1"],
            "--records = 0, but there must be",
        ),
        (["--records", "9", "--features", "5"], "required: --epsilon"),
        (["--records", "9", "--features", "5", "--epsilon", "0"], "--epsilon = 0"),
        (["--records", "9", "--features", "5", "--epsilon", "1", "--target", "smae"], "'same'"),
        (["--records", "x", "--features", "5", "--epsilon", "1"], "--records"),
    ],
)
def test_a_bad_option_is_one_line(words, message, capsys):
    assert main(["advise", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
