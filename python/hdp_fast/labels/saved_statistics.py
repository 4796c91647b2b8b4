"""The file that keeps a statistics labeler: numbers and texts alone, no pickle, nothing private."""

from __future__ import annotations

import dataclasses
import io
import json
import os
from typing import Any

import numpy as np

from .._support.kept_files import STATISTICS_LABELER
from .._support.validate import refuse, take_form
from ..data.files import write_atomically
from ..data.reading import read_safely
from ..data.schema import Schema
from ..exceptions import CheckpointError, HdpFastError
from ..learners import FeatureMap, ReleasedStatistics, StatisticsModel
from ..record import PrivacyRecord
from .descent_model import DescentModel
from .population_test import PopulationTest
from .public_facts import Facts
from .public_features import PublicFeatures
from .saved_file import resolve_path

_FORMAT = {"format": STATISTICS_LABELER, "version": 1}
_MAPS = ("features", "plain")


def write_labeler(
    path: str | os.PathLike[str], parameters: dict[str, Any], fitted: dict[str, Any]
) -> None:
    """Write a new file.

    Raises:
        ParameterError: The file exists or cannot be written, or a map is one of a function.
    """
    file = resolve_path(path)
    if file.exists():
        refuse("path", str(path), "it must be a new file")
    features: PublicFeatures = fitted["features"]
    model, facts = fitted["model"], fitted["facts"]
    arrays = {"fill": features.fill, "coefficients": model.coefficients}
    for name in _MAPS:
        arrays |= {f"{name}_{key}": a for key, a in getattr(features, name).to_arrays().items()}
    text: dict[str, Any] = {**_FORMAT, "parameters": parameters}
    text["classes"] = fitted["classes"].tolist()
    text["schema"] = None if features.schema is None else features.schema.to_json()
    text["facts"] = None if facts is None else dataclasses.asdict(facts)
    text["record"] = fitted["record"].to_json()
    text["test"] = None if fitted["test"] is None else dataclasses.asdict(fitted["test"])
    text["statistics"] = None
    if fitted["statistics"] is not None:
        text["statistics"] = fitted["statistics"].to_json()
        text["penalty"] = model.penalty
        arrays["covariances"] = model.covariances
    content = io.BytesIO()
    np.savez_compressed(content, text=np.array(json.dumps(text)), **arrays)
    write_atomically(file, content.getvalue())


def read_labeler(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the parameters and the state that write_labeler wrote.

    Raises:
        CheckpointError: The file is another one, or damaged.
    """
    file = resolve_path(path)
    try:
        with read_safely(file, "file that StatisticsLabeler.save wrote"):
            with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            text = json.loads(str(arrays.pop("text")[()]))
            take_form("the file", text, _FORMAT)
            return _restore(text, arrays)
    except HdpFastError as error:
        raise CheckpointError(str(error)) from None


def _restore(text: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    maps = {
        name: FeatureMap.from_arrays(
            {k.removeprefix(f"{name}_"): a for k, a in arrays.items() if k.startswith(f"{name}_")}
        )
        for name in _MAPS
    }
    schema = None if text["schema"] is None else Schema.from_json(text["schema"])
    features = PublicFeatures(schema, arrays["fill"], **maps)
    classes, facts = np.array(text["classes"]), text["facts"]
    statistics: ReleasedStatistics | None = None
    model: Any = DescentModel(features.plain, classes, arrays["coefficients"])
    record = PrivacyRecord.from_json(text["record"])
    if text["statistics"] is not None:
        statistics = ReleasedStatistics.from_json(text["statistics"])
        model = StatisticsModel(
            features=features.features,
            classes=classes,
            coefficients=arrays["coefficients"],
            link="logistic",
            penalty=text["penalty"],
            label_bound=None,
            covariances=arrays["covariances"],
            record=statistics.record,
        )
    if len(features.fill) != (maps["features"].columns_in or len(features.fill)):
        raise ValueError("its arrays have other shapes")
    state = {
        "classes": classes,
        "facts": None if facts is None else _facts(facts),
        "features": features,
        "model": model,
        "statistics": statistics,
        "test": None if text["test"] is None else PopulationTest(**text["test"]),
        "record": record,
    }
    parameters = {**text["parameters"], "classes": text["classes"], "schema": schema}
    return parameters, state


def _facts(facts: dict[str, Any]) -> Facts:
    columns = facts["columns"]
    return Facts(
        container=facts["container"],
        columns=None if columns is None else tuple(columns),
        kinds=tuple(facts["kinds"]),
        dtypes=tuple(facts["dtypes"]),
    )
