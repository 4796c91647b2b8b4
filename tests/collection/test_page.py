"""The files of the respondent's page, without a browser; `make browser` opens them in one."""

import json
import re
from html.parser import HTMLParser
from importlib import resources

import pytest

PAGE = resources.files("hdp_fast") / "collection" / "page"
HTML, SCRIPT, STYLE = (
    (PAGE / name).read_text("utf-8") for name in ("index.html", "page.js", "style.css")
)
TEXTS = json.loads((PAGE / "texts.json").read_text("utf-8"))
# What a policy that allows no inline code and nothing of other servers forbids.
MAKES_CODE = r"(inner|outer)HTML|AdjacentHTML|document\.write|eval\b|Function\(|srcdoc|import\("
LOADS = r"https?:|//[a-z]+\.|\burl\(|@import|wss?:"


class Reader(HTMLParser):
    """Notes the tags of a page and what stands in scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inline, self._in = [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._in = tag

    def handle_endtag(self, tag):
        self._in = ""

    def handle_data(self, text):
        if self._in in ("script", "style"):
            self.inline += text

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_html_has_no_inline_code_and_loads_nothing_of_others():
    page = Reader(HTML)
    assert page.inline.strip() == ""
    attributes = [name for _, each in page.tags for name in each]
    assert not [name for name in attributes if name == "style" or name.startswith("on")]
    sources = [each[name] for _, each in page.tags for name in ("src", "href") if name in each]
    assert sorted(sources) == ["data:,", "page.js", "style.css"]
    for text in (HTML, SCRIPT, STYLE):
        assert not re.search(LOADS, text)
    assert not re.search(MAKES_CODE, SCRIPT)
    assert not re.search(r"\bon\w+\s*:", SCRIPT)


def test_html_carries_the_policy_for_servers_that_send_none():
    (policy,) = [each["content"] for each in Reader(HTML).all("meta") if "http-equiv" in each]
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts == {
        "default-src": "'none'",
        "script-src": "'self' 'wasm-unsafe-eval'",
        "connect-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_html_tells_its_language_and_those_without_script_why_nothing_follows():
    page = Reader(HTML)
    assert page.all("html") == [{"lang": TEXTS["lang"]}]
    assert len(page.all("noscript")) == len(page.all("main")) == len(page.all("h1")) == 1
    (viewport,) = [each["content"] for each in page.all("meta") if each.get("name") == "viewport"]
    assert "maximum-scale" not in viewport
    assert "user-scalable" not in viewport


def test_every_id_that_the_script_looks_for_is_on_the_page():
    wanted = re.findall(r'getElementById\("([^"]+)"', SCRIPT)
    assert wanted
    assert set(wanted) <= {each.get("id") for _, each in Reader(HTML).tags}


def test_every_text_is_there_and_used():
    shown = r'(?:say|tell|button|offer|Stop|show|keepTrying)\(\s*(?:kept, )?"(\w+)"'
    assert set(re.findall(shown, SCRIPT)) <= set(TEXTS["texts"])
    words = set(re.findall(r"\w+", SCRIPT))
    assert set(TEXTS["texts"]) <= words
    assert not [text for text in TEXTS["texts"].values() if not text.strip() or "<" in text]
    blanks = {name for text in TEXTS["texts"].values() for name in re.findall(r"\{(\w+)\}", text)}
    assert blanks <= words


def test_classes_of_the_script_have_a_style():
    named = set(re.findall(r'class: "([a-z ]+)"', SCRIPT))
    classes = {name for names in named for name in names.split()} - {"hdp"}
    assert classes
    assert not [name for name in classes if f".{name}" not in STYLE]


def test_nothing_moves():
    assert not re.search(r"animation|transition|@keyframes|scroll-behavior", STYLE)


def colors(block):
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


def luminance(color):
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("is_dark", [False, True])
def test_texts_stand_out_from_what_is_behind_them(is_dark):
    light, dark = STYLE.split("@media (prefers-color-scheme: dark)")
    color = {**colors(light), **(colors(dark.split("}")[0]) if is_dark else {})}
    pairs = [(text, back) for text in ("text", "soft") for back in ("back", "panel")]
    pairs += [("wrong", "back"), ("on-strong", "strong"), ("strong", "back"), ("good", "panel")]
    assert not [pair for pair in pairs if contrast(*map(color.get, pair)) < 4.5]
    # What shows where a field is, and which one has the focus.
    assert contrast(color["line"], color["back"]) >= 3
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
