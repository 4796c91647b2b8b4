"""A classifier of a panel, calibrated for everybody else, as an estimator of scikit-learn."""

from __future__ import annotations

import functools
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.feature_names import names_of
from .._support.notes import keep_result, note
from .._support.random_state import make_public_generator, make_stream
from .._support.types import Floats, RandomState
from .._support.validate import one_of, positive, refuse
from ..budget.account import Budget
from ..data import Chunks, Table
from ..exceptions import ParameterError
from ..learners import PrivateModel, score_of
from ..learners.moment_equation import softmax, to_halves
from ..local import Agents
from ..local.estimation import advantage
from ..record import PrivacyRecord
from ..transfer import CalibratedModel
from ..transfer.calibration_plan import check_count
from ..transfer.hybrid_model import repair
from .private_classifier import PrivateClassifier
from .private_estimator import SeededEstimator, find_missing, refuse_missing
from .row_labels import TargetScores, check_classes, code_labels, encode, read_domains
from .toolkit import (
    ClassifierMixin,
    accuracy_score,
    check_classification_targets,
    check_consistent_length,
    check_is_fitted,
    clone,
    column_or_1d,
    has_fit_parameter,
    select_rows,
    shield_code,
    takes_missing,
    validate_data,
)

Method = Literal["logistic", "isotonic"]


class HybridClassifier(TargetScores, ClassifierMixin, SeededEstimator):  # type: ignore[misc]
    """A model of a panel whose probabilities are calibrated by agents of the target.

    The source is a panel of people who opted in and handed their records to a curator; the target
    is everybody else. A classifier of two classes learns from the panel. Each agent of the target
    answers one question about its score or its label with one randomized bit, and a map from the
    panel's scores to probabilities is fitted to the answers by transfer.calibrate. That repairs a
    panel whose ranking is right and whose base rate is wrong. Where the answers do not show that
    another map is better, the panel's model stays as it is.

    Rows of both stand in one table, and `sample_domain` says which is which. The agents are
    simulated: the process that fits holds their rows, as in an experiment or a rehearsal. For real
    people fit `panel_` alone, and pass it to transfer.calibrate with local.RemoteAgents.

    Args:
        estimator: The classifier that learns from the panel; fit clones it. A PrivateClassifier
            protects the panel; any other one with predict_proba or decision_function protects it as
            far as it does so itself.
        agents_epsilon: Privacy parameter of each agent's answer, a finite number above 0. It must
            be chosen.
        method: "logistic" for slope and intercept of the score, or "isotonic" for a monotone map.
        test_seed: None draws the agents' random bits, and the order in which they are asked, from
            the operating system. An int or a Generator makes a reproducible stream for tests, which
            protects no one. A private estimator has a test_seed of its own.

    Attributes:
        classes_: The two classes in order.
        n_features_in_: Number of columns of X in fit.
        feature_names_in_: Their names; only where X had names.
        panel_: The classifier of the panel, fitted.
        calibrated_: The transfer.CalibratedModel of the panel's scores; None without agents.
        domain_sizes_: Numbers of people in the panel and of agents; None for a panel alone.
        record_: The PrivacyRecord of the panel; None where the estimator has none.
        agents_record_: The PrivacyRecord of each agent's answer; None without agents.

    Guarantee:
        That of fit.

    Cost:
        That of the estimator, and a pass of its model over the agents.

    Source:
        Kohen and Sheffet 2022 for the hybrid model; Platt 1999; Warner 1965.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.sklearn import HybridClassifier, PrivateClassifier
        >>> rng = np.random.default_rng(0)
        >>> X, domain = rng.normal(0, 2, (40_000, 1)), np.repeat([0, -1], [10_000, 30_000])
        >>> y = rng.random(40_000) < 1 / (1 + np.exp(np.where(domain < 0, 2, 0) - X[:, 0]))
        >>> panel = PrivateClassifier(epsilon=1.0, bounds=(-8, 8), classes=[False, True])
        >>> model = HybridClassifier(panel, agents_epsilon=4.0).fit(X, y, sample_domain=domain)
        >>> bool(model.panel_.predict_proba([[0]])[0, 1] > 0.4 > model.predict_proba([[0]])[0, 1])
        True
        >>> model.record_.epsilon, model.agents_record_.epsilon
        (1.0, 4.0)
    """

    calibrated_: CalibratedModel | None
    agents_record_: PrivacyRecord | None

    def __init__(
        self,
        estimator: Any,
        *,
        agents_epsilon: float | None = None,
        method: Method = "logistic",
        test_seed: RandomState = None,
    ):
        """Keep the parameters, which fit validates."""
        self.estimator = estimator
        self.agents_epsilon = agents_epsilon
        self.method = method
        self.test_seed = test_seed

    @keep_result
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
        *,
        agents: tuple[Any, ArrayLike] | None = None,
        budget: Budget | None = None,
    ) -> Self:
        """Learns from the panel, and asks the agents.

        fit warns with a UtilityWarning where the answers leave the panel's model as it was.

        Args:
            X: The records of the panel and of the agents, in any order, as the estimator takes
                them. Or data.Chunks of the panel alone with its labels, for a PrivateClassifier.
            y: Their labels, shape (n,), of two classes; None beside Chunks.
            sample_domain: Public integers of shape (n,): 0 or more for a row of the panel, below 0
                for an agent, of whom there must be 60 or none. None says that all are of the panel:
                then no one is asked.
            agents: Beside Chunks the records of the agents and their labels, as a pair (X, y); None
                asks no one.
            budget: The budget that the panel's fit is charged to, for an estimator whose fit takes
                one; None charges nothing. The agents' answers are charged to no one: each agent
                answers once in a fit.

        Returns:
            The estimator itself.

        Raises:
            ParameterError: A parameter lies outside its range, sample_domain lacks a domain or
                holds something else than integers, there are fewer than 60 agents, a label is none
                of the classes, the estimator's fit takes no budget, or an argument comes beside
                Chunks, or agents without them.
            ShapeError: sample_domain does not fit the rows of X.
            ValueError: There are more classes than two, X or y is no array of finite numbers, or
                what else the estimator raises.
            BudgetExceeded: The budget has less left than the panel's fit needs.

        Guarantee:
            Two of them. A person of the panel has what the estimator promises, which record_
            states; with a PrivateClassifier (epsilon, delta)-DP under "replace_one", with the
            number of people public. An agent's answer is pure agents_epsilon-DP, locally, against
            everybody who sees the fitted estimator: nothing but one randomized bit of each agent
            enters it. Every fit asks the agents again, also those of a search or a
            cross-validation, and the epsilons of their answers add up. For a person who stands in
            both domains, both guarantees add up. sample_domain is public. The process that fits
            holds all rows. What is wrong with agents' rows of a data frame may raise an error after
            the panel's fit has been charged.
        """
        self._check_settings(budget)
        charge = {} if budget is None else {"budget": budget}
        fit = functools.partial(clone(self.estimator).fit, **charge)
        panel: tuple[Any, ...] = (X,)
        if isinstance(X, Chunks):
            asked = self._read_agents(X, y, sample_domain, agents)
        else:
            panel, asked = self._split(X, y, sample_domain, agents)
        if asked is None:
            name, rows = "sample_domain", "those below 0"
            if isinstance(X, Chunks):
                name, rows = "agents", "the pair agents=(X, y)"
            note(
                f"{name} = None makes all rows the panel's: no agent is asked, and agents_epsilon"
                f" has no effect; rows of agents are {rows}"
            )
        fitted = shield_code("estimator", fit, *panel)
        self.classes_ = check_two(fitted.classes_)
        self.panel_, self.record_ = fitted, getattr(fitted, "record_", None)
        self.calibrated_, self.agents_record_, self.domain_sizes_ = None, None, None
        if asked is not None:
            self._ask(*asked)
            people = X.count() if isinstance(X, Chunks) else len(panel[1])
            self.domain_sizes_ = people, len(asked[1])
        elif isinstance(X, Chunks):
            copy_names(fitted, self)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Computes the log-odds of the second class.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            A float64 array of shape (m,), above 0 where the second class is predicted. Without
            agents it holds the panel's scores.

        Raises:
            ValueError: fit has not been called (a NotFittedError), or what the panel's model raises
                about X.
        """
        check_is_fitted(self)
        if names_of(X) is None:
            allowed = takes_missing(self.estimator)
            X = validate_data(self, X, dtype=np.float64, allow_missing=allowed, reset=False)
        else:
            validate_data(self, X, skip_check_array=True, reset=False)
        scores = shield_code("estimator", score_of(self.panel_), X)
        return scores if self.calibrated_ is None else self.calibrated_.apply(scores)

    def predict_proba(self, X: Any) -> Floats:
        """Computes the probability of both classes, calibrated for the target.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            A float64 array of shape (m, 2), whose rows add up to 1.

        Raises:
            ValueError: As in decision_function.
        """
        return softmax(to_halves(self.decision_function(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts the class that is more probable in the target.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            An array of shape (m,) of classes.

        Raises:
            ValueError: As in decision_function.
        """
        odds = self.decision_function(X)
        labels: NDArray[Any] = self.classes_[(odds > 0).astype(np.intp)]
        return labels

    def to_json(self, *, label: str | None = None) -> str:
        """Writes the model of the panel with its calibration as JSON, as PrivateClassifier does.

        learners.PrivateModel.from_json reads it, and `hdp-fast predict` on the command line.

        Args:
            label: Name of the column that is predicted. None takes that of the schema's label, or
                "label".

        Returns:
            The text, with the records of the panel and of the agents' answers.

        Raises:
            ParameterError: The model of the panel is none of a PrivateClassifier, or label is the
                name of a feature.
            ValueError: fit has not been called (a NotFittedError).
        """
        check_is_fitted(self)
        if not isinstance(self.panel_, PrivateClassifier):
            kind = type(self.panel_).__name__
            raise ParameterError(f"estimator is a {kind}, but only a PrivateClassifier is written")
        model, calibrated = (
            PrivateModel.from_json(self.panel_.to_json(label=label)),
            self.calibrated_,
        )
        if calibrated is not None:
            model = model.with_calibration(calibrated.knots, calibrated.shifts, self.agents_record_)
        return model.to_json()

    def __sklearn_tags__(self) -> Any:
        """The tags of scikit-learn: two classes only, and missing values if the estimator is so."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = takes_missing(self.estimator)
        return tags

    def _measure(self, labels: NDArray[Any], predictions: NDArray[Any], weights: Any) -> float:
        return accuracy_score(labels, predictions, weights)

    def _check_settings(self, budget: Budget | None) -> None:
        one_of("method", self.method, ("logistic", "isotonic"))
        missing: dict[str, str] = {}
        if self.agents_epsilon is None:
            missing["agents_epsilon"] = "a number above 0, for the answer of each agent"
        if isinstance(self.estimator, SeededEstimator):
            missing |= {f"estimator.{name}": r for name, r in find_missing(self.estimator).items()}
        refuse_missing(missing)
        advantage(positive("agents_epsilon", self.agents_epsilon))
        self._check_seed()
        if budget is not None and not has_fit_parameter(self.estimator, "budget"):
            rule = "the fit of its estimator takes none"
            raise ParameterError(f"budget = {budget!r}, but {rule}")

    def _read(
        self, X: Any, y: ArrayLike, sample_domain: ArrayLike | None
    ) -> tuple[Any, NDArray[Any], NDArray[np.bool_] | None]:
        """The records, their labels, and whether each is an agent's; None for a panel alone."""
        if names_of(X) is None:
            allowed = takes_missing(self.estimator)
            # The panel's estimator reads types: integers must stay what they are.
            X, labels = validate_data(self, X, y, dtype="numeric", allow_missing=allowed)
        else:
            validate_data(self, X, skip_check_array=True)
            labels = column_or_1d(y, warn=True)
            check_consistent_length(X, labels)
        check_classification_targets(labels)
        classes = getattr(self.estimator, "classes", None)
        if classes is not None:
            check_two(code_labels(labels, check_classes(classes))[1])
        elif len(np.unique(labels)) > 2:
            check_two(np.unique(labels))
        if sample_domain is None:
            return X, labels, None
        domains = read_domains(sample_domain, len(labels))
        check_count("agents", int(domains.sum()))
        return X, labels, domains

    def _split(self, X: Any, y: Any, sample_domain: Any, agents: Any) -> tuple[Any, Any]:
        """The records of the panel and of the agents, both with their labels; None for no one."""
        if agents is not None:
            rule = "sample_domain says which rows are theirs: they come apart beside Chunks alone"
            raise ParameterError(f"agents were passed beside X and y, but {rule}")
        table, labels, domains = self._read(X, y, sample_domain)
        if domains is None:
            return (table, labels), None
        places = np.flatnonzero(~domains), np.flatnonzero(domains)
        panel, asked = ((select_rows(table, some), labels[some]) for some in places)
        return panel, asked

    def _read_agents(
        self, panel: Chunks, y: Any, sample_domain: Any, agents: Any
    ) -> tuple[Any, NDArray[Any]] | None:
        """The records of the agents of a panel in parts, and their labels; None for no one."""
        if y is not None or sample_domain is not None:
            rule = "Chunks are the panel and hold its labels: agents=(X, y) are the others"
            raise ParameterError(f"y or sample_domain was passed beside Chunks, but {rule}")
        if not isinstance(self.estimator, PrivateClassifier):
            kind = type(self.estimator).__name__
            raise ParameterError(f"estimator is a {kind}, but Chunks take a PrivateClassifier")
        panel.require_rows()
        if self.estimator.classes is not None:
            check_two(np.asarray(check_classes(self.estimator.classes)))
        if agents is None:
            return None
        if not isinstance(agents, tuple) or len(agents) != 2:
            refuse("agents", type(agents).__name__, "it must be a pair (X, y) or None")
        records, labels, _ = self._read(*agents, None)
        check_count("agents", len(labels))
        if self.estimator.schema is None:
            self._require_same(panel)
        return records, labels

    def _require_same(self, panel: Chunks) -> None:
        """Refuses agents of other columns than those of a panel in parts."""
        head = panel.with_tables().first()[0]
        names = tuple(head.columns) if isinstance(head, Table) else None
        width = head.shape[1] if names is None else len(names)
        asked = getattr(self, "feature_names_in_", None)
        same = names is None or asked is None or tuple(asked) == names
        if width != self.n_features_in_ or not same:
            rule = "they must have the columns of Chunks in the same order"
            raise ParameterError(f"agents have {self.n_features_in_} columns, but {rule}")

    def _ask(self, records: Any, labels: NDArray[Any]) -> None:
        """Fit the map of scores to the answers of agents, who stand in no particular order."""
        codes = encode(labels, self.classes_)
        scores = shield_code("estimator", score_of(self.panel_), records)
        stream = make_stream(self.test_seed)
        order = make_public_generator(stream).permutation(len(codes))
        assert self.agents_epsilon is not None
        agents = Agents(scores[order, None], codes[order], epsilon=self.agents_epsilon)
        told = repair(take_score, agents, count=len(codes), method=self.method, random_state=stream)
        self.calibrated_, self.agents_record_ = told.calibrated, told.calibrated.agents_record


def copy_names(fitted: Any, estimator: Any) -> None:
    """Gives an estimator the columns that another one was fitted to."""
    estimator.n_features_in_ = fitted.n_features_in_
    if hasattr(fitted, "feature_names_in_"):
        estimator.feature_names_in_ = fitted.feature_names_in_


def take_score(records: Any) -> Floats:
    """The score of agents whose record is their score."""
    scores: Floats = np.asarray(records)[:, 0]
    return scores


def check_two(classes: NDArray[Any]) -> NDArray[Any]:
    """The classes, which must be two."""
    if len(classes) != 2:
        kind = "multiclass" if len(classes) > 2 else "a single class"
        raise ParameterError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    return classes
