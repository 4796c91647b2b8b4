"""The choice between statistics and votes: a function of public facts."""

import pytest

from hdp_fast.exceptions import ParameterError
from hdp_fast.labels import choose_method

FACTS = {
    "n": 3_500,
    "columns": 40,
    "classes": 10,
    "points": 1_000,
    "members": 2_000,
    "epsilon": 1.0,
    "delta": 1e-6,
}


@pytest.mark.parametrize(
    ("changes", "method"),
    [
        ({}, "statistics"),
        ({"epsilon": 0.5}, "statistics"),
        ({"classes": 2, "n": 100_000}, "statistics"),
        ({"points": 79}, "votes"),
        ({"points": 80}, "statistics"),
        # Noise hides so many columns, and there are records for the members.
        ({"n": 100_000, "columns": 10**8, "points": 10**9}, "votes"),
        # There are not: neither will do well.
        ({"n": 1_000, "columns": 10**8, "points": 10**9}, "statistics"),
    ],
)
def test_rules(changes, method):
    choice = choose_method(**{**FACTS, **changes})
    assert choice.method == method
    assert choice.reason
    assert choice == choose_method(**{**FACTS, **changes})


def test_the_signal_grows_with_records_and_falls_with_classes_and_columns():
    signal = choose_method(**FACTS).signal
    assert choose_method(**{**FACTS, "n": 7_000}).signal == pytest.approx(2 * signal)
    assert choose_method(**{**FACTS, "classes": 20}).signal == pytest.approx(signal / 2)
    assert choose_method(**{**FACTS, "columns": 160}).signal == pytest.approx(signal / 2)


@pytest.mark.parametrize("name", FACTS)
def test_bad_numbers_are_refused(name):
    for value in (0, -1, "many", float("nan")):
        with pytest.raises(ParameterError, match=name):
            choose_method(**{**FACTS, name: value})
