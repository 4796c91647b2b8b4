"""Opens every page of the built site in headless Chromium, as a reader would, wide and narrow.

python docs/tools/browse.py [SITE] [--screenshots build/screenshots]

It fails at a message of the console, a request that leaves the folder, a link or an anchor inside
the site that leads nowhere, a page wider than a narrow screen, a search that does not find the page
for what a stranger types, and where the sliders of a page show other numbers than the package
computes. It needs the extra `browse` and Chromium (Debian: apt-get install chromium).
"""

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlparse

import tabulate_sliders as sliders
from playwright.sync_api import Browser, TimeoutError, sync_playwright

WIDE, NARROW = (1280, 900), (390, 844)
# What a stranger types, and the page that must be among the first results.
SEARCHES = {
    "kappa": "reference/weights/DenseWeights.html",
    "coef_": "guides/scikit_learn.html",
    "docker": "start/install.html",
    "feature importance": "guides/what_a_model_says.html",
    "Spark": "guides/larger_than_memory.html",
    "phone": "guides/respondents.html",
}
FIRST_RESULTS = 5
SLIDES = (
    {"epsilon": 5, "people": 8, "base_rate": 4},
    {"epsilon": 0, "people": 0, "base_rate": 0},
    {"epsilon": 11, "people": 16, "base_rate": 7},
    {"epsilon": 3, "people": 12, "base_rate": 2},
)
LINKS = "Array.from(document.querySelectorAll('a[href]'), link => link.href)"
ANCHORS = "Array.from(document.querySelectorAll('[id]'), part => part.id)"
OVERFLOW = "document.scrollingElement.scrollWidth - window.innerWidth"


class Reader:
    """Opens pages and keeps what went wrong."""

    def __init__(self, browser: Browser, site: Path, screenshots: Path):
        self.site, self.screenshots, self.problems = site, screenshots, list[str]()
        self.anchors, self.links = dict[Path, set[str]](), list[tuple[Path, Path, str]]()
        self.page = browser.new_page()
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self._note(f"error: {error}"))
        self.page.on("request", self._watch)

    def read(self, path: Path) -> None:
        """Opens a page on both screens and keeps its links, anchors and pictures."""
        self.path = path
        for name, (width, height) in (("wide", WIDE), ("narrow", NARROW)):
            self.page.set_viewport_size({"width": width, "height": height})
            self.page.goto(path.as_uri())
            picture = self.screenshots / name / path.relative_to(self.site).with_suffix(".png")
            self.page.screenshot(path=picture)
            if self.page.evaluate(OVERFLOW) > 1:
                self._note(f"wider than {width} pixels")
        self.anchors[path] = {"", "__top", *self.page.evaluate(ANCHORS)}
        for link in self.page.evaluate(LINKS):
            address, anchor = urldefrag(link)
            if urlparse(address).scheme == "file":
                self.links.append((path, Path(unquote(urlparse(address).path)), unquote(anchor)))

    def check_links(self) -> None:
        """Follows the links between pages, once all of them are known."""
        for source, target, anchor in self.links:
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                self.problems.append(f"{source}: leads to {target}, which is not there")
            elif target in self.anchors and anchor not in self.anchors[target]:
                self.problems.append(f"{source}: {target} has no #{anchor}")

    def search(self, word: str, wanted: str) -> None:
        """Asks the site's own search for a word, whose page must be among the first results."""
        self.path = self.site / "index.html"
        self.page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
        self.page.goto(self.path.as_uri())
        self.page.click("input.md-search__input")
        self.page.keyboard.type(word)
        try:
            self.page.wait_for_selector(".md-search-result__item", timeout=120_000)
        except TimeoutError:
            self._note(f"a search for {word!r} finds nothing")
            return
        self.page.screenshot(path=self.screenshots / "search.png")
        results = self.page.locator(".md-search-result__item")
        pages = [results.nth(i).locator("a").first.get_attribute("href") or ""
                 for i in range(min(FIRST_RESULTS, results.count()))]  # fmt: skip
        if not any(f"/{wanted}" in page.partition("?")[0] for page in pages):
            self._note(f"a search for {word!r} finds {pages}, but not {wanted}")

    def slide(self, at: dict[str, int]) -> None:
        """Moves the sliders of a page, and compares what it says with the package's numbers."""
        self.path = self.site / "start" / "sliders.html"
        self.page.goto(self.path.as_uri())
        for name, place in at.items():
            self.page.locator(f"#{name}").fill(str(place))
        epsilon, people = sliders.EPSILONS[at["epsilon"]], sliders.PEOPLE[at["people"]]
        rate = sliders.BASE_RATES[at["base_rate"]]
        low, high = sliders.interval(people, epsilon, rate)
        for part, words in (
            (
                "share",
                f"between {100 * low:.1f} % and {100 * high:.1f} % say yes".replace(".0 ", " "),
            ),
            ("person", f"probability {sliders.truth(epsilon):.3f}"),
        ):
            shown = self.page.locator(f"#{part}").inner_text()
            if words not in shown:
                self._note(f"at {at} it shows {shown!r}, not {words!r}")
        self.page.screenshot(path=self.screenshots / "sliders.png", full_page=True)

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self._note(f"console: {message.text}")

    def _watch(self, request: Any) -> None:
        if urlparse(request.url).scheme not in ("file", "data", "blob"):
            self._note(f"asks for {request.url}")

    def _note(self, words: str) -> None:
        self.problems.append(f"{self.path}: {words}")


def main(site: Path, screenshots: Path) -> int:
    """Reads the whole site and says what is wrong with it."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        print("error: no Chromium: apt-get install chromium", file=sys.stderr)
        return 2
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        reader = Reader(browser, site, screenshots)
        for path in pages:
            reader.read(path)
        reader.check_links()
        for word, wanted in SEARCHES.items():
            reader.search(word, wanted)
        for at in SLIDES:
            reader.slide(at)
    for problem in sorted(set(reader.problems)):
        print(problem)
    links = len(reader.links)
    print(f"{len(pages)} pages, {links} links, {len(SEARCHES)} searches, "
          f"{len(set(reader.problems))} problems; pictures in {screenshots}")  # fmt: skip
    return 1 if reader.problems else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", default="site", type=Path)
    parser.add_argument("--screenshots", default="build/screenshots", type=Path)
    options = parser.parse_args()
    sys.exit(main(options.site.resolve(strict=True), options.screenshots))
