"""Stored files of every format: each is read, and one of a later version is refused by its name."""

import json

import pytest
from stored_formats import FOLDER, FORMATS

EXPECTED = json.loads((FOLDER / "expected.json").read_text())

pytest.importorskip("joblib")

each = pytest.mark.parametrize("name", FORMATS)


@each
def test_a_stored_file_says_what_it_said_when_it_was_written(tmp_path, name):
    kind = FORMATS[name]
    shown = kind.show(kind.fetch(name, tmp_path))
    assert json.loads(json.dumps(shown, default=str)) == EXPECTED[name]


@each
def test_a_file_of_a_later_version_is_refused_in_one_line(tmp_path, name):
    kind = FORMATS[name]
    path = kind.fetch(name, tmp_path)
    kind.later(path)
    before = path.read_bytes()
    with pytest.raises(kind.error, match=kind.refusal) as caught:
        kind.show(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_every_stored_file_is_one_of_a_format():
    names = {path.name.split(".")[0] for path in FOLDER.iterdir()}
    assert names == {*FORMATS, "expected"}


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_a_stored_file_is_small(path):
    assert path.stat().st_size <= 16_000
