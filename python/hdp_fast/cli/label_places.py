"""Where hdp-fast label puts its results, checked before any of them is paid for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from .._support.validate import refuse
from ..data.table import suffix_of
from ..exceptions import ParameterError
from ..labels.saved_files import require_free
from .appended_column import check_printable
from .output import check_outputs, is_standard


@dataclass(frozen=True)
class LabelPlaces:
    """Where results go; no output means the standard output."""

    output: Path | None
    record: Path
    plot: Path | None


def place_results(arguments: argparse.Namespace) -> LabelPlaces:
    """Where results go, checked before answers are paid for that could not be kept.

    Raises: ParameterError, ImportError.
    """
    places = _name_places(arguments)
    if not (arguments.plan or arguments.suggest):
        _check_new(places, arguments)
    return places


def _name_places(arguments: argparse.Namespace) -> LabelPlaces:
    public, output, record = arguments.public, arguments.output, arguments.record
    suffix = ".csv" if is_standard(public) else suffix_of(public)
    if is_standard(output):
        return LabelPlaces(None, _record_beside_print(arguments, suffix), arguments.plot)
    if output is None:
        stem = "public" if is_standard(public) else public.name.removesuffix(suffix)
        output = public.with_name(f"{stem}.labeled{suffix}")
        if is_standard(public) and not (arguments.plan or arguments.suggest):
            raise ParameterError("PUBLIC is the standard input, but then --output must be given")
    elif not output.name.endswith(suffix):
        refuse("--output", str(output), f"it must end in {suffix}, as PUBLIC does")
    return LabelPlaces(output, record or output.with_name(f"{output.name}.json"), arguments.plot)


def _record_beside_print(arguments: argparse.Namespace, suffix: str) -> Path:
    """Where the record goes if the table is printed, and nothing else can be.

    Raises: ParameterError.
    """
    check_printable("--output", suffix)
    if arguments.json and not (arguments.plan or arguments.suggest):
        raise ParameterError("--output - prints the table, but --json prints the record")
    if arguments.record is None and not (arguments.plan or arguments.suggest):
        raise ParameterError("--output - must go with --record FILE, for what protects the rows")
    record: Path | None = arguments.record
    return record or Path("-")


def _check_new(places: LabelPlaces, arguments: argparse.Namespace) -> None:
    new, save = [places.output, places.record, places.plot], arguments.save
    if save is not None and not save.exists():
        require_free(save)
        new.append(save)
    check_outputs(arguments, new)
