"""The tool that makes mutants of the package."""

import ast

import mutants


def changes(source):
    nodes = mutants.walk(ast.parse(source))
    changed = ((ast.unparse(node), mutants.mutate(node)) for node in nodes)
    return {
        before: after if isinstance(after, str) else ast.unparse(after)
        for before, after in changed
        if after is not None
    }


def test_mutants_are_small_mistakes_of_what_runs():
    source = '''
def half(values: list[int], least: int = 3) -> float:
    """At least 3."""
    if not values or least < 3:
        raise ValueError(f"{least + 1} values")
    check(values)
    return sum(values) / 2
'''
    assert changes(source) == {
        "not values or least < 3": "not values and least < 3",
        "not values": "values",
        "least < 3": "least <= 3",
        "3": "4",
        "raise ValueError(f'{least + 1} values')": "pass",
        "check(values)": "pass",
        "sum(values) / 2": "sum(values) * 2",
        "2": "3",
    }


def test_mutants_are_drawn_alike_by_one_seed_and_stand_where_they_say():
    drawn = mutants.draw(20, 7, "budget")
    assert drawn == mutants.draw(20, 7, "budget") != mutants.draw(20, 8, "budget")
    for mutant in drawn:
        text = (mutants.ROOT / mutant.path).read_bytes()
        assert text[mutant.start : mutant.end].decode() == mutant.before
        assert text[: mutant.start].count(b"\n") + 1 == mutant.line
