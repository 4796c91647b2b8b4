"""What mkdocs does beside its own work.

Formulas become MathML, a formula that would be shown as source code and thin pages are refused, and
files of the repository that a page includes have their links turned towards the site. The page of a
module in the reference begins with a table of its names, and each of its classes has its own page.
"""

import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

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
REFERENCE = re.compile(r"^reference/(\w+)\.md$")
MODULE = re.compile(r"^::: (hdp_fast\.\w+)\n    options:\n", re.MULTILINE)
# A search shows guides before it shows classes.
CLASS = """---
search:
  boost: 0.4
---

::: {path}
    options:
      heading_level: 1
"""


def public_parts(module: str) -> tuple[list[str], list[str]]:
    """The public names of a module: classes, which have pages of their own, and all others."""
    face = importlib.import_module(module)
    names = sorted(face.__all__, key=str.lower)
    classes = [name for name in names if inspect.isclass(getattr(face, name))]
    return classes, [name for name in names if name not in classes]


def on_config(config: Any) -> Any:
    """Puts the pages of classes beneath those of their modules, and takes the two addresses.

    These stand in pyproject.toml, and are taken once they are no placeholders.
    """
    config.nav = _unfold(config.nav)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, url in (("site_url", "Documentation"), ("repo_url", "Repository")):
        if ".invalid" not in project["urls"][url]:
            config[name] = project["urls"][url]
    return config


def _unfold(entry: Any) -> Any:
    if isinstance(entry, list):
        return [_unfold(part) for part in entry]
    if isinstance(entry, dict):
        return {title: _unfold(part) for title, part in entry.items()}
    found = REFERENCE.match(entry)
    if not found or found[1] == "index":
        return entry
    classes, _ = public_parts(f"hdp_fast.{found[1]}")
    pages = [{name: f"reference/{found[1]}/{name}.md"} for name in classes]
    return {f"hdp_fast.{found[1]}": [entry, *pages]} if pages else {f"hdp_fast.{found[1]}": entry}


def on_files(files: Any, config: Any) -> Any:
    """Makes the page of each class."""
    for source in [file.src_uri for file in files]:
        found = REFERENCE.match(source)
        if found and found[1] != "index":
            module = f"hdp_fast.{found[1]}"
            for name in public_parts(module)[0]:
                text = CLASS.format(path=f"{module}.{name}")
                place = f"reference/{found[1]}/{name}.md"
                files.append(File.generated(config, place, content=text))
    return files


def list_names(module: str) -> str:
    """A table of the public names of a module, each with the first line of its docstring."""
    face, rows = importlib.import_module(module), ["| name | |", "| --- | --- |"]
    for name in sorted(face.__all__, key=str.lower):
        part = getattr(face, name)
        text = inspect.getdoc(part) if callable(part) else None
        if text:
            rows.append(f"| [`{name}`][{module}.{name}] | {text.splitlines()[0]} |")
    return "\n".join(rows)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts in the files of the repository's root that a page names, with links that lead on.

    The page of a module gets the table of its names, and keeps those that have no own page.
    """
    up = "../" * page.file.src_uri.count("/")
    if REFERENCE.match(page.file.src_uri):
        markdown = MODULE.sub(_open_module, markdown)

    def include(match: re.Match[str]) -> str:
        return (ROOT / match[1]).read_text(encoding="utf-8").replace("](docs/", f"]({up}")

    return INCLUDED.sub(include, markdown)


def _open_module(match: re.Match[str]) -> str:
    others = ", ".join(public_parts(match[1])[1])
    return f"{list_names(match[1])}\n\n{match[0]}      members: [{others}]\n"


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
