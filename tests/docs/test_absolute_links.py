"""Links of the README as a package index shows them: each leads to a file at the tag."""

import re
from pathlib import Path

import pytest
from scripts import loaded

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "tools" / "absolute_links.py"
BASE, RAW = "https://example.org/blob/v1", "https://example.org/raw/v1"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs docs/")


@pytest.fixture(scope="module")
def links():
    with loaded(SCRIPT) as module:
        yield module


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/a.md)", f"[a]({BASE}/docs/a.md)"),
        ("[a](./LICENSE)", f"[a]({BASE}/LICENSE)"),
        (
            "![p](docs/p.svg) and [a](a.md#part)",
            f"![p]({RAW}/docs/p.svg) and [a]({BASE}/a.md#part)",
        ),
        ("[a](#part) [b](https://b.org/x) [c](mailto:c@d)", None),
        ("`[a](b.md)`", None),
        ("```python\nx = f[0](y)\n```\n", None),
        ("no link", None),
    ],
)
def test_relative_links_alone_become_absolute(links, text, expected):
    assert links.absolute(text, BASE) == (text if expected is None else expected)
    assert links.absolute(text, BASE + "/") == links.absolute(text, BASE)


def test_no_link_of_the_readme_stays_relative(links, capsys):
    assert links.main(BASE, [ROOT / "README.md"]) == 0
    text = capsys.readouterr().out
    addresses = re.findall(r"\]\(([^)\s]+)\)", text)
    assert addresses
    assert all(address.startswith("http") for address in addresses)
    for address in addresses:
        path = address.removeprefix(f"{BASE}/").removeprefix(f"{RAW}/").partition("#")[0]
        assert not address.startswith((BASE, RAW)) or (ROOT / path).exists()
    assert links.absolute(text, BASE) == text


def test_a_link_that_leads_nowhere_is_an_error(links, tmp_path, capsys):
    page = tmp_path / "README.md"
    page.write_text("[a](lost.md) [b](README.md)")
    assert links.main(BASE, [page]) == 2
    captured = capsys.readouterr()
    assert "lost.md" in captured.err
    assert not captured.out


def test_a_base_without_a_scheme_is_an_error(links, capsys):
    assert links.main("example.org", [ROOT / "README.md"]) == 2
    assert "https://" in capsys.readouterr().err
