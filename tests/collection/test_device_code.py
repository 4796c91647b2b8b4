"""The device's code, private to _core and the page: three implementations, exact laws, assignment.

They are rust/device in _core, the same code as a page runs it, and tests/device/device.mjs, which
was written from docs/project/question_format.md.
"""

import gzip
import hashlib
import itertools
import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from device_cases import (
    BINARY,
    MODULE,
    ROOT,
    SECRET,
    VECTORS,
    Questions,
    invite,
    question_text,
    run_device,
    written,
)
from frequencies import Case, misfits
from lengths import STAT

from hdp_fast import _core, local
from hdp_fast.exceptions import ParameterError

RULE = {"kind": "conjunction", "features": [1], "values": [1], "complement": False}
LABEL = {"kind": "query", "terms": [{"kind": "label"}]}
STAGE_KEY = bytes(range(16))
WHOLE = 1 << 64


# Three implementations --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vectors():
    return json.loads(VECTORS.read_text())


def works(vectors):
    """Each description and each answer, with what is expected."""
    for case in vectors:
        if "describe" in case:
            yield ("describe", json.dumps(case["invitation"]), ""), case["describe"], 0
        text = json.dumps({**case["invitation"], **case["reply"]})
        yield ("answer", text, case["random"]), case["answer"], case["drawn"]


def assert_same(result, expected):
    assert result.keys() == expected.keys(), (result, expected)
    if "error" in expected:
        # The words of a rule are each device's own.
        assert result["error"]["name"] == expected["error"]["name"], (result, expected)
        return
    for name, value in expected.items():
        if name in ("keep", "truth"):
            assert result[name] == pytest.approx(value, rel=1e-15, abs=1e-16)
        else:
            assert result[name] == value


@pytest.mark.parametrize("device", [("plain",), ("module", MODULE)], ids=["JavaScript", "wasm"])
def test_vectors_are_those_of_every_device(vectors, device):
    cases, expected, drawn = zip(*works(vectors), strict=True)
    results = run_device(cases, *device)
    for result, wanted, count in zip(results, expected, drawn, strict=True):
        assert_same(result["result"], wanted)
        assert result["drawn"] == count


def test_vectors_hold_every_kind_of_answer_and_error(vectors):
    names = Counter(case["answer"].get("error", {}).get("name") for case in vectors)
    assert names[None] > 100
    assert {"signature", "study", "epsilon", "number", "age", "value", "question"} <= set(names)
    for case in vectors:
        assert ("error" in case["answer"]) == (case["drawn"] == 0), case["name"]


def test_devices_answer_random_questions_as_agents_do():
    """Python's simulated agents, Rust, and JavaScript: the same true answer, the same line."""
    questions, cases, truths, natives = Questions(11), [], [], []
    for _ in range(2000 if STAT else 100):
        d = questions.integer(1, 12)
        inquiry, record = questions.inquiry(d), written(*questions.record(d))
        entries = [math.nan if x is None else x for x in record["features"]]
        label = math.nan if record["label"] is None else record["label"]
        truths.append(local.true_answers(inquiry, [entries], [label])[0])
        asked = {**invite(question_text(hypothesis=inquiry)), "record": record}
        natives.append(json.loads(_core.device_answer(json.dumps(asked)))["truth"])
        cases.append(("answer", json.dumps(asked), questions.bytes(32).hex()))
    assert natives == pytest.approx(truths, abs=1e-12)
    results = [run_device(cases, *device) for device in (("plain",), ("module", MODULE))]
    for plain, module in zip(*results, strict=True):
        assert_same(plain["result"], module["result"])
    assert len(set(truths)) > 10


def test_records_with_infinities_are_answered_as_agents_answer():
    """At an epsilon that keeps every bit, since JSON has no infinities."""
    questions, randomizer = Questions(3), {**BINARY, "epsilon": 60.0}
    for _ in range(200):
        d = questions.integer(1, 4)
        inquiry, (features, label) = questions.inquiry(d), questions.record(d)
        features[:1] = [questions.one_of([math.inf, -math.inf, math.nan])]
        truth = local.true_answers(inquiry, [features], [label])[0]
        question = question_text(hypothesis=inquiry, randomizer=randomizer)
        line = _core.device_line(question, None, features, label, None)
        assert truth not in (0, 1) or json.loads(line)["report"] == truth


# What is refused --------------------------------------------------------------------------------


@each_case(
    "question, number, words",
    [
        (question_text(), None, "value"),
        (question_text(hypothesis={"kind": "mood"}), None, "mood"),
        (question_text(hypothesis={**RULE, "more": 1}), None, "more"),
        (question_text(hypothesis={**RULE, "features": [-1]}), None, "features"),
        (question_text(hypothesis={**RULE, "features": [1.0]}), None, "features"),
        (question_text(hypothesis=RULE, mood=1), None, "mood"),
        (question_text(hypothesis=RULE, version=3), None, "version 2"),
        (question_text(hypothesis=RULE, randomizer={**BINARY, "bounds": [0, 2]}), None, "bounds|0"),
        (question_text(hypothesis=RULE, randomizer={**BINARY, "epsilon": 0}), None, "epsilon"),
        (question_text(hypothesis=RULE, randomizer={"randomizer": "Piecewise"}), None, "Piecewise"),
        ("[" * 10_000, None, "JSON"),
        ("\ud800", None, "surrogates|utf-8"),
    ],
)
def test_device_line_names_what_it_refuses(question, number, words):
    with pytest.raises((ParameterError, UnicodeEncodeError), match=words):
        _core.device_line(question, number, [0.0, 1.0], 1.0, None)


def test_signatures_are_those_of_rfc_8032():
    """Its test 2; and nothing else than what was signed is taken."""
    secret = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    public = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert _core.ed25519_public(secret) == public
    assert _core.ed25519_sign(secret, b"\x72") == signature
    assert _core.ed25519_verify(public, b"\x72", signature)
    for place in range(64):
        broken = bytearray(signature)
        broken[place] ^= 1 << place % 8
        assert not _core.ed25519_verify(public, b"\x72", bytes(broken))
    assert not _core.ed25519_verify(public, b"\x73", signature)
    assert not _core.ed25519_verify(_core.ed25519_public(SECRET), b"\x72", signature)
    # A neutral element as key and half signs everything, where it is not refused.
    neutral = bytes([1]) + bytes(31)
    assert not _core.ed25519_verify(neutral, b"\x72", neutral + bytes(32))
    for lengths in ((31, 64), (32, 63)):
        with pytest.raises(ParameterError, match="bytes, but it must have"):
            _core.ed25519_verify(bytes(lengths[0]), b"", bytes(lengths[1]))


# Who is asked what ------------------------------------------------------------------------------


def place(key, number, shares):
    """The rule of the page, with hashlib."""
    digest = hashlib.sha256(b"hdp_fast.stage" + key + number.to_bytes(8, "big")).digest()
    mark = int.from_bytes(digest[:8], "big") * sum(shares) >> 64
    return next(j for j, end in enumerate(itertools.accumulate(shares)) if mark < end)


def test_stage_places_are_those_of_the_rule():
    rng = np.random.default_rng(5)
    for _ in range(100):
        key, top = rng.bytes(16), int(rng.integers(1, 45))
        shares = rng.integers(1, 1 << top, rng.integers(1, 30), endpoint=True).tolist()
        first = [1, 17, (1 << 63) - 30][rng.integers(3)]
        places = _core.stage_places(key, first, 20, shares)
        assert places.dtype == np.uint32
        assert places.tolist() == [place(key, first + i, shares) for i in range(20)]
    assert _core.stage_places(STAGE_KEY, 1, 0, [1]).shape == (0,)


def test_stage_places_have_their_shares():
    shares, count = [1, 2, 3, 4, 1000, 10**9], 200_000
    for key in (STAGE_KEY, bytes(16)):
        for some in (shares[:4], shares):
            counts = Counter(_core.stage_places(key, 1, count, some).tolist())
            law = {j: Fraction(share, sum(some)) for j, share in enumerate(some)}
            assert not misfits([Case(counts, law)])


def test_stage_places_are_monotone_under_splitting():
    """Whoever had a query before it was split has one of its parts, and nobody else moves."""
    whole = _core.stage_places(STAGE_KEY, 1, 5000, [5, 7, 4])
    parts = _core.stage_places(STAGE_KEY, 1, 5000, [5, 1, 4, 2, 4])
    assert np.array_equal(np.array([0, 1, 1, 1, 2])[parts], whole)
    scaled = _core.stage_places(STAGE_KEY, 1, 5000, [50, 70, 40])
    assert np.array_equal(scaled, whole)


@each_case(
    "key, first, count, shares",
    [
        (bytes(15), 1, 1, [1]),
        (bytes(16), 1, 1, []),
        (bytes(16), 1, 1, [1, 0]),
        (bytes(16), 1, 1, [1 << 53]),
        (bytes(16), 1, 1, [1] * 10_001),
        (bytes(16), (1 << 64) - 1, 2, [1]),
    ],
)
def test_stage_places_name_what_they_refuse(key, first, count, shares):
    with pytest.raises(ParameterError, match=r"key|shares|count"):
        _core.stage_places(key, first, count, shares)


# Exact laws -------------------------------------------------------------------------------------


def exponential(epsilon):
    """A fraction below e^epsilon, by its series."""
    x, term, total = Fraction(epsilon), Fraction(1), Fraction(1)
    for i in range(1, 60):
        term *= x / i
        total += term
    return total


def binary_law(p, epsilon):
    """The law of the bit, from how many pairs of words there are that lead to it."""
    one, keep = int(p * 2.0**64) if p < 1 else WHOLE, _core.truth_probability(epsilon)
    ones = one * keep + (WHOLE - one) * (WHOLE - keep)
    return {1: Fraction(ones, WHOLE**2), 0: Fraction(WHOLE**2 - ones, WHOLE**2)}


def kary_law(value, k, epsilon):
    keep = Fraction(_core.keep_probability(epsilon, 1, k), WHOLE)
    return {other: (1 - keep) / k + (keep if other == value else 0) for other in range(k)}


POSITIONS = [0.0, 5e-324, 2.0**-65, 2.0**-64, 0.3, 0.5, 1 - 2.0**-53, 1.0]


@each_case("epsilon", [1e-9, 0.3, 1.0, 3.0, 8.0])
def test_laws_of_devices_keep_epsilon_exactly(epsilon):
    """For all pairs of values, and all reports: the ratio is below e^epsilon."""
    most = exponential(epsilon)
    laws = [[binary_law(p, epsilon) for p in POSITIONS]]
    laws += [[kary_law(value, k, epsilon) for value in range(k)] for k in (2, 3, 5)]
    for some in laws:
        for one, other in itertools.permutations(some, 2):
            assert all(one[report] <= most * other[report] for report in one)
        assert all(sum(law.values()) == 1 for law in some)
    # Not much is given away: the ratio of the ends is next to it.
    ends = laws[0][-1][1] / laws[0][0][1]
    assert ends - 1 > (most - 1) * (1 - Fraction(1, 1 << 28))


def test_devices_have_these_laws():
    """Both sides of each end at which words change the report, in the compiled code."""
    cases, expected = [], []
    for epsilon, p in itertools.product((1e-9, 8.0), POSITIONS):
        randomizer = {**BINARY, "epsilon": epsilon}
        asked = {**invite(question_text(randomizer=randomizer), epsilon), "value": repr(p)}
        one, keep = int(p * 2.0**64) if p < 1 else WHOLE, _core.truth_probability(epsilon)
        firsts = {word for word in (0, one - 1, one, WHOLE - 1) if 0 <= word < WHOLE}
        for first, second in itertools.product(firsts, (0, keep - 1, keep, WHOLE - 1)):
            random = f"{first:016x}{second:016x}" + "00" * 16
            cases.append(("answer", json.dumps(asked), random))
            expected.append(int((first < one) == (second < keep)))
    for k in (2, 3, 5):
        randomizer = {"randomizer": "KaryResponse", "k": k, "epsilon": 1.0}
        asked = {**invite(question_text("frequency", randomizer)), "value": "1"}
        keep, last = _core.keep_probability(1.0, 1, k), WHOLE - WHOLE % k
        for first, second in itertools.product((0, keep - 1, keep, WHOLE - 1), range(k)):
            for word in (second, last - k + second):
                random = f"{first:016x}{word:016x}" + "00" * 16
                cases.append(("answer", json.dumps(asked), random))
                expected.append(1 if first < keep else second)
        for refused in range(last, WHOLE):
            random = f"{keep:016x}{refused:016x}{k - 1:016x}" + "00" * 16
            cases.append(("answer", json.dumps(asked), random))
            expected.append(k - 1)
    for device in (("plain",), ("module", MODULE)):
        results = run_device(cases, *device)
        assert [result["result"]["report"] for result in results] == expected


@each_case("epsilon", [0.5, 1.0, 3.0])
def test_reports_about_a_stage_keep_epsilon_exactly(epsilon):
    """All records, all assignments, all random words: the pair of query and bit, exactly.

    A record has three features and a label, and the queries are products and sums of them: also
    one whose answers lie between 0 and 1. What is assigned depends on key, number and shares, and
    on no record.
    """
    half = {"kind": "query", "terms": [{"kind": "weighted", "queries": [[LABEL, 0.5]]}]}
    column = {"kind": "query", "terms": [{"kind": "between", "column": 0, "low": 1, "high": None}]}
    queries = [RULE, LABEL, half, column]
    records = [list(bits) for bits in itertools.product((0, 1), repeat=3)] + [[math.nan] * 3]
    records = [(features, label) for features in records for label in (0, 1, math.nan)]
    answers = {
        j: [local.true_answers(query, [features], [label])[0] for features, label in records]
        for j, query in enumerate(queries)
    }
    most, assigned = exponential(epsilon), set()
    for key, number in itertools.product((bytes(16), STAGE_KEY), range(1, 9)):
        (j,) = _core.stage_places(key, number, 1, [1] * len(queries)).tolist()
        assigned.add(j)
        laws = [
            {(j, bit): mass for bit, mass in binary_law(p, epsilon).items()} for p in answers[j]
        ]
        for one, other in itertools.product(laws, laws):
            assert all(one[report] <= most * other[report] for report in one)
    # Drawn by coins that do not see the record, query and bit together have the same bound.
    mixtures = [
        {
            (j, bit): mass / len(queries)
            for j in answers
            for bit, mass in binary_law(answers[j][i], epsilon).items()
        }
        for i in range(len(records))
    ]
    for one, other in itertools.product(mixtures, mixtures):
        assert all(one[report] <= most * other[report] for report in one)
    assert assigned == set(answers)


# The module -------------------------------------------------------------------------------------


def test_module_is_the_one_whose_hash_is_stored_and_its_sources_are_those():
    """`make device` builds it and `make device-check` compares: they need that target of Rust."""
    lines = (ROOT / "rust" / "device" / "module.sha256").read_text().splitlines()
    stored = {ROOT / name: digest for digest, name in map(str.split, lines)}
    sources = (ROOT / "rust" / "device" / "src").glob("*.rs")
    parts = [ROOT / "rust" / "device" / name for name in ("build.sh", "Cargo.toml")]
    assert set(stored) == {MODULE, *parts, *sources}
    changed = [
        path.name
        for path, digest in stored.items()
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest
    ]
    assert not changed, "run `make device`"


def sections(content):
    """The sections of a module by their number."""
    found, at = {}, 8

    def integer(at):
        value = shift = 0
        while True:
            value |= (content[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if content[at - 1] < 128:
                return value, at

    while at < len(content):
        number, (size, start) = content[at], integer(at + 1)
        found[number], at = content[start : start + size], start + size
    return found


def test_module_is_small_asks_for_random_bytes_alone_and_tells_no_path():
    content = MODULE.read_bytes()
    assert content[:8] == b"\0asm\1\0\0\0"
    assert len(gzip.compress(content, 9)) <= 80_000
    parts = sections(content)
    assert parts[2] == b"\x01\x03env\x06random\x00" + parts[2][-1:]
    for name in (b"alloc", b"release", b"describe", b"answer", b"memory"):
        assert bytes([len(name)]) + name in parts[7]
    assert 0 not in parts, "a section of names"
    for path in (b"/home", b"/root", b"/work", b"/tmp", b"/usr", b".cargo", b"registry", b".rs"):
        assert path not in content


def test_python_device_is_that_of_the_page(vectors):
    """The same code with random bits of the operating system: all but the draws is equal."""
    for case in vectors:
        if "describe" in case:
            shown = json.loads(_core.device_describe(json.dumps(case["invitation"])))
            assert shown == case["describe"], case["name"]
        sent = json.loads(_core.device_answer(json.dumps({**case["invitation"], **case["reply"]})))
        if "error" in case["answer"]:
            assert sent == case["answer"], case["name"]
        else:
            assert sent["truth"] == case["answer"]["truth"]
            line, expected = json.loads(sent["line"]), json.loads(case["answer"]["line"])
            same = ("format", "version", "question", "digest")
            assert [line[name] for name in same] == [expected[name] for name in same]
