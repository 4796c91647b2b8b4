"""What a page must refuse, and what must not harm it: forged questions, other epsilons, markup."""

import json

import pytest
from page_visits import FORM, KEY, ask, sign

from hdp_fast import _core

READY = "The question is genuine."
OTHER = bytes(range(1, 33))
MARKUP = [
    "<img src=x onerror=hacked()>",
    '"><script>hacked()</script>',
    "javascript:hacked()",
    "</p></main><iframe srcdoc='<script>parent.hacked()</script>'>",
    "{line}{keep}{__proto__}",
    "&lt;b&gt; &#60;b&#62;",
]
CAUGHT = "window.caught = 0; window.hacked = () => { window.caught += 1; };"


def refused(collector, one, link, text):
    """Opens a link, and sees that nothing can be typed, drawn or sent."""
    page = one.open(link, text)
    assert page.locator("form, input, select").count() == 0
    assert page.get_by_role("button", name="Randomize").count() == 0
    assert collector.lines == []


def forge(envelope, **fields):
    return json.dumps({**json.loads(envelope), **fields})


def test_a_question_that_was_changed_on_its_way_is_refused(collector, person):
    good, one = sign(ask()), person()
    changed = ask(text="Is a model of shopping right about you!")
    twice = good.replace('"version": 1', '"version": 1, "version": 1')
    for envelope in (
        forge(good, question=changed),
        forge(good, signature="00" * 64),
        forge(good, signature=json.loads(sign(ask(), OTHER))["signature"]),
        sign(ask(), OTHER),
        sign(ask(study="another")),
        sign(ask(epsilon=4.0)),
        sign(ask(version=3)),
        sign(ask(kind="essay")),
        sign('{"format": "hdp_fast.question"}'),
        twice,
        "[]",
        "",
        "null",
        "[" * 20_000,
    ):
        collector.question = (200, envelope)
        refused(collector, one, collector.link(), "This question cannot be verified.")
    assert json.loads(one.kept())[0] == [[], []]
    collector.question = (200, good)
    one.open(collector.link(), READY)


def test_an_invitation_of_another_epsilon_or_key_is_refused_within_a_study(collector, person):
    one = person()
    one.open(collector.link(), READY)
    collector.question = (200, sign(ask(epsilon=4.0)))
    refused(collector, one, collector.link(epsilon=4.0), "another protection within one study")
    collector.question = (200, sign(ask(), OTHER))
    other = collector.link(key=_core.ed25519_public(OTHER).hex())
    refused(collector, one, other, "signed by another key")
    # The one that was agreed on still holds, and another study is another matter.
    collector.question = (200, sign(ask()))
    one.open(collector.link(), READY)
    collector.question = (200, sign(ask(epsilon=4.0, study="other")))
    one.open(collector.link(epsilon=4.0, study="other"), READY)


@pytest.mark.parametrize("field", [{"epsilon": 4.0}, {"key": "ab" * 32}])
def test_a_line_that_was_drawn_is_not_sent_under_another_epsilon_or_key(collector, person, field):
    one = person()
    one.open(collector.link(), READY)
    one.draw()
    refused(collector, one, collector.link(**field), "Nothing was asked and nothing was sent.")


@pytest.mark.parametrize(
    "broken",
    [
        {"token": "0f"},
        {"token": "0F" * 16},
        {"key": KEY[:-1]},
        {"epsilon": "nan"},
        {"epsilon": "-1"},
        {"number": "1.5"},
        {"number": "0"},
        {"study": ""},
    ],
)
def test_a_link_that_is_no_invitation_asks_nothing(collector, person, broken):
    one = person()
    refused(collector, one, collector.link(**broken), "This address lacks an invitation.")
    assert not [path for path in collector.seen if "question" in path]


def test_a_link_without_a_fragment_or_with_a_field_twice_is_no_invitation(collector, person):
    one = person()
    refused(collector, one, collector.url, "This address lacks an invitation.")
    refused(collector, one, f"{collector.link()}&epsilon=9", "This address lacks an invitation.")


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (404, "no question yet", "There is no question for you yet."),
        (410, "answered", "This invitation has been answered already"),
        (410, "closed", "This question is closed."),
        (401, "unknown token", "The server does not know this invitation."),
        (429, "too many", "Too many people are here"),
        (500, "defect", "The server cannot be reached."),
    ],
)
def test_what_the_server_says_instead_of_a_question_is_told(collector, person, status, error, text):
    collector.question = (status, json.dumps({"error": error}))
    refused(collector, person(), collector.link(), text)


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (401, "unknown token", "The server does not know this invitation."),
        (409, "answered otherwise", "The server has another answer to this invitation"),
        (410, "closed", "The question was closed before the line arrived."),
        (422, "malformed", "The server does not take this line."),
    ],
)
def test_what_the_server_says_of_a_line_is_told(collector, person, status, error, text):
    one = person()
    page = one.open(collector.link(), READY)
    one.draw()
    collector.reply = (status, json.dumps({"error": error}))
    one.click("Send this line")
    one.expect(text)
    assert page.get_by_role("button").count() == 0


def test_a_browser_that_keeps_nothing_draws_nothing(collector, person):
    one = person()
    one.context.add_init_script("Object.defineProperty(window, 'indexedDB', {get() { throw 1; }})")
    refused(collector, one, collector.link(), "This browser lets the page keep nothing")


def test_a_disk_that_is_full_at_the_draw_leaves_nothing_to_send(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    full = "IDBObjectStore.prototype.put = () => { throw new DOMException('full'); }"
    page.evaluate(f"void ({full})")
    one.type()
    one.click("Randomize my answer")
    one.expect("This browser lets the page keep nothing")
    assert page.locator(".leaves").count() == 0
    assert page.get_by_role("button").count() == 0


@pytest.mark.parametrize("markup", MARKUP)
def test_markup_in_any_field_is_shown_as_it_stands(collector, person, markup):
    inputs = [dict(each) for each in FORM["inputs"]]
    inputs[0] = {**inputs[0], "name": f"age {markup}", "text": f"How old? {markup}"}
    for place in (1, 2, 3):
        choices = [dict(choice) for choice in inputs[place]["choices"]]
        choices[-1] = {"value": f"last {markup}", "text": f"This {markup}"}
        inputs[place] = {**inputs[place], "choices": choices, "text": f"Which? {place} {markup}"}
    form = {**FORM, "inputs": inputs}
    fields = {name: f"{name} {markup}" for name in ("study", "asker", "text", "id")}
    collector.question = (200, sign(ask(form=form, **fields)))
    one = person()
    one.context.add_init_script(CAUGHT)
    page = one.open(collector.link(study=fields["study"]), READY)
    shown = page.locator("main").inner_text()
    for text in (*(fields[name] for name in ("study", "asker", "text")), inputs[0]["text"]):
        assert text in shown
    page.get_by_label("How old?").fill("44")
    for legend in page.locator("fieldset").all():
        legend.get_by_role("radio").last.check()
    page.locator("select").select_option(label=f"This {markup}")
    one.click("Randomize my answer")
    assert json.loads(one.line())["question"] == fields["id"]
    one.click("Send this line")
    one.expect("The line was sent")
    assert page.locator("main img, main script, iframe, main a").count() == 0
    assert page.evaluate("window.caught") == 0
    assert one.heard == []
    assert len(collector.lines) == 1


def test_inputs_may_have_names_that_objects_have_of_their_own(collector, person):
    names = ["__proto__", "constructor", "toString", "hasOwnProperty"]
    inputs = [{**each, "name": name} for each, name in zip(FORM["inputs"], names, strict=True)]
    collector.question = (200, sign(ask(form={**FORM, "inputs": inputs})))
    one = person()
    one.open(collector.link(), READY)
    assert json.loads(one.draw())["report"] in (0, 1)


def test_a_server_cannot_make_the_page_run_code_by_its_texts(collector, person):
    texts = json.loads((collector.page / "texts.json").read_text())
    texts["texts"] = {key: f"{text}{MARKUP[0]}" for key, text in texts["texts"].items()}
    collector.files["texts.json"] = (json.dumps(texts).encode(), "application/json")
    one = person()
    one.context.add_init_script(CAUGHT)
    page = one.open(collector.link(), READY)
    assert page.evaluate("window.caught") == 0
    assert page.locator("img").count() == 0


def test_code_of_other_origins_and_inline_code_does_not_run(collector, person):
    one = person()
    one.context.add_init_script(CAUGHT)
    page = one.open(collector.link(), READY)
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            try { script.textContent = "hacked()"; document.head.append(script); } catch {}
            try { document.body.innerHTML = "<img src=x onerror=hacked()>"; } catch {}
            const image = document.createElement("img");
            image.src = "http://127.0.0.1:9/leak";
            document.body.append(image);
        }"""
    )
    page.wait_for_timeout(100)
    assert page.evaluate("window.caught") == 0
    assert [text for text in one.heard if "Content Security Policy" in text]
    leaks = page.evaluate("fetch('http://127.0.0.1:9/leak').then(() => 'sent', () => 'blocked')")
    assert leaks == "blocked"


def test_texts_as_long_as_can_be_fit_a_narrow_screen(collector, person):
    word, wide = "W" * 2000, {"viewport": {"width": 320, "height": 640}}
    inputs = [{**each, "text": each["text"] + "W" * 150} for each in FORM["inputs"]]
    inputs[2] = {**inputs[2], "choices": [*inputs[2]["choices"]]}
    inputs[2]["choices"][0] = {"value": "a", "text": "W" * 200}
    collector.question = (
        200,
        sign(ask(text=word, asker="W" * 200, study="W" * 100, form={**FORM, "inputs": inputs})),
    )
    one = person(**wide)
    page = one.open(collector.link(study="W" * 100), READY)
    wider = "document.scrollingElement.scrollWidth - window.innerWidth"
    assert page.evaluate(wider) <= 0
    page.get_by_text("Details, and how to check them").click()
    assert page.evaluate(wider) <= 0


def test_a_page_that_came_without_encryption_asks_nothing(collector, person):
    one = person()
    insecure = "Object.defineProperty(window, 'isSecureContext', {get: () => false})"
    one.context.add_init_script(insecure)
    refused(collector, one, collector.link(), "This page came without encryption")
