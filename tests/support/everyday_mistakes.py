"""What labelers say of the everyday mistakes of a data scientist, and of too few members.

    python tests/support/everyday_mistakes.py

prints two tables: what was done with what it ends in, and numbers of members with their answers.
"""

import sys
import warnings

import numpy as np

from hdp_fast.exceptions import HdpFastError, UtilityWarning
from hdp_fast.labels import PrivateLabeler

COINS = np.random.default_rng(17)
X, Q = COINS.normal(size=(3000, 4)), COINS.normal(size=(200, 4))
Y, TRUTH = ((rows[:, 0] > 0).astype(int) for rows in (X, Q))


def logistic():
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


def one_hot():
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    return make_pipeline(encode, logistic())


def frame(rows):
    import pandas

    return pandas.DataFrame(rows, columns=list("abde"))


def with_nan(rows, share):
    changed = rows.copy()
    changed[np.random.default_rng(1).random(len(rows)) < share, 1] = np.nan
    return changed


def one_nan():
    changed = Q.copy()
    changed[5, 2] = np.nan
    return changed


def with_category(rows, last):
    made = frame(rows).assign(c=np.where(np.arange(len(rows)) % 2, "u", "v"))
    made.loc[len(rows) - 1, "c"] = last
    return made


def zeros(X, y):
    return lambda Q: (np.asarray(Q)[:, 0] > 0).astype(int)


def fails(X, y):
    return 1 / 0


def sparse(rows):
    from scipy.sparse import csr_matrix

    return csr_matrix(rows)


def naive_bayes():
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


# What was done, from nothing to (learner, X, Q, classes).
MISTAKES = {
    "nothing wrong": lambda: (logistic(), X, Q, [0, 1]),
    "5 % NaN in X": lambda: (logistic(), with_nan(X, 0.05), Q, [0, 1]),
    "one NaN in Q": lambda: (logistic(), X, one_nan(), [0, 1]),
    "a new category in Q": lambda: (
        one_hot(),
        with_category(X, "u"),
        with_category(Q, "new"),
        [0, 1],
    ),
    "a column of texts": lambda: (
        logistic(),
        with_category(X, "u"),
        with_category(Q, "u"),
        [0, 1],
    ),
    "learner says 0 and 1, not a and b": lambda: (zeros, X, Q, ["a", "b"]),
    "columns in another order": lambda: (logistic(), frame(X), frame(Q)[list("bade")], [0, 1]),
    "X of one dimension": lambda: (logistic(), X[:, 0], Q[:, 0], [0, 1]),
    "learner always fails": lambda: (fails, X, Q, [0, 1]),
    "sparse X, dense learner": lambda: (naive_bayes(), sparse(X), sparse(Q), [0, 1]),
    "another dtype": lambda: (
        logistic(),
        frame(X),
        frame(Q).assign(a=lambda rows: rows["a"].astype(str)),
        [0, 1],
    ),
}


def run(mistake, members=300):
    """What it ends in: where it was refused, the error, the notes, and the answers."""
    learner, records, points, classes = MISTAKES[mistake]()
    labels = np.array(classes)[Y]
    made = PrivateLabeler(
        learner,
        epsilon=1.0,
        delta=1e-6,
        queries=200,
        max_unstable=20,
        classes=classes,
        members=members,
    )
    result, where, error = None, "", ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UtilityWarning)
        try:
            where = "fit"
            made.fit(records, labels, random_state=1)
            where = "label"
            result = made.label(points)
            where = ""
        except HdpFastError as refused:
            error = str(refused)
    notes = [str(one.message) for one in caught if issubclass(one.category, UtilityWarning)]
    return where, error, notes, result


def main():
    sys.stdout.write(
        "| done | refused in | answers | accuracy | what is said |\n|---|---|---|---|---|\n"
    )
    for mistake in MISTAKES:
        where, error, notes, result = run(mistake)
        answers, accuracy = "none", "-"
        if result is not None:
            _, _, _, classes = MISTAKES[mistake]()
            answers = ", ".join(map(str, np.unique(result.labels)))
            accuracy = f"{np.mean(result.labels == np.array(classes)[TRUTH]):.3f}"
        row = (mistake, where or "-", answers, accuracy, " / ".join([error, *notes]).strip(" /"))
        sys.stdout.write(f"| {' | '.join(row)} |\n")
    sys.stdout.write("\n| members | accuracy | flipped | what is said |\n|---|---|---|---|\n")
    for members in (1, 5, 20, 50, 100, 300, 866):
        _, _, notes, result = run("nothing wrong", members)
        accuracy = np.mean(result.labels == TRUTH)
        flip = getattr(result, "flip_probability", float("nan"))
        said = " / ".join(notes)
        sys.stdout.write(f"| {members} | {accuracy:.3f} | {flip:.3f} | {said} |\n")


if __name__ == "__main__":
    main()
