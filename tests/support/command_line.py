"""What every command does with bad input."""

from hdp_fast.cli import main


def fails(capsys, *argv, code=2):
    """Run with bad input; return the one line it must print beside what it protects."""
    assert main([str(argument) for argument in argv]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    first, *others = captured.err.splitlines(keepends=True)
    line = "".join(others) if first.startswith("hdp-fast: protected: ") else captured.err
    assert line.startswith("hdp-fast: error: ")
    assert line.count("\n") == 1
    return line
