"""What every command does with bad input."""

from hdp_fast.cli import main


def fails(capsys, *argv, code=2):
    """Run with bad input; return the one line it must print."""
    assert main([str(argument) for argument in argv]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("hdp-fast: error: ")
    assert captured.err.count("\n") == 1
    return captured.err
