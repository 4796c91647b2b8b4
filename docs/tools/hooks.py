"""What mkdocs does beside its own work: formulas become MathML, and thin pages are refused."""

import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

# A page that proves or promises something must say it in so many words at least.
FEWEST_WORDS = 150
SUBSTANTIAL = ("guarantees/", "theory/")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
TAG = re.compile(r"<[^>]+>")
ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Refuses a thin page and turns every formula of a page into MathML, which browsers draw."""
    words = len(TAG.sub(" ", html).split())
    if page.file.src_uri.startswith(SUBSTANTIAL) and words < FEWEST_WORDS:
        raise PluginError(f"{page.file.src_uri} has {words} words, but needs {FEWEST_WORDS}")
    return FORMULA.sub(_draw, html)


def _draw(match: re.Match[str]) -> str:
    latex = match[3]
    for entity, sign in ENTITIES.items():
        latex = latex.replace(entity, sign)
    return convert(latex.strip(), display="inline" if match[2] == "(" else "block")
