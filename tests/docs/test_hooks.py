"""What the site's builder refuses and draws."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

mkdocs = pytest.importorskip("mkdocs")
from mkdocs.exceptions import PluginError  # noqa: E402

HOOKS = Path(__file__).resolve().parents[2] / "docs/tools/hooks.py"


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("hooks", HOOKS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(name="guides/noise.md"):
    return SimpleNamespace(file=SimpleNamespace(src_uri=name))


def test_on_page_content_draws_formulas(hooks):
    html = hooks.on_page_content(r'<p><span class="arithmatex">\(x^2\)</span></p>', page())
    assert "<math" in html
    assert "x^2" not in html


@pytest.mark.parametrize("raw", [r"\(x^2\)", r"\[ x \]", r"\)"])
def test_on_page_content_refuses_the_source_of_a_formula(hooks, raw):
    with pytest.raises(PluginError, match=r"guides/noise\.md shows the source of a formula"):
        hooks.on_page_content(f"<p>It is {raw} or less.</p>", page())
    assert raw in hooks.on_page_content(f"<pre><code>re.compile({raw})</code></pre>", page())


def test_on_page_content_refuses_thin_pages(hooks):
    with pytest.raises(PluginError, match=r"thin\.md has 2 words"):
        hooks.on_page_content("<p>Two words.</p>", page("theory/thin.md"))
