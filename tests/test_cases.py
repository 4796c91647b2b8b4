"""`each_case`, which makes one test of many small cases."""

import pytest
from cases import each_case


def test_each_tries_every_case_and_tells_all_that_fail():
    tried = []

    @each_case(("left", "right"), [(1, 2), pytest.param(3, 3, id="equal"), (5, 4)], ids=str)
    @each_case("scale", [1, 10])
    def rises(left, right, scale, fixture):
        tried.append((left, right, scale, fixture))
        assert scale * left < scale * right

    with pytest.raises(AssertionError, match=r"2 of 3 cases fail") as failure:
        rises(fixture="shared")
    assert len(tried) == 6
    assert {fixture for *_, fixture in tried} == {"shared"}
    text = str(failure.value)
    assert "case 3-3" in text
    assert "case 5-4" in text
    assert "case 1-2" not in text


def test_each_raises_the_failure_of_a_single_case_itself():
    @each_case("value", [1, 0])
    def divides(value):
        assert 1 / value

    with pytest.raises(ZeroDivisionError) as failure:
        divides()
    assert failure.value.__notes__ == ["in the case 1"]


def test_each_refuses_to_test_nothing():
    with pytest.raises(pytest.UsageError, match="no case of value"):
        each_case("value", [])
