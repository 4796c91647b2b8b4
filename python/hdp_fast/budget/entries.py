"""What a budget shows of its releases: entries in order of time, and their table."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from datetime import datetime

from ..record import PrivacyRecord
from .tables import Account, Row


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a budget's books.

    Attributes:
        record: The `PrivacyRecord` of the release; for a scope, of what was set aside for it.
        state: "reserved" (the mechanism runs, or its process died), "interrupted" (it raised),
            "committed", or "scope". The amount is spent in every state.
        time: When it was reserved, in UTC.
        scope: The path of names from the budget down to the account that was charged; empty if the
            budget itself was charged.

    Examples:
        >>> from hdp_fast import noise
        >>> from hdp_fast.budget import Budget
        >>> budget = Budget(1.0)
        >>> _ = noise.permute_and_flip([30, 950], epsilon=0.5, budget=budget)
        >>> [(entry.record.mechanism, entry.state) for entry in budget.records]
        [('noise.permute_and_flip', 'committed')]
    """

    record: PrivacyRecord
    state: str
    time: datetime
    scope: str = ""


def list_entries(
    accounts: dict[int, Account], rows: list[Row], top: int, relation: str
) -> tuple[Entry, ...]:
    """Every release from one account and its scopes, in order of time.

    accounts and rows are those of the whole ledger, top is the number of the account, and relation
    is that of the ledger.
    """
    paths = _list_paths(accounts, top)
    releases = [
        Entry(record=row.record, state=row.state, time=row.time, scope=paths[row.account])
        for row in rows
        if row.account in paths
    ]
    scopes = [accounts[number] for number in paths if number != top]
    totals = [
        _describe_scope(scope, paths[scope.parent], relation)
        for scope in scopes
        if scope.kind != "part" and scope.charge.epsilon
    ]
    return tuple(sorted(totals + releases, key=lambda entry: entry.time))


def render_html(title: str, entries: tuple[Entry, ...]) -> str:
    """A title above the table of entries, as notebooks show a budget."""
    head = _html_row("th", ("time (UTC)", "scope", "mechanism", "epsilon", "delta", "state"))
    body = "".join(_html_row("td", _cells(entry)) for entry in entries)
    return f"<p><code>{html.escape(title)}</code></p><table>{head}{body}</table>"


def _list_paths(accounts: dict[int, Account], top: int) -> dict[int, str]:
    """The path of names of an account and of every account below it; parents come first."""
    paths = {top: ""}
    for account in accounts.values():
        if account.parent in paths:
            paths[account.id] = f"{paths[account.parent]}/{account.name}".removeprefix("/")
    return paths


def _describe_scope(scope: Account, path: str, relation: str) -> Entry:
    epsilon, delta = scope.charge.floats(math.inf)
    record = PrivacyRecord(
        mechanism=f"budget.{scope.kind}, name={scope.name}",
        source=f"{'basic' if scope.kind == 'sequential' else 'parallel'} composition",
        neighbors=relation,  # type: ignore[arg-type]
        epsilon=epsilon,
        delta=delta,
        noise="that of the releases inside",
    )
    return Entry(record=record, state="scope", time=scope.time, scope=path)


def _cells(entry: Entry) -> tuple[str, ...]:
    record, time = entry.record, f"{entry.time:%Y-%m-%d %H:%M:%S}"
    amounts = f"{record.epsilon:g}", f"{record.delta:g}"
    return (time, entry.scope, record.mechanism, *amounts, entry.state)


def _html_row(tag: str, cells: tuple[str, ...]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
