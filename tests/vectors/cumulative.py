"""Writes cumulative.txt: the first 64 binary digits of cumulative masses, to 80 decimal digits.

Origin: the definitions of the laws alone, evaluated with Python's decimal module; nothing of
hdp_fast is used. `python tests/vectors/cumulative.py` writes the file anew.

A line is: law, scale or sigma as a fraction, base (0: infinitely many outcomes), index, word in
hexadecimal. The orders are 0, 1, 2, ... for "digit" and 0, -1, 1, -2, 2, ... for the others, where
"mirrored" gives -1 - x the mass of x, that of the Gaussian. "rounded" is the normal law rounded.
"""

from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cache
from itertools import count
from pathlib import Path

PATH = Path(__file__).with_suffix(".txt")
CASES = [
    ("signed", Fraction(2), 0),
    ("signed", Fraction(1, 10), 0),
    ("signed", Fraction(17, 3), 0),
    ("signed", Fraction(10_000), 512),
    ("digit", Fraction(10_000, 512), 0),
    ("digit", Fraction(100_000), 1024),
    ("gaussian", Fraction(1, 4), 0),
    ("gaussian", Fraction(5, 2), 0),
    ("gaussian", Fraction(40), 0),
    ("mirrored", Fraction(101, 3), 0),
    ("rounded", Fraction(63), 0),
    ("rounded", Fraction(5, 2), 0),
    ("rounded", Fraction(1), 0),
    ("rounded", Fraction(101, 3), 0),
]
# Every outcome up to here, then one in fifty.
ALL, STEP = 40, 50


def decimal(x):
    return Decimal(x.numerator) / Decimal(x.denominator)


def folded(i):
    """The integer at place i of 0, -1, 1, -2, 2, ..."""
    return i // 2 if i % 2 == 0 else -(i // 2) - 1


def arc_tangent(n):
    """Of 1 / n."""
    return sum((-1) ** k / (Decimal(2 * k + 1) * Decimal(n) ** (2 * k + 1)) for k in range(200))


@cache
def half_normal(z):
    """Pr[0 < Z < z] by the alternating series of the error function."""
    if z > 19:
        return Decimal("0.5")
    with localcontext() as context:
        context.prec = 300
        pi = 16 * arc_tangent(5) - 4 * arc_tangent(239)
        x, total, term = decimal(z), Decimal(0), decimal(z)
        for k in count():
            total += term / (2 * k + 1)
            term *= -x * x / (2 * (k + 1))
            if k > x * x and abs(term) < Decimal(10) ** -150:
                break
        return total / (2 * pi).sqrt()


def mass(law, scale, i):
    if law == "rounded":
        inner, outer = ((2 * abs(folded(i)) + side) / (2 * scale) for side in (-1, 1))
        return half_normal(outer) + (half_normal(outer) if i == 0 else -half_normal(inner))
    if law == "digit":
        return (-i / decimal(scale)).exp()
    x = folded(i)
    if law == "mirrored":
        x = max(x, -1 - x)
    return (
        -abs(x) / decimal(scale) if law == "signed" else -(x**2) / (2 * decimal(scale**2))
    ).exp()


def words(law, scale, base):
    """(index, word) for every outcome whose word differs from that of certainty."""
    if base:
        # Digit v and its sign: the sum of the law over all integers with this lowest digit.
        repeats = 1 / (1 - (-base / decimal(scale)).exp())
        outcomes = [
            mass(law, scale, i) * repeats for i in range(base * (2 if law == "signed" else 1))
        ]
    else:
        outcomes = []
        for i in count():
            outcomes.append(mass(law, scale, i))
            if i > 1 and outcomes[-1] < Decimal(10) ** -70:
                break
    whole, below = sum(outcomes), Decimal(0)
    for i, each in enumerate(outcomes):
        below += each
        word = int(below / whole * (1 << 64))
        if word >= (1 << 64) - 1:
            return
        yield i, word


def lines():
    getcontext().prec = 80
    for law, scale, base in CASES:
        for i, word in words(law, scale, base):
            if i < ALL or i % STEP == 0:
                yield f"{law} {scale.numerator}/{scale.denominator} {base} {i} {word:016x}"


if __name__ == "__main__":
    PATH.write_text("\n".join(lines()) + "\n")
