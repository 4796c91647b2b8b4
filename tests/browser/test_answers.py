"""A person answers: one line leaves, once, whatever happens between the draw and its arrival."""

import hashlib
import json
import math
from contextlib import suppress

import pytest
from page_visits import MODEL, TOKEN, Person, Profile, ask, sign
from playwright.sync_api import Error

from hdp_fast.local import Query

DRAWN = "Your answer is randomized. Nothing has been sent."
READY = "The question is genuine."
SENT = "The line was sent"


def test_a_person_answers_by_keyboard_alone(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    keys = page.keyboard

    def tab_to(name):
        for _ in range(20):
            keys.press("Tab")
            if page.evaluate("document.activeElement.labels?.[0]?.textContent ?? ''") == name:
                return
        raise AssertionError(f"no way to {name} by the keyboard")

    tab_to("How old are you?")
    keys.type("44")
    tab_to("own")
    keys.press("Space")
    tab_to("way")
    keys.type("b")
    tab_to("yes")
    keys.press("Space")
    keys.press("Tab")
    keys.press("Enter")
    one.expect(DRAWN)
    assert page.evaluate("document.activeElement.textContent") == "What would be sent"
    line = one.line()
    while page.evaluate("document.activeElement.textContent") != "Send this line":
        keys.press("Tab")
    keys.press("Enter")
    one.expect(SENT)
    assert collector.came == [("/answer", f"Bearer {TOKEN}", line)]
    assert page.evaluate("document.activeElement.getAttribute('role')") == "status"
    assert one.heard == []


def test_a_line_is_what_the_collector_reads(collector, person):
    one = person()
    one.open(collector.link(), READY)
    line = one.draw()
    fields = json.loads(line)
    question = json.loads(collector.question[1])["question"]
    assert list(fields) == ["format", "version", "question", "digest", "report", "id"]
    assert json.dumps(fields, separators=(",", ":")) == line
    assert fields["digest"] == hashlib.sha256(question.encode()).hexdigest()[:32]


def test_nothing_but_the_line_leaves_and_nothing_typed_is_kept(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    page.get_by_label("How old are you?").fill("43.21")
    one.draw()
    page.get_by_label("How old are you?").wait_for(state="detached")
    one.click("Send this line")
    one.expect(SENT)
    assert {request.url.partition("#")[0].rpartition("/")[0] + "/" for request in one.asked} == {
        collector.url
    }
    posted = [request for request in one.asked if request.method == "POST"]
    assert [request.post_data for request in posted] == collector.lines
    told = f"{one.kept()}{collector.came}{[request.url for request in one.asked]}"
    assert "43.21" not in told
    assert all("token" not in request.url.partition("#")[0] for request in one.asked)
    assert page.url == collector.url
    assert TOKEN not in one.kept()


def test_coins_are_those_of_the_browser_and_fall_as_the_page_says(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    count = 20_000
    result = page.evaluate(
        """async ([link, signed, count]) => {
            const { Device, readInvitation } = await import("./page.js");
            const bytes = await (await fetch("device.wasm")).arrayBuffer();
            const device = await Device.load(bytes);
            const { study, number, key, epsilon } = readInvitation(link);
            const input = { signed, study, number, key, epsilon };
            const answers = { age: "18", home: "rent", way: "g", bought: "other" };
            const { keep } = device.call("describe", input);
            let ones = 0;
            const ids = new Set();
            for (let each = 0; each < count; each++) {
                const { report, line, truth } = device.call("answer", { ...input, answers });
                ones += report === truth;
                ids.add(JSON.parse(line).id);
            }
            return [keep, ones, ids.size];
        }""",
        [collector.link().partition("#")[2], collector.question[1], count],
    )
    keep, kept, ids = result
    assert keep == pytest.approx(math.e / (1 + math.e), abs=1e-12)
    # A false alarm of 1e-6 is 4.9 standard deviations.
    assert abs(kept - count * keep) < 4.9 * math.sqrt(count * keep * (1 - keep))
    assert ids == count


def test_bounds_that_are_told_are_never_too_small(collector, person):
    page = person().open(collector.link(), READY)
    epsilons = [0.001, 0.5, 1.0, 1.049, 2.0, 4.0, 7.0, 10.0]
    told = page.evaluate(
        """async (epsilons) => {
            const { above, below } = await import("./page.js");
            return epsilons.map((epsilon) => {
                const factor = Math.exp(epsilon), after = 100 * factor / (1 + factor);
                return [above(factor), above(after), below(100 / (1 + factor))];
            });
        }""",
        epsilons,
    )
    for epsilon, (factor, after, before) in zip(epsilons, told, strict=True):
        exact = math.exp(epsilon)
        assert exact <= factor * (1 + 1e-12) <= 1.1 * exact * (1 + 1e-9)
        assert 100 * exact / (1 + exact) <= after * (1 + 1e-12)
        assert before <= 100 / (1 + exact)
    words = page.locator("main").inner_text()
    assert "epsilon is 1." in words.replace("\u2068", "").replace("\u2069", "")
    assert "a factor of at most 2.8" in words


def test_a_reload_shows_the_line_that_was_drawn(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    line = one.draw()
    page.reload()
    one.expect("An answer of yours was drawn before")
    assert one.line() == line
    assert page.get_by_label("How old are you?").count() == 0
    one.click("Send this line")
    one.expect(SENT)
    page.reload()
    one.expect(SENT)
    assert collector.lines == [line]
    # The link once more, as from the mail: sent is sent.
    one.open(collector.link(), SENT)
    assert collector.lines == [line]


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_line_that_may_not_have_arrived_is_sent_again_the_same(collector, person, status):
    one = person()
    page = one.open(collector.link(), READY)
    line = one.draw()
    collector.reply = (status, '{"error":"try again"}')
    one.click("Send this line")
    one.expect("kept")
    page.reload()
    one.expect("An answer of yours was drawn before")
    collector.reply = (200, '{"accepted":true}')
    one.click("Send this line")
    one.expect(SENT)
    assert collector.lines == [line, line]


def test_a_reply_that_says_nothing_of_acceptance_is_none(collector, person):
    one = person()
    one.open(collector.link(), READY)
    one.draw()
    collector.reply = (200, "<html>a captive portal</html>")
    one.click("Send this line")
    one.expect("The line has not arrived, as far as this page knows.")


def test_without_a_network_the_line_waits_and_leaves_when_it_is_back(collector, person):
    one = person()
    one.open(collector.link(), READY)
    line = one.draw()
    one.context.set_offline(True)
    one.click("Send this line")
    one.expect("It is kept, and the same line is sent again")
    assert collector.lines == []
    one.context.set_offline(False)
    one.expect(SENT)
    # What has arrived is not sent again by the next change of the network.
    for is_offline in (True, False):
        one.context.set_offline(is_offline)
    one.page.wait_for_timeout(200)
    assert collector.lines == [line]


def test_a_network_that_comes_back_sends_nothing_that_nobody_wanted_to_send(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    one.draw()
    one.context.set_offline(True)
    one.context.set_offline(False)
    page.wait_for_timeout(200)
    assert collector.lines == []


def test_clicks_in_a_row_draw_and_send_once(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    one.type()
    page.evaluate("for (let k = 0; k < 5; k++) document.querySelector('form button').click()")
    line = one.line()
    page.evaluate("for (let k = 0; k < 5; k++) document.querySelector('section button').click()")
    one.expect(SENT)
    assert collector.lines == [line]


def test_two_tabs_have_one_line(collector, person):
    one = person()
    first, second = one.open(collector.link(), READY), one.context.new_page()
    one.open(collector.link(), READY, second)
    for page in (first, second):
        one.type(page)
    # Both begin before either has ended.
    for page in (first, second):
        page.evaluate("void document.querySelector('form button').click()")
    lines = {one.line(first), one.line(second)}
    assert len(lines) == 1
    for page in (first, second):
        one.click("Send this line", page)
        one.expect(SENT, page)
    assert set(collector.lines) == lines


def test_the_way_back_leads_to_the_same_line(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    line = one.draw()
    page.goto(f"{collector.url}style.css")
    page.go_back()
    one.expect("An answer of yours was drawn before")
    assert one.line() == line
    one.click("Send this line")
    one.expect(SENT)
    page.go_back()
    page.go_forward()
    assert collector.lines == [line]


def test_a_link_that_is_pasted_into_the_same_tab_is_another_invitation(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    one.draw()
    link = collector.link(number=18, token="1f" * 16)
    page.evaluate("(fragment) => { location.hash = fragment; }", link.partition("#")[2])
    one.expect(READY)
    # The same browser: whether it is the same person, no page can see.
    one.type()
    one.click("Randomize my answer")
    one.expect("Please confirm first")
    page.get_by_role("checkbox").check()
    one.click("Randomize my answer")
    one.expect(DRAWN)
    one.click("Send this line")
    one.expect(SENT)
    assert [token for _, token, _ in collector.came] == [f"Bearer {'1f' * 16}"]


def test_fields_that_are_missing_or_no_numbers_are_named_beside_them(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    age = page.get_by_label("How old are you?")
    one.click("Randomize my answer")
    one.expect("Something is missing: 4 of the fields below.")
    assert age.get_attribute("aria-invalid") == "true"
    assert "Please enter a number." in age.evaluate(
        "(control) => control.getAttribute('aria-describedby').split(' ')"
        ".map((id) => document.getElementById(id).textContent).join(' ')"
    )
    assert age.evaluate("(control) => control === document.activeElement")
    one.type()
    for text in ("forty", "1,500", "1e3", "inf", "NaN", "0x10", "--1", "4 4"):
        age.fill(text)
        one.click("Randomize my answer")
        one.expect("Something is missing: 1 of the fields below.")
        assert page.get_by_text("This is no number.").is_visible()
    read = page.evaluate(
        """async (texts) => {
            const { readNumber } = await import("./page.js");
            return texts.map(readNumber);
        }""",
        ["44,5", " 44.5 ", "+44", "-5", "\u22125", ".5", "1500", "1,500", "", "1.2.3"],
    )
    assert read == ["44.5", "44.5", "44", "-5", "-5", ".5", "1500", None, None, None]


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        (Query.label(), ["Did you buy?"]),
        (Query.value(0, 0.0, 1.0), ["How old are you?"]),
        (Query.between(1, low=0.5), ["Your home"]),
        (Query.between(0, high=0.5) & Query.label(), ["How old are you?", "Did you buy?"]),
        (Query.wrong(MODEL), ["How old are you?", "Your home", "way", "Did you buy?"]),
    ],
)
def test_a_question_asks_only_for_what_it_needs(collector, person, query, asked):
    collector.question = (200, sign(ask(query=query)))
    one = person()
    page = one.open(collector.link(), READY)
    labels = page.locator("form legend, form .field > label").all_inner_texts()
    assert labels == asked
    assert page.locator("section li").count() == (2 if len(asked) == 2 else 1)
    is_between = asked == ["How old are you?"]
    assert ("lies between yes and no" in page.locator("main").inner_text()) == is_between


def test_a_stage_asks_the_query_of_the_number_of_an_invitation(collector, person):
    queries = [Query.label(), Query.value(0, 0.0, 1.0), Query.between(1, low=0.5)]
    names = ["Did you buy?", "How old are you?", "Your home"]
    stage = {
        "kind": "stage",
        "key": "07" * 16,
        "first": 1,
        "count": 100,
        "queries": [query.hypothesis for query in queries],
        "shares": [1, 1, 1],
    }
    collector.question = (200, sign(ask(kind="stage", query=stage)))
    places = set()
    for number in (1, 2, 3, 4, 5, 6):
        one = person()
        page = one.open(collector.link(number=number), READY)
        (label,) = page.locator("form legend, form .field > label").all_inner_texts()
        if label == "How old are you?":
            page.get_by_label(label).fill("44")
        else:
            page.get_by_role("radio").first.check()
        one.click("Randomize my answer")
        place = json.loads(one.line())["report"] // 2
        assert names[place] == label
        places.add(place)
    assert len(places) > 1


def test_plain_questions_ask_for_a_value(collector, person):
    bounds = {"randomizer": "BinaryResponse", "epsilon": 1.0, "bounds": [0.0, 120.0]}
    plain = {"form": None, "hypothesis": None, "text": "How many minutes?"}
    collector.question = (200, sign(ask(**{**plain, "randomizer": bounds})))
    one = person()
    page = one.open(collector.link(), READY)
    page.get_by_label("Your answer").fill("45")
    one.click("Randomize my answer")
    assert json.loads(one.line())["report"] in (0, 1)
    choices = {"randomizer": "KaryResponse", "k": 3, "epsilon": 1.0}
    ways = {"kind": "frequency", "categories": ["bus", "bicycle", "other"], "id": "ways"}
    collector.question = (200, sign(ask(**{**plain, "randomizer": choices, **ways})))
    one = person()
    page = one.open(collector.link(), READY)
    assert "With probability 0.36 it is yours" in page.locator("main").inner_text()
    page.get_by_role("radio", name="bicycle").check()
    one.click("Randomize my answer")
    assert json.loads(one.line())["report"] in (0, 1, 2)


def test_an_invitation_is_for_one_answer_whatever_the_question_is_by_then(collector, person):
    one = person()
    one.open(collector.link(), READY)
    line = one.draw()
    collector.question = (200, sign(ask(id="town-2", text="Another one?")))
    one.open(collector.link(), "An answer of yours was drawn before")
    assert one.line() == line
    assert json.loads(line)["question"] == "town-1"


def test_a_line_that_was_shown_outlives_a_browser_that_is_killed(collector, chromium, tmp_path):
    profile = Profile(chromium.browser_type, tmp_path / "profile")
    one = Person(profile)
    one.open(collector.link(), READY)
    line = one.draw()
    assert profile.kill() > 0
    with suppress(Error):
        one.context.close()
    again = Person(profile)
    again.open(collector.link(), "An answer of yours was drawn before")
    assert again.line() == line
    again.context.close()
