"""What a budget shows of its releases: entries, in order of time, and their table."""

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
        record: the release; of a scope, what was set aside for it.
        state: "reserved" (running, or the process died), "interrupted" (it raised), "committed",
            or "scope"; spent, in any case.
        time: when it was reserved, UTC.
        scope: path of names below the budget; empty where this budget itself was charged.
    """

    record: PrivacyRecord
    state: str
    time: datetime
    scope: str = ""


def list_entries(
    accounts: dict[int, Account], rows: list[Row], top: int, relation: str
) -> tuple[Entry, ...]:
    """Every release from one account and its scopes, in order of time.

    accounts, rows: all of the ledger; top: the number of the account; relation: of the ledger.
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
    """A title over the table of entries, as notebooks show a budget."""
    head = _html_row("th", ("time (UTC)", "scope", "mechanism", "epsilon", "delta", "state"))
    body = "".join(_html_row("td", _cells(entry)) for entry in entries)
    return f"<p><code>{html.escape(title)}</code></p><table>{head}{body}</table>"


def _list_paths(accounts: dict[int, Account], top: int) -> dict[int, str]:
    """The path of names of every account at or below one of them; parents come first."""
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
