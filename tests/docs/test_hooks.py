"""What the site's builder refuses and draws."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from scripts import loaded

mkdocs = pytest.importorskip("mkdocs")
from mkdocs.exceptions import PluginError  # noqa: E402

HOOKS = Path(__file__).resolve().parents[2] / "docs/tools/hooks.py"


@pytest.fixture(scope="module")
def hooks():
    with loaded(HOOKS) as module:
        yield module


def page(name="guides/noise.md"):
    return SimpleNamespace(file=SimpleNamespace(src_uri=name))


def test_the_page_of_a_module_begins_with_its_names_and_leaves_classes_to_their_pages(hooks):
    text = (
        "# hdp_fast.weights\n\n::: hdp_fast.weights\n    options:\n      show_root_heading: false\n"
    )
    markdown = hooks.on_page_markdown(text, page("reference/weights.md"))
    assert "| [`DenseWeights`][hdp_fast.weights.DenseWeights] | " in markdown
    assert markdown.index("[`project`]") < markdown.index("::: hdp_fast.weights")
    assert "      members: [project]\n" in markdown
    config = SimpleNamespace(nav=[{"Reference": ["reference/index.md", "reference/weights.md"]}])
    (reference,) = hooks.on_config(config).nav
    pages = ["reference/weights.md", {"DenseWeights": "reference/weights/DenseWeights.md"}]
    assert reference["Reference"] == ["reference/index.md", {"hdp_fast.weights": pages}]


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
