"""Errors and notes about members that are too many for the records, or too few to be of use."""

from __future__ import annotations

from .._support.notes import note
from ..exceptions import InsufficientSamples
from ..stability.plans import VotePlan
from ..stability.tables import HazardTable

# The largest share of unanimous votes that may be flipped without a note.
MOST_FLIPS = 0.05
# Number of records from which a member learns something.
_FEW_ROWS = 10


def require_records(plan: VotePlan, n: int, k: int, name: str) -> None:
    """Refuse more members than records, and state what members that fit would be worth.

    Args:
        plan: The plan of the labeler.
        n: Number of records.
        k: Number of members.
        name: The records and their number, in words.

    Raises:
        InsufficientSamples: n is less than k.
    """
    if n >= k:
        return
    fit = max(1, n // _FEW_ROWS)
    flip = plan.flip(fit)
    fault = f"{name}, but {k:,} members need one each (the paper: {plan.k_paper:,})"
    rows = f"{fit:,} member{'s' * (fit > 1)} of about {min(n, _FEW_ROWS)} would fit"
    worth = f"even a unanimous vote of them is {_fate(plan)} with probability {flip:.3f}"
    advice = f"take members = {fit:,}"
    if flip > MOST_FLIPS:
        advice = "too much to be of use; a larger epsilon, fewer queries or more records help"
    raise InsufficientSamples(f"{fault}: {rows}, and {worth}: {advice}")


def note_flips(plan: VotePlan, k: int) -> None:
    """Note before anything is spent that so few members are worth little: a public fact."""
    flip = plan.flip(k)
    if flip > MOST_FLIPS:
        fault = f"members = {k:,}, but even a unanimous vote of them is {_fate(plan)}"
        advice = "fewer queries, a larger epsilon or more members make it less"
        note(f"{fault} with probability {flip:.3f} ({plan.k:,} keep beta): {advice}")


def _fate(plan: VotePlan) -> str:
    return "turned into bottom" if isinstance(plan.table, HazardTable) else "flipped"
