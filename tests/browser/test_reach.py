"""Whom the page reaches: screen readers, narrow and dark screens, no script; and survey tools."""

import json
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from axe_playwright_python.sync_playwright import Axe
from page_visits import KEY, POLICY, ask, sign

READY = "The question is genuine."
WIDER = "document.scrollingElement.scrollWidth - window.innerWidth"
HOSTED = (Path(__file__).parents[2] / "examples" / "hosted_form.html").read_text()
DARK = {"color_scheme": "dark"}


def violations(page):
    """What axe finds against WCAG 2.2 AA and good practice."""
    found = Axe().run(page).response["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


@pytest.mark.parametrize("options", [{}, DARK, {"viewport": {"width": 320, "height": 640}}])
def test_every_state_is_accessible_and_fits(collector, person, options):
    # axe is code of another origin, which the page's policy keeps out.
    one = person(bypass_csp=True, **options)
    page = one.open(collector.link(), READY)

    def look():
        assert violations(page) == []
        assert page.evaluate(WIDER) <= 0

    page.get_by_text("Details, and how to check them").click()
    look()
    one.click("Randomize my answer")
    one.expect("Something is missing")
    look()
    one.draw()
    page.get_by_text("Compare with your true answer").click()
    look()
    one.click("Send this line")
    one.expect("The line was sent")
    look()
    one.open(collector.link(number=18), READY)
    look()
    one = person(bypass_csp=True, **options)
    page = one.open(collector.url, "This address lacks an invitation.")
    look()


def test_a_rule_that_is_broken_would_be_seen(collector, person):
    one = person(bypass_csp=True)
    page = one.open(collector.link(), READY)
    page.evaluate("document.querySelector('label').remove()")
    assert "label" in [name for name, _ in violations(page)]


def test_states_are_told_to_screen_readers(collector, person):
    one = person()
    page = one.open(collector.link(), READY)
    status = page.locator("[role=status]")
    assert status.get_attribute("aria-live") == "polite"
    # The element stays, so that a change of its text is read out.
    page.evaluate("window.first = document.querySelector('[role=status]')")
    one.draw()
    one.click("Send this line")
    one.expect("The line was sent")
    assert page.evaluate("window.first === document.querySelector('[role=status]')")
    headings = page.locator("h1, h2").all_inner_texts()
    assert headings == ["A private question", "What was sent"]


def test_epsilon_is_told_in_words_by_the_probability_of_the_device(collector, person):
    for epsilon, words in ((1.0, "with probability 0.27 "), (4.0, "with probability 0.018 ")):
        collector.question = (200, sign(ask(epsilon=epsilon)))
        one = person()
        page = one.open(collector.link(epsilon=epsilon), READY)
        assert words + "this page sends the opposite" in page.locator("main").inner_text()


def test_colors_are_dark_where_people_want_that(collector, person):
    back = "getComputedStyle(document.body).backgroundColor"
    for options, color in (({}, "rgba(0, 0, 0, 0)"), (DARK, "rgb(20, 24, 29)")):
        page = person(**options).open(collector.link(), READY)
        assert page.evaluate(back) == color


def test_without_script_the_page_asks_nothing_and_says_so(collector, person):
    # What stands in <noscript> is shown where the browser, not Playwright, turns script off.
    page = person(java_script_enabled=False).open(collector.link())
    assert page.get_by_text("If nothing follows").is_visible()
    assert not [path for path in collector.seen if "question" in path]


def test_another_language_is_another_file_of_texts(collector, person):
    texts = json.loads((collector.page / "texts.json").read_text())
    texts["lang"], texts["dir"] = "ar", "rtl"
    texts["texts"]["title"] = "سؤال خاص"
    collector.files["texts.json"] = (json.dumps(texts).encode(), "application/json")
    page = person().open(collector.link(), READY)
    assert page.locator("h1").inner_text() == page.title() == "سؤال خاص"
    assert page.evaluate("[document.documentElement.lang, document.dir]") == ["ar", "rtl"]


def host(collector, epsilon=1.0, field="report"):
    """A survey tool's form with the question, as the guide shows it."""
    names = {"STUDY": "town-2026", "NUMBER": "17", "KEY": KEY, "EPSILON": str(epsilon)}
    html = HOSTED
    for name, value in names.items():
        html = html.replace(name, value)
    html = html.replace('data-field="report"', f'data-field="{field}"')
    # A tool has a policy of its own, which lets its form be sent.
    policy = POLICY.replace("form-action 'none'", "form-action 'self'")
    collector.files["form.html"] = (html.encode(), "text/html; charset=utf-8", policy)
    collector.files["question.json"] = (collector.question[1].encode(), "application/json")
    return f"{collector.url}form.html"


def test_a_form_of_a_survey_tool_gets_the_line_and_nothing_that_was_typed(collector, person):
    one = person()
    page = one.open(host(collector), READY)
    page.locator("#street").fill("quiet")
    # Scripts of the tool that collect fields come by their own, and not by those of the question.
    fields = "Array.from(document.querySelectorAll('input, select'), (field) => field.name)"
    assert page.evaluate(fields) == ["street", "report"]
    page.evaluate("document.addEventListener('change', (event) => { window.told = event.target; })")
    line = one.draw()
    assert page.locator("input[name=report]").input_value() == ""
    one.click("Put this line into the form")
    one.expect("The line is in the form.")
    assert page.evaluate("window.told.name") == "report"
    one.click("Next")
    page.wait_for_url("**/save")
    ((path, token, body),) = collector.came
    assert path == "/save"
    assert token is None
    assert parse_qs(body, keep_blank_values=True) == {"street": ["quiet"], "report": [line]}


def test_the_field_may_be_named_in_the_address_of_the_module(collector, person):
    link = host(collector)
    html, *kind = collector.files["form.html"]
    html = html.replace(b' data-field="report"', b"").replace(b"page.js", b"page.js?field=report")
    # A question that is no stage needs no number.
    html = html.replace(b"number=17&amp;", b"")
    collector.files["form.html"] = (html, *kind)
    one = person()
    page = one.open(link, READY)
    line = one.draw()
    one.click("Put this line into the form")
    one.expect("The line is in the form.")
    assert page.locator("input[name=report]").input_value() == line


def test_a_link_cannot_turn_the_page_into_a_part_of_a_form(collector, person):
    one = person()
    link = collector.link().replace("/#", "/?field=report#")
    page = one.open(link, READY)
    one.draw()
    assert page.get_by_role("button", name="Send this line").is_visible()
    assert page.url == f"{collector.url}?field=report"


def test_a_form_that_is_opened_again_gets_the_same_line(collector, person):
    one = person()
    page = one.open(host(collector), READY)
    line = one.draw()
    one.click("Put this line into the form")
    one.expect("The line is in the form.")
    page.reload()
    page.wait_for_load_state()
    one.expect("The line is in the form.")
    assert page.locator("input[name=report]").input_value() == line


def test_a_form_is_sent_without_what_was_typed_before_the_draw(collector, person):
    one = person()
    page = one.open(host(collector), READY)
    one.type()
    one.click("Next")
    page.wait_for_url("**/save")
    assert collector.lines == ["street=&report="]


def test_enter_in_a_field_sends_no_form_of_others(collector, person):
    one = person()
    page = one.open(host(collector), READY)
    page.get_by_label("How old are you?").press("Enter")
    one.expect("Something is missing")
    assert collector.lines == []


def test_a_form_without_the_field_asks_nothing(collector, person):
    one = person()
    page = one.open(host(collector, field="other"), "no field")
    assert page.get_by_role("button", name="Randomize").count() == 0


def test_a_form_with_the_question_is_accessible(collector, person):
    one = person(bypass_csp=True)
    page = one.open(host(collector), READY)
    assert violations(page) == []
