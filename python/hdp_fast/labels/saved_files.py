"""The files that keep a labeler: members, checked before anything in them is run, or a model."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._support import atomic
from .._support.atomic import LABELER, STATISTICS_LABELER
from .._support.lazy import load_optional
from .._support.validate import refuse, take_form
from ..data.files import write_atomically
from ..data.reading import read_safely
from ..data.schema import Schema
from ..exceptions import CheckpointError, HdpFastError, ParameterError
from ..learners import FeatureMap, ReleasedStatistics, StatisticsModel
from ..record import PrivacyRecord
from ..stability.plans import VotePlan
from .ensemble import Ensemble
from .fitted import check_free
from .members import Member, turn_of
from .public_facts import Facts
from .public_features import DescentModel, PopulationTest, PublicFeatures

# Raised by one whenever the parts or their names change.
_FORMAT = LABELER + b"4\n"
_DIGEST = 32
_PARTS = {
    "parameters": dict,
    "plan": VotePlan,
    "members": int,
    "record": str | None,
    "ensemble": Ensemble,
    "key": str,
}
_MODEL = {"format": STATISTICS_LABELER, "version": 1}
_MAPS = ("features", "plain")


def ledger_of(file: Path) -> Path:
    """The path of the ledger beside the file with the members."""
    return file.with_name(f"{file.name}.ledger")


def resolve_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path.

    Raises:
        ParameterError: It is no path.
    """
    try:
        return Path(os.path.abspath(os.fsdecode(path)))
    except (TypeError, ValueError):
        refuse("path", path, "it must be a path")


def pack_members(ensemble: Ensemble) -> list[Member]:
    """Pack the members as bytes. One that cannot be packed will predict nothing, and is not named.

    Raises:
        ParameterError: No member at all can be packed.
    """
    _require_joblib()
    members = [
        member.pack(turn_of(ensemble.key, chunk, 0))
        for chunk, member in enumerate(ensemble.members)
    ]
    if not any(member.is_whole() for member in members):
        raise ParameterError("labeler has no member that can be pickled, but save needs that")
    return members


@contextmanager
def new_file(file: Path, kind: str, state: dict[str, Any]) -> Iterator[Callable[[], None]]:
    """Write a file of mode 0600 with all that is kept. Calling what is yielded gives it its name.

    The file is there whole or not at all, and it replaces no other file.

    Raises:
        ParameterError: The file exists or cannot be written.
    """
    content = pickle.dumps({"kind": kind, **state})

    def write(out: IO[bytes]) -> None:
        out.writelines((_FORMAT, _digest(content), content))

    try:
        if file.exists():
            raise FileExistsError("it is there already")
        with atomic.prepare(file, write) as publish:
            yield publish
    except OSError as error:
        rule = f"it must be new and in a folder that can be written ({error})"
        raise ParameterError(f"path = {str(file)!r}, but {rule}") from error


def read_file(file: Path, kind: str) -> dict[str, Any]:
    """Read what save wrote into a file. Reading runs whatever code is in it.

    Raises:
        CheckpointError: It is anything else, or damaged.
        ImportError: joblib is not installed.
    """
    _require_joblib()
    try:
        whole = file.read_bytes()
    except OSError as error:
        rule = f"it must be a file that save wrote ({error})"
        raise CheckpointError(f"path = {str(file)!r}, but {rule}") from error
    start = len(_FORMAT) + _DIGEST
    head, content = whole[:start], whole[start:]
    if head != _FORMAT + _digest(content):
        form = "in the format of this hdp_fast: use the one that wrote it"
        rule = f"it must be a whole file that save wrote, {form}"
        raise CheckpointError(f"path = {str(file)!r}, but {rule}")
    try:
        state = dict(pickle.loads(content))
    except Exception as error:
        # Its text may reveal something of the records behind the members.
        rule = f"it must be a file that save wrote ({type(error).__name__})"
        raise CheckpointError(f"path = {str(file)!r}, but {rule}") from None
    if state.get("kind") != kind or not all(
        isinstance(state.get(name), kinds) for name, kinds in _PARTS.items()
    ):
        rule = f"it must be that of a {kind}, with all its parts"
        raise CheckpointError(f"path = {str(file)!r}, but {rule}")
    return state


def _digest(content: bytes) -> bytes:
    """The digest that a damaged file does not match; anybody can compute it."""
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


def require_free(file: Path) -> None:
    """Refuse to go on if members could not be kept in this new file.

    Raises:
        ImportError: joblib is not installed.
        CheckpointError: The ledger belongs to another file.
    """
    _require_joblib()
    check_free(ledger_of(resolve_path(file)), file)


def _require_joblib() -> None:
    load_optional("joblib", "saving and loading members", "parallel")


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
    text: dict[str, Any] = {**_MODEL, "parameters": parameters}
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
            take_form("the file", text, _MODEL)
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
