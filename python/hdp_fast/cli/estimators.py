"""Learners by name, for ensembles whose members are trained from the command line."""

from __future__ import annotations

import importlib
from typing import Any

from .._support.validate import refuse

# A chunk may hold fewer records than scikit-learn's five neighbors.
_KNOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "logistic": ("sklearn.linear_model.LogisticRegression", {"max_iter": 1000}),
    "ridge": ("sklearn.linear_model.RidgeClassifier", {}),
    "tree": ("sklearn.tree.DecisionTreeClassifier", {}),
    "forest": ("sklearn.ensemble.RandomForestClassifier", {}),
    "neighbors": ("sklearn.neighbors.KNeighborsClassifier", {"n_neighbors": 1}),
    "naive-bayes": ("sklearn.naive_bayes.GaussianNB", {}),
}
RULE = f"{', '.join(_KNOWN)}, or a class as package.module.Class"


def check_name(name: str) -> None:
    """Refuses what is neither a known name nor the dotted path of a class; nothing is imported.

    Raises:
        ParameterError: The name is refused; the error lists the known names.
    """
    if name not in _KNOWN and "." not in name.strip("."):
        refuse("--estimator", name, f"it must be one of {RULE}")


def estimator(name: str) -> Any:
    """Makes an untrained classifier; a class of the caller's own is called without arguments.

    Nothing but a class with fit and predict is called.

    Raises:
        ParameterError: The name is refused by `check_name`, or its class cannot be imported or
            made, or has no fit and predict.
        ImportError: The name needs scikit-learn, which is not installed.
    """
    check_name(name)
    if name in _KNOWN:
        path, options = _KNOWN[name]
        try:
            return _load_class(path)(**options)
        except ImportError as error:
            needed = "scikit-learn: pip install hdp-fast[sklearn]"
            raise ImportError(f"--estimator {name} needs {needed}") from error
    rule = "it must be a class that can be imported and made"
    try:
        kind = _load_class(name)
    except Exception as error:
        refuse("--estimator", name, f"{rule} ({error!r})")
    learns = all(callable(getattr(kind, method, None)) for method in ("fit", "predict"))
    if not (isinstance(kind, type) and learns):
        refuse("--estimator", name, "it must be a class with fit and predict")
    try:
        return kind()
    except Exception as error:
        refuse("--estimator", name, f"{rule} ({error!r})")


def _load_class(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)
