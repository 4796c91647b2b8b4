"""Opens a report of hdp-fast hybrid in headless Chromium and compares it with its JSON.

python docs/tools/browse_report.py [--screenshots build/screenshots/report] [--figure FILE.png]

It makes tables, runs the command, and fails at a number on the page that is not that of the JSON, a
mark of a chart in another place, a chart without a name for a screen reader, a message of the
console, a request for another file, or a page wider than a narrow screen. `--figure` also draws
the page on which people answer beside the head of the report: docs/figures/report.png of the
README. It needs the extra `browse` and Chromium (Debian: apt-get install chromium).
"""

import argparse
import base64
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from hdp_fast.cli import main as hdp_fast

WIDE, NARROW = (1000, 900), (390, 844)
PHONE = Path(__file__).parents[1] / "figures" / "page_phone.png"
# What the figure shows of both pages, in pixels: each ends between two lines of text.
PHONE_WIDTH, PHONE_HEIGHT, REPORT_WIDTH, REPORT_HEIGHT = 375, 662, 780, 685
FRAMES = """<body style="margin:0;padding:16px;display:inline-flex;gap:24px;background:#fff">
{images}</body>"""
FRAME = """<div style="width:{width}px;height:{height}px;overflow:hidden;border:1px solid #bbb;
border-radius:{radius}px"><img src="data:image/png;base64,{data}" style="width:100%"></div>"""
OVERFLOW = "document.scrollingElement.scrollWidth - window.innerWidth"
EMBEDDED = "document.getElementById('summary').textContent"
MARKED = """Array.from(document.querySelectorAll('[data-key]'),
    part => [part.dataset.key, part.textContent])"""
# The centers of marks and the ends of lines on the screen, in the units of their chart.
PLACED = """Array.from(document.querySelectorAll('svg')).flatMap(svg =>
    Array.from(svg.querySelectorAll('circle[data-cx-key]'), mark => {
        const box = mark.getBoundingClientRect(), frame = svg.getBoundingClientRect();
        const unit = svg.viewBox.baseVal.width / frame.width;
        return {key: mark.dataset.cxKey, at: (box.x + box.width / 2 - frame.x) * unit,
                low: +svg.dataset.xLow, high: +svg.dataset.xHigh,
                start: +svg.dataset.xStart, length: +svg.dataset.xLength};
    }))"""
CHARTS = ("Intervals of the error", "Reliability diagram", "Columns that moved")
SCHEMA = {
    "format": "hdp_fast.schema",
    "version": 1,
    "label": {"column": "bought", "positive": ["yes"]},
    "columns": {
        "age": {"kind": "number", "bounds": [18, 90], "cuts": [30, 40, 50, 60]},
        "home": {"kind": "category", "values": ["own", "rent"]},
        "channel": {"kind": "category", "values": ["app", "phone", "shop"]},
    },
}
COMMAND = (
    "hybrid panel.csv town.csv --schema schema.json --epsilon 1 --delta 1e-6 --agents-epsilon 2 "
    "--report report.html --output model.json --quiet"
)


def write_tables(folder: Path) -> None:
    """Writes a panel that was found by an app, and the town around it."""
    for seed, (name, n) in enumerate((("panel", 20_000), ("town", 80_000))):
        rng, in_panel = np.random.default_rng(seed), name == "panel"
        age = np.clip(rng.normal(40 if in_panel else 50, 14, n), 18, 90).round().astype(int)
        home = rng.choice(["own", "rent"], n, p=[0.4, 0.6] if in_panel else [0.6, 0.4])
        channel = rng.choice(
            ["app", "phone", "shop"], n, p=[1, 0, 0] if in_panel else [0.5, 0.2, 0.3]
        )
        odds = 0.08 * (age - 45) + 1.5 * (home == "own") + (0.5 if in_panel else -1.0)
        bought = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
        rows = zip(age.tolist(), home.tolist(), channel.tolist(), bought.tolist(), strict=True)
        lines = ["age,home,channel,bought", *(",".join(map(str, row)) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "schema.json").write_text(json.dumps(SCHEMA))


def find(summary: Any, key: str) -> Any:
    """The entry of the JSON that a part of the page names."""
    for part in json.loads(key) if key.startswith("[") else key.split("."):
        summary = summary[int(part)] if isinstance(summary, list) else summary[part]
    return summary


def is_shown(entry: Any, text: str) -> bool:
    """Whether a text shows an entry, as far as its digits go."""
    if isinstance(entry, bool) or entry is None:
        return text == {True: "yes", False: "no", None: "none"}[entry]
    if isinstance(entry, list):
        return text == ", ".join(map(str, entry))
    if isinstance(entry, str):
        return text == entry
    number = float(text.replace(",", ""))
    if "e" in text or "." not in text:
        return abs(number - entry) <= 1e-5 * abs(entry)
    return abs(number - entry) <= 0.5000001 * 10.0 ** -len(text.split(".")[1])


def compare(summary: Any, marked: list[list[str]]) -> list[str]:
    """What the page shows otherwise than the JSON has it."""
    return [
        f"{key} is {find(summary, key)!r}, but the page shows {text}"
        for key, text in marked
        if not is_shown(find(summary, key), text)
    ]


def read(page: Page, path: Path, summary: Any, screenshots: Path) -> list[str]:
    """Opens the report as a reader would, wide, narrow and printed; returns the problems."""
    problems = list[str]()
    page.on("console", lambda message: problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    asked = list[str]()
    for name, (width, height) in (("wide", WIDE), ("narrow", NARROW), ("print", WIDE)):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(media="print" if name == "print" else "screen")
        page.goto(path.as_uri())
        page.screenshot(path=screenshots / f"{name}.png", full_page=True)
        if page.evaluate(OVERFLOW) > 0:
            problems.append(f"wider than {width} pixels")
    problems += [f"asks for {url}" for url in set(asked) - {path.as_uri()}]
    if json.loads(page.evaluate(EMBEDDED)) != summary:
        problems.append("the page holds another JSON than --output")
    marked = page.evaluate(MARKED)
    problems += compare(summary, marked)
    if not compare(summary, [["certificates.after.value", "0.999"]]):
        problems.append("a wrong number would not be seen")
    placed = page.evaluate(PLACED)
    for mark in placed:
        share = (find(summary, mark["key"]) - mark["low"]) / (mark["high"] - mark["low"])
        if abs(mark["start"] + share * mark["length"] - mark["at"]) > 1:
            problems.append(f"the mark of {mark['key']} stands in another place")
    for name in CHARTS:
        if page.get_by_role("img", name=name, exact=True).count() != 1:
            problems.append(f"no chart is called {name!r}")
    if len(marked) < 80 or len(placed) < 15:
        problems.append(f"only {len(marked)} numbers and {len(placed)} marks were compared")
    print(f"{len(marked)} numbers and {len(placed)} marks of the report compared with its JSON")
    return problems


def draw(page: Page, report: Path, figure: Path) -> None:
    """Draw the head of the page that people answer on, and that of the report, side by side."""
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": REPORT_WIDTH, "height": REPORT_HEIGHT})
    page.goto(report.as_uri())
    pictures = (
        (PHONE.read_bytes(), PHONE_WIDTH, PHONE_HEIGHT, 24),
        (page.screenshot(), REPORT_WIDTH, REPORT_HEIGHT, 4),
    )
    frames = [
        FRAME.format(
            width=width, height=height, radius=radius, data=base64.b64encode(data).decode()
        )
        for data, width, height, radius in pictures
    ]
    page.goto("about:blank")  # the report's own policy allows no pictures
    page.set_content(FRAMES.format(images="".join(frames)), wait_until="load")
    page.evaluate("Promise.all(Array.from(document.images, image => image.decode()))")
    page.locator("body").screenshot(path=figure)


def main(screenshots: Path, figure: Path | None) -> int:
    """Makes a report, reads it and says what is wrong with it."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        print("error: no Chromium: apt-get install chromium", file=sys.stderr)
        return 2
    screenshots.mkdir(parents=True, exist_ok=True)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as play:
        folder = Path(name)
        write_tables(folder)
        os.chdir(folder)
        try:
            code = hdp_fast(COMMAND.split())
        finally:
            os.chdir(before)
        if code:
            return code
        summary = json.loads((folder / "model.json").read_text())
        browser = play.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        problems = read(browser.new_page(), folder / "report.html", summary, screenshots)
        if figure:
            draw(browser.new_page(), folder / "report.html", figure)
        shutil.copy(folder / "report.html", screenshots / "report.html")
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems; pictures in {screenshots}")
    return 1 if problems else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--screenshots", default="build/screenshots/report", type=Path)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    sys.exit(main(options.screenshots.resolve(), options.figure and options.figure.resolve()))
