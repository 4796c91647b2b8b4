"""Writes device.json: invitations and replies, random bytes, and what a device shows and sends.

A case has what `describe` shows where its invitation is a new one.

Origin: the compiled device in node; tests/device/device.mjs, which was written from the page
docs/project/question_format.md, must show and send the same, and so must the device in Rust.
`make device` and then `python tests/vectors/device.py` writes the file anew.
"""

import json
import sys
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from device_cases import MODULE, VECTORS, Questions, invite, question_text, run_device, sign

from hdp_fast import _core

RULE = {"kind": "conjunction", "features": [1], "values": [1], "complement": False}
ADULT = {"kind": "query", "terms": [{"kind": "between", "column": 0, "low": 18, "high": None}]}
YES = {"kind": "query", "terms": [{"kind": "label"}]}
LINE = {"kind": "linear", "weights": [0.25, -1.5], "bias": 0.125}
ABOVE = {"kind": "query", "terms": [{"kind": "score_above", "model": LINE, "threshold": 0.5}]}
FORM = {
    "inputs": [
        {"name": "age", "text": "How old are you?", "kind": "number", "low": 0, "high": 120},
        {
            "name": "way",
            "text": "How do you travel to work?\nChoose one.",
            "kind": "choice",
            "choices": [{"value": "foot", "text": "on foot"}, {"value": "bus", "text": "by bus"}],
        },
        {
            "name": "jä/é😀",
            "text": "Would you like trams?",
            "kind": "choice",
            "choices": [{"value": "yes", "text": "yes"}, {"value": "no", "text": "no"}],
        },
    ],
    "features": [{"input": 0, "scale": 1, "offset": 0}, {"input": 1, "values": ["foot"]}],
    "label": {"input": 2, "values": ["yes"]},
}
WORDS = {"study": "trams", "asker": "City of Example", "text": "Do you like trams?\nAnswer freely."}
KARY = {"randomizer": "KaryResponse", "k": 3, "epsilon": 1.0}
ANSWERS = {"age": " 17.5 ", "way": "foot", "jä/é😀": "yes"}
RECORD = {"features": [30.0, 1.0], "label": 1.0}
LOW, HIGH = "00" * 64, "ff" * 64


def stage(first=1, count=1000, shares=(1, 2, 3, 4), **fields):
    queries = [RULE, ADULT, YES, ABOVE][: len(shares)]
    key = "000102030405060708090a0b0c0d0e0f"
    form = {"kind": "stage", "key": key, "first": first, "count": count}
    return {**form, "queries": queries, "shares": list(shares), **fields}


def stage_question(**fields):
    return question_text("stage", study="trams", form=FORM, hypothesis=stage(**fields))


def mean(epsilon=1.0, bounds=(0.0, 24.0), **fields):
    form = {"randomizer": "BinaryResponse", "epsilon": epsilon, "bounds": list(bounds)}
    return question_text(randomizer=form, **fields)


def cases():
    """Name, invitation, reply, and random bytes or None for those of the seed."""
    at = {"study": "trams"}
    shown = question_text("stage", form=FORM, hypothesis=stage(), **WORDS)
    yield "a stage with a form", invite(shown, number=17, **at), {"answers": ANSWERS}, None
    for number in (1, 2, 3, 5, 8, 13, 1000):
        asked = invite(shown, number=number, **at)
        yield f"person {number} of a stage", asked, {"record": RECORD}, None
    for number in (0, 1001, None):
        yield f"no person {number}", invite(shown, number=number, **at), {"record": RECORD}, None
    late = stage_question(first=2**62, count=10, shares=[2**52, 2**52 - 1])
    yield "large numbers", invite(late, number=2**62 + 3, **at), {"record": RECORD}, None
    for shares in ([], [0, 1], [2**53 - 1, 1], [1.0, 1], [1, 2, 3]):
        broken = stage_question(shares=[1, 1])
        broken = broken.replace('\\"shares\\": [1, 1]', f'\\"shares\\": {shares}')
        yield f"shares {shares}", invite(broken, number=5, **at), {"record": RECORD}, None
    odd = stage_question(queries=[ADULT, {"kind": "query", "terms": [{"kind": "mood"}]}, YES, YES])
    yield "another's query", invite(odd, number=17, **at), {"record": RECORD}, None
    for answers in ({}, {**ANSWERS, "age": "inf"}, {**ANSWERS, "age": "1e999"}, {"way": "car"}):
        for number in (1, 2, 3, 4):
            asked = invite(shown, number=number, **at)
            yield f"{answers} by {number}", asked, {"answers": answers}, None
    for text in ("7.5", "-1", "25", "+.5e1", "5.", "", "nan", "1_0", "0x1", "٣", "1e-400"):
        yield f"value {text!r}", invite(mean()), {"value": text}, None
    for epsilon in (1e-9, 1e-3, 0.1, 0.5, 1.0, 2.0, 1.0986122886681098, 8.0, 59.9, 60.0, 700.0):
        yield f"epsilon {epsilon}", invite(mean(epsilon), epsilon), {"value": "12"}, None
    # The words next to the ends of what counts as 1, and as kept.
    for epsilon in (1e-9, 0.3, 1.0, 8.0, 60.0):
        for text, end in (("0.1", int(0.1 * 2.0**64)), ("0.7", int(0.7 * 2.0**64))):
            for first, second in product((end - 1, end), (0, 1)):
                words = first, _core.truth_probability(epsilon) - second
                random = "".join(f"{word:016x}" for word in words) + "11" * 16
                name = f"value {text} at {epsilon} by {first - end} and {-second}"
                yield name, invite(mean(epsilon, (0, 1)), epsilon), {"value": text}, random
    for k in (2, 3, 1000):
        for second in (0, 1):
            word = _core.keep_probability(1.0, 1, k) - second
            random = f"{word:016x}" + "00" * 24
            asked = invite(question_text("frequency", {**KARY, "k": k}))
            yield f"category of {k} by {-second}", asked, {"value": "1"}, random
    yield "epsilon too small", invite(mean(9e-10), 9e-10), {"value": "12"}, None
    for random in (LOW, HIGH, "80" + LOW[2:], "7f" + HIGH[2:]):
        for text in ("0", "12", "24"):
            yield f"value {text} by {random[:4]}", invite(mean()), {"value": text}, random
    wide = mean(bounds=(-1e308, 1e308))
    yield "bounds too far apart", invite(wide), {"value": "1"}, None
    yield "narrow bounds", invite(mean(bounds=(0, 5e-324))), {"value": "5e-324"}, None
    ways = question_text("frequency", KARY, categories=["bus", "Straßenbahn 😀", "other"])
    for random in (LOW, "fe" * 64, None):
        reply = {"value": " Straßenbahn 😀"}
        yield f"a category by {random and random[:2]}", invite(ways), reply, random
    yield "no category", invite(ways), {"value": "car"}, None
    many = question_text("frequency", {**KARY, "k": 2**31})
    for text in ("0", "2147483647", "2147483648", "-1", "1.0"):
        yield f"integer {text}", invite(many), {"value": text}, None
    # 2**64 modulo 3 is 1: the last word alone is drawn again.
    redrawn = "ff" * 16 + "fffffffffffffffe" + "11" * 16
    three = invite(question_text("frequency", KARY))
    yield "a word that is drawn again", three, {"value": "0"}, redrawn
    other = {"randomizer": "SubsetSelection", "k": 10, "epsilon": 1.0}
    other = invite(question_text("frequency", other))
    yield "a randomizer of Python alone", other, {"value": "0"}, None
    unicode = question_text(id='a"\\/ü😀', hypothesis=RULE)
    yield "an id of any letters", invite(unicode), {"record": RECORD}, None
    for name in ("a\nb", "a\u202eb", "", "x" * 101, "\u00a0"):
        named = invite(question_text(id=name, hypothesis=RULE))
        yield f"id {name!r}", named, {"record": RECORD}, None
    for entries in ([0, 1], [0, 0], [None, 1], [0.5, 1], [1], [1e308, 1e308]):
        record = {"features": entries, "label": 1}
        yield f"record {entries}", invite(question_text(hypothesis=RULE)), {"record": record}, None
    missing = {"features": [1, 1], "label": None}
    yield "no label", invite(question_text(hypothesis=RULE)), {"record": missing}, None
    plain = question_text(hypothesis=RULE)
    forged = json.loads(sign(plain))
    forged["signature"] = ("0" if forged["signature"][0] != "0" else "1") + forged["signature"][1:]
    tampered = json.loads(sign(plain))
    tampered["question"] = plain.replace("1.0", "9.0")
    for name, signed in [
        ("a forged signature", json.dumps(forged)),
        ("a tampered question", json.dumps(tampered)),
        ("another's signature", sign(plain, bytes(32))),
        ("a longer envelope", json.dumps({**json.loads(sign(plain)), "more": 1})),
        ("no envelope", plain),
        ("no JSON", sign(plain)[:-1]),
    ]:
        yield name, invite(plain, signed=signed), {"record": RECORD}, None
    yield "a key of small order", invite(plain, key="01" + "00" * 31), {"record": RECORD}, None
    yield "no key", invite(plain, key="AB" * 32), {"record": RECORD}, None
    yield "another study", invite(plain, study="trams"), {"record": RECORD}, None
    yield "another epsilon", invite(plain, 1.0000000000000002), {"record": RECORD}, None
    yield "a value for a record", invite(plain), {"value": "1"}, None
    yield "nothing", invite(plain), {}, None
    for name, text in [
        ("version 1", plain.replace('"version": 2', '"version": 1')),
        ("a field more", plain.replace('"kind"', '"mood": 1, "kind"')),
        ("an id twice", plain.replace('"id"', '"id": "q-2", "id"')),
        ("half a letter", plain.replace("q-1", "q-\\ud800")),
        ("NaN", plain.replace("1.0", "NaN")),
        ("a number too large", plain.replace('"epsilon": 1.0', '"epsilon": 1e999')),
        ("another kind", plain.replace('"kind": "mean"', '"kind": "stage"')),
        ("an integer written as 0.1e1", plain.replace("[1]", "[0.1e1]")),
        ("deep", plain.replace("[1]", "[" * 70 + "]" * 70)),
    ]:
        yield name, invite(text), {"record": RECORD}, None
    questions = Questions(7)
    for i in range(60):
        d = questions.integer(1, 6)
        inquiry, (features, label) = questions.inquiry(d), questions.record(d)
        record = {"features": [x if abs(x) < 1e999 else None for x in features]}
        record["label"] = label if abs(label) < 1e999 else None
        yield f"random {i}", invite(question_text(hypothesis=inquiry)), {"record": record}, None


def main():
    source, stored = Questions(1), []
    for name, invitation, reply, random in cases():
        case = {"name": name, "invitation": invitation, "reply": reply}
        stored.append({**case, "random": random or source.bytes(64).hex()})
    assert len({case["name"] for case in stored}) == len(stored)
    works = [
        (work, json.dumps({**case["invitation"], **reply}), case["random"])
        for case in stored
        for work, reply in (("describe", {}), ("answer", case["reply"]))
    ]
    results = run_device(works, "module", MODULE)
    seen = []
    for case, shown, sent in zip(stored, results[::2], results[1::2], strict=True):
        if case["invitation"] not in seen:
            case["describe"] = shown["result"]
        seen.append(case["invitation"])
        case["answer"], case["drawn"] = sent["result"], sent["drawn"]
    lines = ",\n".join(map(json.dumps, stored))
    VECTORS.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
