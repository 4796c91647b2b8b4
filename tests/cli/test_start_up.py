"""What a command imports before it runs: its time to start is that of its modules."""

import subprocess
import sys

from cases import each_case

from hdp_fast.cli import command_line

# numpy and hdp_fast itself, the parser, and what reads and prints a line.
MOST_MODULES = 24
# No verb that is named after a room needs these others for its help.
NOT_NEEDED = {
    "stats": {"learners", "local", "transfer", "statistics", "budget", "accounting", "plotting"},
    "schema": {"learners", "local", "transfer", "labels", "adaptation", "statistics", "plotting"},
    "fit": {"local", "transfer", "labels", "adaptation", "parity", "plotting", "advice"},
    "predict": {"learners", "transfer", "statistics", "budget", "accounting", "plotting"},
    "budget": {"learners", "local", "transfer", "labels", "adaptation", "statistics", "plotting"},
}
# What a verb runs by: a wrong flag is told without it.
_ROOMS = {"accounting", "budget", "learners", "local", "stability", "statistics", "weights"}
_ROOMS |= {"adaptation", "labels", "parity", "transfer", "collection", "plotting", "advice"}
NOT_NEEDED_FOR_A_FLAG = dict.fromkeys(
    ("stats", "schema", "fit", "predict", "transfer", "hybrid", "label", "adapt", "parity"), _ROOMS
)


def modules_after(*arguments):
    """The modules of the package that are there after a run, in a process of its own."""
    program = (
        "import contextlib, io, sys\n"
        "from hdp_fast.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main(sys.argv[1:])\n"
        "print(*(name for name in sys.modules if name.split('.')[0] == 'hdp_fast'))\n"
    )
    run = [sys.executable, "-c", program, *arguments]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()


@each_case("argument", ["version", "--version", "--help", "help", "--epsilno", "statz"])
def test_what_runs_no_verb_imports_none(argument):
    modules = modules_after(argument)
    assert "hdp_fast.cli.command_line" in modules
    assert not [name for name in modules if name.endswith("_command")]
    assert len(modules) <= MOST_MODULES, modules


@each_case("verb", NOT_NEEDED)
def test_the_help_of_a_verb_imports_no_room_that_it_does_not_run(verb):
    rooms = {name.split(".")[1] for name in modules_after(verb, "--help") if "." in name}
    assert rooms & NOT_NEEDED[verb] == set()


@each_case("verb", NOT_NEEDED_FOR_A_FLAG)
def test_a_wrong_flag_is_refused_before_its_verb_is_imported(verb):
    rooms = {name.split(".")[1] for name in modules_after(verb, "--epsilonn", "1") if "." in name}
    assert rooms & NOT_NEEDED_FOR_A_FLAG[verb] == set()


@each_case("name", command_line.VERBS)
def test_every_verb_is_where_the_table_says(name):
    module = command_line.VERBS[name].module
    assert f"hdp_fast.cli.{module}" in modules_after(name, "--help")
