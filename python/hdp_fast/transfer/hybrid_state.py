"""What a HybridRun has released while people take their time: a file that it goes on from."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._support.atomic import require_posix, try_lock
from .._support.validate import file_path, from_json, take_form
from ..budget.account import Budget
from ..data.files import write_atomically
from ..data.reading import parse_file
from ..data.rows import Rows
from ..exceptions import CheckpointError
from ..learners.private_model import PrivateModel
from ..record import PrivacyRecord
from .hybrid_model import HybridModel, HybridPlan
from .shifts import ColumnShift, ShiftReport

_FORM = {"format": "hdp_fast.hybrid_state", "version": 1}
_WRITER = "transfer.HybridRun"


class HybridState:
    """The releases of a run, each on the disk before anybody is asked about it.

    The file holds what was released, and nothing of the panel else. It is written before the first
    draw, so that the price is paid once. What a process drew that then ended was seen by no one,
    and is drawn anew at that price.
    """

    def __init__(self, path: str | os.PathLike[str]):
        """Reads the file, if there is one.

        Raises:
            ParameterError: The file cannot be read, or is none that a run wrote.
        """
        self._path = file_path("state", path)
        self._fields = self._read()

    @property
    def has_begun(self) -> bool:
        """Whether the panel's epsilon is spent."""
        return bool(self._fields)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Lets no other process release anything for this state inside the block.

        Raises:
            CheckpointError: Another one is at work on it, or the lock cannot be made.
        """
        lock = self._path.with_name(f"{self._path.name}.lock")
        try:
            require_posix()
            handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise self._refusal(f"no lock can be made beside it ({error.strerror})") from None
        try:
            if not try_lock(handle, alone=True):
                raise self._refusal("another process is at work on it: wait for its end")
            self._fields = self._read()
            yield
        finally:
            # The lock ends with the process, however that ends; its file stays, and means nothing.
            os.close(handle)

    def _read(self) -> dict[str, Any]:
        if not self._path.exists():
            return {}
        return parse_file(self._path, "state of a hybrid run", _read)

    def check_run(self, run: str) -> None:
        """Refuses a state of another run; `run` is a text of its parameters.

        Raises:
            CheckpointError: It is such a state.
        """
        if self.has_begun and self._fields["run"] != _digest(run):
            rule = "of a run with other parameters: repeat the call that began it"
            raise self._refusal(f"it is {rule}")

    def check_plan(self, plan: HybridPlan) -> None:
        """Refuses a state of another plan.

        Raises:
            CheckpointError: It is such a state.
        """
        if self.has_begun and self._fields["plan"] != dataclasses.asdict(plan):
            rule = "of another number of records or agents: repeat the call that began it"
            raise self._refusal(f"it is {rule}, with its count")

    def is_paid_by(self, budget: Budget | None) -> bool:
        """Whether the run has begun, and this budget has paid for it, or none is to pay now."""
        return self.has_begun and (budget is None or _name(budget) in self._fields["paid"])

    def begin(self, run: str, plan: HybridPlan, budget: Budget | None) -> None:
        """Writes that the first release is about to be drawn, and what budget has paid for it."""
        fresh: dict[str, Any] = {
            "plan": dataclasses.asdict(plan),
            "center": None,
            "learned": None,
            "paid": [],
        }
        fields = {"run": _digest(run), **fresh, **self._fields}
        paid = [] if budget is None else [_name(budget)]
        self._write({**fields, "paid": [*fields["paid"], *paid]})

    def keep_center(self, unit: Rows, release: Callable[[], Rows]) -> Rows:
        """The centered rows that were released, or those of a release that is made and kept."""
        stored = self._fields.get("center")
        if stored is not None:
            center, factor = map(np.array, stored)
            return dataclasses.replace(unit, center=center, factor=factor)
        rows = release()
        # Rows of a run have no squares, of which agents would know nothing.
        assert rows.center is not None
        assert rows.factor is not None
        assert rows.squares is None
        self._write({**self._fields, "center": [rows.center.tolist(), rows.factor.tolist()]})
        return rows

    def keep_learned(self, learned: HybridModel) -> None:
        """Keeps the model that was released."""
        self._write({**self._fields, "learned": _describe(learned)})

    @property
    def learned(self) -> HybridModel | None:
        """The released model, if it has been learned."""
        fields = self._fields.get("learned")
        return None if fields is None else _restore(fields)

    def _write(self, fields: dict[str, Any]) -> None:
        text = json.dumps({**_FORM, **fields})
        write_atomically(self._path, f"{text}\n".encode())
        self._fields = fields

    def _refusal(self, rule: str) -> CheckpointError:
        return CheckpointError(f"state = {str(self._path)!r}, but {rule}")


def _read(text: str) -> dict[str, Any]:
    return from_json("state", text, _WRITER, _from_fields)


def _from_fields(fields: dict[str, Any]) -> dict[str, Any]:
    take_form("state", fields, _FORM)
    if fields.keys() != {"run", "plan", "center", "learned", "paid"}:
        raise ValueError("other fields")
    if fields["learned"] is not None:
        _restore(fields["learned"])
    return fields


def _name(budget: Budget) -> str:
    """What tells a budget from others: its file, or for one in memory its process and object."""
    path = budget.path
    return f"memory {os.getpid()} {id(budget)}" if path is None else os.path.realpath(path)


def _digest(run: str) -> str:
    return hashlib.sha256(run.encode()).hexdigest()


def _describe(learned: HybridModel) -> dict[str, Any]:
    shift = learned.shift
    return {
        "model": json.loads(learned.model.to_json()),
        "shift": None if shift is None else dataclasses.asdict(shift),
        "left_out": list(learned.left_out),
        "plan": dataclasses.asdict(learned.plan),
        "records": [dataclasses.asdict(record) for record in learned.records],
    }


def _restore(fields: dict[str, Any]) -> HybridModel:
    model = PrivateModel.from_json(json.dumps(fields["model"]))
    return HybridModel(
        model=model,
        panel_model=model,
        shift=None if fields["shift"] is None else _restore_shift(**fields["shift"]),
        left_out=tuple(fields["left_out"]),
        plan=HybridPlan(**fields["plan"]),
        calibrated=None,
        certificates={},
        records=tuple(PrivacyRecord(**record) for record in fields["records"]),
    )


def _restore_shift(columns: Any, record: Any, agents_record: Any, **numbers: Any) -> ShiftReport:
    return ShiftReport(
        columns=tuple(ColumnShift(**column) for column in columns),
        record=None if record is None else PrivacyRecord(**record),
        agents_record=PrivacyRecord(**agents_record),
        **numbers,
    )
