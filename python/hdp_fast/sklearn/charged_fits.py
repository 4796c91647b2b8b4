"""Fits of an estimator, or of a pipeline that ends in one, at a price of their own."""

from __future__ import annotations

from typing import Any

from .._support.validate import refuse
from ..budget.account import Budget
from ..exceptions import ParameterError
from .search_plan import Price
from .search_records import Records
from .toolkit import clone, get_config, has_fit_parameter

_RULE = "it must be an estimator of hdp_fast.sklearn, or a pipeline that ends in one"


def takes(estimator: Any, name: str) -> bool:
    """Whether fit of an estimator, or of the last step of a pipeline, has this parameter."""
    while steps := getattr(estimator, "steps", None):
        estimator = steps[-1][1]
    return hasattr(estimator, "fit") and has_fit_parameter(estimator, name)


def path_to_last(estimator: Any) -> str:
    """What stands before the parameters of the private estimator, which must be the last step.

    Raises: ParameterError if there is no private estimator there, or another one before it.
    """
    prefix, last = "", estimator
    while steps := getattr(last, "steps", None):
        prefix, last = f"{prefix}{steps[-1][0]}__", steps[-1][1]
    if not takes(last, "budget"):
        refuse("estimator", estimator, f"its fit takes no budget: {_RULE}")
    names = [name for name in estimator.get_params() if name.rpartition("__")[2] == "epsilon"]
    if names != [f"{prefix}epsilon"]:
        rule = "one epsilon must be there, that of the last step"
        raise ParameterError(f"estimator has {len(names)} parameters named epsilon, but {rule}")
    return prefix


def make_candidate(estimator: Any, params: dict[str, Any], price: Price | None) -> Any:
    """An estimator with these parameters and this price, not yet fit; None is no protection."""
    prefix = path_to_last(estimator)
    candidate = clone(estimator).set_params(**clone(params, safe=False))
    if price is None:
        return candidate.set_params(**{f"{prefix}epsilon": float("inf")})
    prices = {f"{prefix}{name}": value for name, value in price._asdict().items()}
    known = candidate.get_params()
    return candidate.set_params(**{name: prices[name] for name in prices if name in known})


def fit_charged(candidate: Any, records: Records, budget: Budget | None) -> Any:
    """The candidate, fit at the expense of this budget."""
    prefix = path_to_last(candidate)
    passed = {"budget": budget, "sample_domain": records.domain}
    passed = {name: value for name, value in passed.items() if value is not None}
    if prefix and get_config()["enable_metadata_routing"]:
        last = candidate.get_params()[prefix.removesuffix("__")]
        last.set_fit_request(**dict.fromkeys(passed, True))
        prefix = ""
    named = {f"{prefix}{name}": value for name, value in passed.items()}
    return candidate.fit(records.X, records.y, **named)
