"""The linear learner of a table that needs no settings but public facts, and its one model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import keep_result
from .._support.parameters import Checked, Rules, optional
from .._support.random_state import check_random_state
from .._support.types import Floats, Integers, RandomState
from .._support.validate import (
    curator_relation,
    instance,
    one_of,
    positive_or_infinite,
    probability,
)
from ..budget.account import Budget, Neighbors
from ..data.chunks import Chunks, settle_owners, take_bare
from ..data.column_kinds import require_label
from ..data.frames import take_columns
from ..data.goal import Goal
from ..data.persons import read_persons
from ..data.rows import Rows
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import ParameterError
from .additive import AdditiveNoise
from .centered_linear import (
    METHODS,
    CenteredModel,
    ClassTask,
    LinearTask,
    TargetTask,
    refuse_steps,
    release_linear,
)
from .centered_rows import PartedRows
from .linear_model import LinearModel
from .moment_equation import to_halves
from .private_model import Link, PrivateModel, check_classes
from .statistics_model import StatisticsModel
from .statistics_noise import LEVEL, chi_square_quantile
from .target_model import TargetModel
from .weight_noise import weight_deviations

# Without noise nothing depends on it.
_UNUSED_DELTA = 0.5


@dataclass(frozen=True)
class CenteredLinear(Checked):
    """Learns a linear model of a private table, by rules that need public numbers alone.

    Columns are scaled to [0, 1] by the schema's bounds. Where records are not too few, the means of
    all columns and of powers of numbers are released with a part of the budget, and columns are
    centered and numbers standardized by them; where records are many, squares of numbers become
    columns, too. The rest pays for the model: a noisy descent, noisy gradients, or least squares on
    one release of second moments. A regression releases an interval and the mean of the target
    first, and slopes around that are shrunk as far as their noise asks for; with few records it is
    the mean alone. It is what `hdp-fast fit` runs, and what
    sklearn.PrivateClassifier and sklearn.PrivateRegressor learn from arrays.

    Attributes:
        schema: Public data.Schema of the table. A label by a rule makes a classifier of the labels
            0 and 1, one between bounds a regression.
        epsilon: Privacy parameter of a run, above 0; math.inf adds no noise and protects no one.
        delta: Privacy parameter, strictly between 0 and 1; only with epsilon = math.inf it may be
            None.
        classes: All labels that there are, two texts or more, which a classifier learns instead of
            the schema's rule; public. None keeps the rule.
        method: "descent" by 8 to 120 noisy steps on all records; "evidence" for a regression whose
            slopes are averaged over priors, weighed by their evidence, "sgd" for logistic, softmax
            or least-squares regression by PrivateSGD, "statistics" for least squares on what
            SufficientStatistics releases, or "additive" for what PrivateAdditive learns, of two
            classes or a target. "auto" is "descent", but for two classes where n mu / columns is
            100 at least: there a look at columns, with a tenth of the square of mu or less,
            chooses between it and "additive".

    Raises:
        ParameterError: A parameter is out of range, or delta is missing.

    Guarantee:
        That of learn.

    Source:
        One Gaussian mechanism, composed of several (Dong, Roth and Su 2022), for "descent" of
        classes. Basic composition (Dwork et al. 2006) of a Gaussian mechanism (Balle and Wang 2018)
        and the learner for the other methods; for a target with "descent" and "evidence" also
        permute-and-flip (McKenna and Sheldon 2020) and discrete Laplace noise (Ghosh, Roughgarden
        and Sundararajan 2009). MacKay 1992 for evidence.

    Examples:
        >>> from hdp_fast.data import Label, Number, Schema
        >>> from hdp_fast.learners import CenteredLinear
        >>> schema = Schema(Label("spent", bounds=(0, 10)), {"age": Number(0, 100)})
        >>> people = {"age": [20, 40, 60] * 20_000, "spent": [2.0, 4.0, 6.0] * 20_000}
        >>> model = CenteredLinear(schema, epsilon=1.0, delta=1e-6).learn(people)
        >>> abs(model.predict({"age": [40]})[0] - 4) < 0.5, model.method, model.record.epsilon
        (True, 'descent', 1.0)
    """

    schema: Schema
    _: KW_ONLY
    epsilon: float
    delta: float | None = None
    classes: Sequence[str] | None = None
    method: str = "descent"

    RULES: ClassVar[Rules] = {
        "schema": partial(instance, kind=Schema, what="a data.Schema"),
        "method": partial(one_of, allowed=METHODS),
        "classes": optional(check_classes),
        "epsilon": positive_or_infinite,
        "delta": optional(probability),
    }

    def __post_init__(self) -> None:
        """Validate the parameters."""
        super().__post_init__()
        if self.epsilon < math.inf and self.delta is None:
            raise ParameterError("delta must be given: only epsilon = math.inf needs none")

    @keep_result
    def learn(
        self,
        table: Any,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        budget: Budget | None = None,
        random_state: RandomState = None,
    ) -> PrivateModel:
        """Learns from private rows.

        For a target a UtilityWarning comes before anything is spent where rows are so few that the
        mean alone is released, and afterwards where released slopes explain less than their noise.

        Args:
            table: A data.Table or a data frame, as data.read_frame takes it, of n rows, with the
                columns of the schema and that of its label; or data.Chunks of such, for all methods
                but "sgd".
            ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then
                for people, who may have several rows. None protects each row. Chunks name the
                column of ids themselves.
            rows_per_person: The most rows of a person that are used, the others being left out;
                public.
            budget: The budget that the whole run is charged to before anything is drawn; None
                charges nothing.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one.

        Returns:
            The model, which may be published.

        Raises:
            ParameterError: The table lacks a column, a row holds none of `classes` (the error says
                neither which row nor what it holds), another argument is out of range, or a run
                without noise comes with a budget. Nothing is spent.
            ShapeError: ids has another length.
            BudgetExceeded: The budget has less than epsilon or delta left. Nothing is spent.

        Guarantee:
            (epsilon, delta)-DP under "replace_one", exact, with the number of rows public: what is
            released is the means, the model, and n. With ids that is for whatever a person's rows
            hold, and ids are public. The schema and classes must not be chosen by a look at the
            rows. With classes it becomes public that each row holds one of them. Where the mean of
            a target is released alone, delta is 0.

        Cost:
            A pass over the table, and that of the method. Chunks are read three to six times, and
            for a descent once more for each step where their integers, two bytes for each column of
            a row, take more than half a gigabyte and the disk has no room for them.
        """
        check_random_state(random_state)
        delta = _UNUSED_DELTA if self.delta is None else self.delta
        goal = Goal(self.epsilon, delta, self._neighbors, budget, random_state)
        rows: Floats | PartedRows
        labels: NDArray[Any] | None = None
        if isinstance(table, Chunks):
            refuse_steps(self.method)
            table.require_passes()
            unit = Rows.of_table(self.schema, self._take(table.peek()))
            chunks, persons = settle_owners(table, ids, rows_per_person)
            rows = PartedRows.open(unit, chunks, self._read_block)
        else:
            records, labels = self._read_block(table)
            unit = Rows.of_table(self.schema, records)
            rows = unit(records)
            persons = read_persons(ids, rows_per_person, len(rows))
        released = release_linear(
            unit,
            rows,
            labels,
            self._task,
            goal._replace(persons=persons),
            name=f"learners.{type(self).__name__}",
            method=self.method,
        )
        n = persons.count_rows(len(rows)) if released.n is None else released.n
        return make_private_model(released, self.classes, n)

    @property
    def _neighbors(self) -> Neighbors:
        """The relation of the guarantee."""
        return "replace_one"

    @property
    def _task(self) -> LinearTask:
        """What is learned."""
        if self.classes is not None:
            return ClassTask(len(self.classes))
        is_target = require_label(self.schema.label).bounds is not None
        return TargetTask() if is_target else ClassTask(2)

    def _take(self, table: Any) -> Table:
        label = require_label(self.schema.label).column
        return take_columns("table", table, [*self.schema.reads, label])

    def _read_block(self, *block: Any) -> tuple[Table, NDArray[Any]]:
        """The columns of a table that are read, and the labels as the task takes them."""
        records = self._take(take_bare(*block))
        if self.classes is not None:
            return records, self._number_labels(records, self.classes)
        if require_label(self.schema.label).bounds is not None:
            return records, self.schema.float_labels(records)
        return records, self.schema.labels(records)

    def _number_labels(self, table: Any, classes: Sequence[str]) -> Integers:
        name = require_label(self.schema.label).column
        column = table.column(name)
        places = {text: place for place, text in enumerate(classes)}
        by_text = np.array([places.get(text, -1) for text in column.texts], np.int64)
        numbers: Integers = by_text[column.codes]
        if (numbers < 0).any():
            rule = "every row must hold one of classes"
            raise ParameterError(f"column {name!r} holds something else, but {rule}")
        return numbers


@dataclass(frozen=True)
class PrivateAdditive(CenteredLinear):
    """Learns an additive model of a private table: a shape for each column, which may bend.

    A number has at most 16 bins, at noisy quantiles where records are many, or 32 where n mu /
    columns is 1,000 or more; a category has one for each value, and one for all others. A score is
    a base and the values of the bins of a row: log-odds of the second class, or a target. Sums of
    residuals over bins are released with noise, one column after the other, in 10 to 60 rounds, and
    shapes follow them as far as a smooth prior says, whose strength is told by the first such sums:
    columns that tell nothing stay flat. Counts of records by score and class say at the end how
    sure scores may be. Where n mu / columns is below 3, which is public, the base is released
    alone. Columns are taken one by one: there are no pairs of them.

    Attributes:
        schema: As CenteredLinear has it; cuts of numbers are not used.
        epsilon: Privacy parameter of a run, above 0; math.inf adds no noise and protects no one.
        delta: Privacy parameter, strictly between 0 and 1; only with epsilon = math.inf it may be
            None.
        classes: The two labels that there are, texts; None keeps the schema's rule.
        method: "additive", and no other.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is private: it is released with noise, and all other noise is about half as
            large for two classes of one size, and .7 times where one of them is rare.

    Raises:
        ParameterError: A parameter is out of range, or delta is missing.

    Guarantee:
        That of learn, under neighbors: one Gaussian mechanism, whose mu the record states, composed
        of several. Under "add_remove" n is one of the released numbers, a model may be learned of
        no rows at all, and how long it takes is not protected.

    Source:
        Dong, Roth and Su 2022 for composition. Nori and others 2021 for additive models of noisy
        sums over bins, by boosting; MacKay 1992 for evidence.

    Examples:
        >>> from hdp_fast.data import Label, Number, Schema
        >>> from hdp_fast.learners import PrivateAdditive
        >>> schema = Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)})
        >>> people = {"age": [20, 45, 70] * 3_000, "bought": ["no", "yes", "no"] * 3_000}
        >>> model = PrivateAdditive(schema, epsilon=1.0, delta=1e-6).learn(people)
        >>> model.predict({"age": [22, 44, 75]}), model.record.law
        ([0, 1, 0], 'gaussian')
    """

    method: str = "additive"
    neighbors: Neighbors = "replace_one"

    RULES: ClassVar[Rules] = {
        **CenteredLinear.RULES,
        "method": partial(one_of, allowed=("additive",)),
        "neighbors": curator_relation,
    }

    @property
    def _neighbors(self) -> Neighbors:
        return self.neighbors


def make_private_model(
    released: CenteredModel, classes: Sequence[str] | None, n: int
) -> PrivateModel:
    """The model of a release of n records, whose rows are those of a schema."""
    assert released.rows.schema is not None
    weights, bound, link = _weigh(released)
    known = released.noise
    return PrivateModel(
        schema=released.rows.schema,
        classes=None if classes is None else tuple(classes),
        rows=released.rows,
        weights=weights,
        norm_bound=bound,
        link=link,
        method=released.method,
        n=n,
        signal=None if released.record is None else _signal(released),
        record=released.record,
        law=released.model.law if isinstance(released.model, TargetModel) else None,
        deviations=weight_deviations(released),
        bands=known.bands if isinstance(known, AdditiveNoise) and released.record else None,
    )


def _weigh(released: CenteredModel) -> tuple[Floats, float, Link]:
    """Weights of all classes, the norm that rows are shrunk to, and the link."""
    model: Any = released.model
    if isinstance(model, TargetModel):
        return model.weights[:, None], model.norm_bound, "target"
    if isinstance(model, StatisticsModel):
        # Its features are the centered rows times this factor, shrunk to norm 1.
        factor = float(model.features.factor[0])
        link: Link = "target" if model.classes is None else "shares"
        if model.link == "logistic":
            link = "logistic"
        return model.coefficients * factor, 1 / factor, link
    if not isinstance(model, LinearModel):
        return model.weights, model.loss.norm_bound, "logistic"
    if model.loss.label_bound is not None:
        return model.weights[:, None], model.loss.norm_bound, "target"
    return to_halves(model.weights), model.loss.norm_bound, "logistic"


def _signal(released: CenteredModel) -> float:
    """How far signal stands out of noise: that of the plan, or of what was learned.

    For gradients, of all records or of those drawn, the longest one that the plan allows over the
    noise in the mean of all steps, whatever the labels are. For statistics, the released weights
    over what noise alone would make of them, but for a chance of a hundredth. For slopes around a
    mean, what they explain over what noise leaves open.
    """
    model: Any = released.model
    if isinstance(released.noise, AdditiveNoise):
        return released.noise.signal
    if isinstance(model, TargetModel):
        return model.signal
    if isinstance(model, StatisticsModel):
        return math.sqrt(max(map(_square, model.coefficients[:-1].T, model.covariances)))
    return 1 / max(float(model.plan.noise), 1e-9)


def _square(weights: NDArray[Any], covariance: Floats) -> float:
    inverse = np.linalg.pinv(covariance[:-1, :-1], hermitian=True)
    square = float(weights @ inverse @ weights)
    return max(square / chi_square_quantile(len(weights), 1 - LEVEL), 1e-9)
