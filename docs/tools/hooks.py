"""What mkdocs does beside its own work.

Formulas become MathML, a formula that would be shown as source code and thin pages are refused, and
files of the repository that a page includes have their links turned towards the site.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

# A page that proves or promises something must say it in so many words at least.
FEWEST_WORDS = 150
SUBSTANTIAL = ("guarantees/", "theory/")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
ROOT = Path(__file__).resolve().parents[2]
INCLUDED = re.compile(r'^--8<-- "(\w+\.md)"$', re.MULTILINE)
TAG = re.compile(r"<[^>]+>")
CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
RAW_FORMULA = re.compile(r"\\[()\[\]]")
ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}


def on_config(config: Any, **_: Any) -> Any:
    """Takes the two addresses from pyproject.toml, once they are no placeholders."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, url in (("site_url", "Documentation"), ("repo_url", "Repository")):
        if ".invalid" not in project["urls"][url]:
            config[name] = project["urls"][url]
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts in the files of the repository's root that a page names, with links that lead on."""
    up = "../" * page.file.src_uri.count("/")

    def include(match: re.Match[str]) -> str:
        return (ROOT / match[1]).read_text(encoding="utf-8").replace("](docs/", f"]({up}")

    return INCLUDED.sub(include, markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Refuses a thin page and turns every formula of a page into MathML, which browsers draw."""
    words = len(TAG.sub(" ", html).split())
    if page.file.src_uri.startswith(SUBSTANTIAL) and words < FEWEST_WORDS:
        raise PluginError(f"{page.file.src_uri} has {words} words, but needs {FEWEST_WORDS}")
    drawn = FORMULA.sub(_draw, html)
    raw = RAW_FORMULA.search(TAG.sub(" ", CODE.sub(" ", drawn)))
    if raw:
        place = raw.string[max(0, raw.start() - 30) : raw.end() + 30].strip()
        raise PluginError(f"{page.file.src_uri} shows the source of a formula: {place}")
    return drawn


def _draw(match: re.Match[str]) -> str:
    latex = match[3]
    for entity, sign in ENTITIES.items():
        latex = latex.replace(entity, sign)
    return convert(latex.strip(), display="inline" if match[2] == "(" else "block")
