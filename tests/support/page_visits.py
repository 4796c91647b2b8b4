"""A server of the respondent's page with what a test chooses, and people with a browser each."""

import json
import os
import shutil
import signal
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from urllib.parse import urlencode

from hdp_fast import _core
from hdp_fast.collection import form_of
from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.local import Query

PAGE = resources.files("hdp_fast") / "collection" / "page"
KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "wasm": "application/wasm",
}
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; "
    "style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
SECRET, STUDY, TOKEN = bytes(range(32)), "town-2026", "0f" * 16
KEY = _core.ed25519_public(SECRET).hex()
SCHEMA = Schema(
    Label("bought", positive=("yes",)),
    {"age": Number(18, 90), "home": Category(("own", "rent")), "way": Category(tuple("abcdefg"))},
)
TEXTS = {"age": "How old are you?", "home": "Your home", "bought": "Did you buy?"}
FORM = json.loads(form_of(SCHEMA, features="numbers", texts=TEXTS))
MODEL = {"kind": "linear", "weights": [1.0] + [0.5] * 9, "bias": -1.0}


def ask(epsilon=1.0, query=None, **fields):
    """A question about the records of the form, with some fields otherwise."""
    query = Query.wrong(MODEL) if query is None else query
    question = {
        "format": "hdp_fast.question",
        "version": 2,
        "id": "town-1",
        "kind": "mean",
        "study": STUDY,
        "asker": "City of Example",
        "text": "Is a model of shopping right about you?",
        "form": FORM,
        "hypothesis": json.dumps(query.hypothesis if isinstance(query, Query) else query),
        "randomizer": {"randomizer": "BinaryResponse", "epsilon": epsilon, "bounds": [0.0, 1.0]},
        **fields,
    }
    return json.dumps({name: value for name, value in question.items() if value is not None})


def sign(question, secret=SECRET):
    """The envelope of a question."""
    signature = _core.ed25519_sign(secret, b"hdp_fast.question\n" + question.encode())
    form = {"format": "hdp_fast.signed", "version": 1, "question": question}
    return json.dumps({**form, "signature": signature.hex()})


class Collector:
    """A server: `question` and `reply` are the status and the text of what comes next."""

    def __init__(self):
        self.question, self.reply = (200, sign(ask())), (200, '{"accepted":true}')
        self.files, self.page = {}, PAGE
        # The paths that were asked for, and the tokens and bodies that came.
        self.seen, self.came = [], []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, status, content, kind="application/json", policy=POLICY):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Security-Policy", policy)
                self.send_header("Cache-Control", "no-store")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_GET(self):
                path = self.path.partition("?")[0].strip("/") or "index.html"
                collector.seen.append(self.path)
                if path == "question":
                    self.answer(collector.question[0], collector.question[1].encode())
                elif path in collector.files:
                    self.answer(200, *collector.files[path])
                elif (PAGE / path).is_file():
                    self.answer(200, (PAGE / path).read_bytes(), KINDS[path.rpartition(".")[2]])
                else:
                    self.answer(404, b"{}")

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                collector.came.append((self.path, self.headers.get("Authorization"), body))
                self.answer(collector.reply[0], collector.reply[1].encode())

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def link(self, **fields):
        """The link of an invitation, with some fields otherwise."""
        invitation = {"study": STUDY, "number": 17, "token": TOKEN, "key": KEY, "epsilon": 1.0}
        return f"{self.url}#{urlencode({**invitation, **fields})}"

    @property
    def lines(self):
        return [body for _, _, body in self.came]

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def settings():
    """How the Chromium of the system is started."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program, "no Chromium: apt-get install chromium"
    return {"executable_path": program, "args": ["--no-sandbox"]}


def open_chromium(kind):
    """Starts the Chromium of the system, headless."""
    return kind.launch(**settings())


class Profile:
    """A browser whose profile is a folder, which a later one finds as it was left."""

    def __init__(self, kind, folder):
        self._kind, self._folder = kind, folder

    def new_context(self, **options):
        return self._kind.launch_persistent_context(self._folder, **settings(), **options)

    def kill(self):
        """Ends it as a phone ends that runs out of power; how many processes that were."""
        killed = 0
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if f"--user-data-dir={self._folder}\0".encode() in place.read_bytes():
                    os.kill(int(place.parent.name), signal.SIGKILL)
                    killed += 1
        return killed


class Person:
    """A person's browser: its messages are heard, and what it asks for is seen."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(**{"viewport": {"width": 375, "height": 812}, **options})
        self.context.set_default_timeout(20_000)
        self.heard, self.asked = [], []
        self.context.on("console", lambda message: self.heard.append(message.text))
        self.context.on("weberror", lambda error: self.heard.append(str(error.error)))
        self.context.on("request", lambda request: self.asked.append(request))
        self.page = self.context.new_page()

    def open(self, link, text=None, page=None):
        """Opens a link, and waits until the page says something of this kind."""
        page = page or self.page
        page.goto("about:blank")
        page.goto(link)
        if text is not None:
            self.expect(text, page)
        return page

    def expect(self, text, page=None):
        """Waits until the status holds a text."""
        (page or self.page).locator("[role=status]", has_text=text).wait_for()

    def type(self, page=None):
        """Types a record: 44 years old, an owner, way b, bought."""
        page = page or self.page
        page.get_by_label("How old are you?").fill("44")
        page.get_by_role("radio", name="own").check()
        page.get_by_label("way").select_option(label="b")
        page.get_by_role("radio", name="yes").check()

    def draw(self, page=None):
        """Types a record and randomizes; returns the line."""
        page = page or self.page
        self.type(page)
        page.get_by_role("button", name="Randomize my answer").click()
        return self.line(page)

    def line(self, page=None):
        return (page or self.page).locator(".leaves").inner_text()

    def click(self, name, page=None):
        (page or self.page).get_by_role("button", name=name, exact=True).click()

    def kept(self):
        """All that the browser keeps of the page, as text."""
        return self.page.evaluate(
            """async () => {
                const base = await new Promise((resolve) => {
                    const request = indexedDB.open("hdp_fast");
                    request.onsuccess = () => resolve(request.result);
                });
                const all = (name) => new Promise((resolve) => {
                    const request = base.transaction(name).objectStore(name).getAll();
                    request.onsuccess = () => resolve(request.result);
                });
                const kept = [await all("study"), await all("answer")];
                base.close();
                return JSON.stringify([kept, {...localStorage}, document.cookie]);
            }"""
        )
