"""Charts of a report as inline SVG, whose marks name the entries of the JSON that they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from ..exceptions import printable
from .report_page import write_text

# A path such as "shift.columns.3.low" in, the entry of the JSON out.
Find = Callable[[str], Any]

_WIDTH, _LEFT, _RIGHT = 640, 190, 30
_ROW, _TOP, _BOTTOM = 34, 14, 46
_SIDE, _MARGIN = 300, 60
_LONGEST_NAME = 24


class Scale(NamedTuple):
    """Numbers from low to high on an axis from start over some length; a length may be negative."""

    low: float
    high: float
    start: float
    length: float

    def place(self, value: float) -> float:
        """Where a number stands; numbers beyond the axis stand at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + share * self.length, 2)

    def ticks(self) -> list[float]:
        """Five numbers along the axis."""
        return [self.low + (self.high - self.low) * step / 4 for step in range(5)]

    def attributes(self, name: str) -> str:
        """The scale itself, as attributes by which a test can check where marks stand."""
        parts = ("low", "high", "start", "length")
        pairs = zip(parts, self, strict=True)
        return "".join(f' data-{name}-{part}="{value:g}"' for part, value in pairs)


class Interval(NamedTuple):
    """An interval and a point in it, as paths of the JSON, and what the chart calls it.

    Attributes:
        kind: Class of the mark: "before", "after" or "plain".
        value: Path of the point; its entry may be None, and then there is no point.
        low: Path of the lower end; None for a point alone.
        high: Path of the upper end.
    """

    kind: str
    value: str
    low: str | None = None
    high: str | None = None


class ChartRow(NamedTuple):
    """A row of a chart of intervals."""

    name: str
    intervals: Sequence[Interval]


def draw_intervals(
    find: Find, rows: Sequence[ChartRow], title: str, description: str, key: str, axis: str
) -> str:
    """Draws intervals below one another, on an axis that begins at 0.

    key: Makes the ids of title and description differ from those of other charts.
    """
    most = max((find(i.high or i.value) or 0.0 for row in rows for i in row.intervals), default=1.0)
    scale = Scale(0.0, _round_up(most), _LEFT, _WIDTH - _LEFT - _RIGHT)
    bottom = _TOP + _ROW * len(rows)
    parts = [_x_axis(scale, _TOP, bottom, axis, _WIDTH / 2 + _LEFT / 2 - _RIGHT / 2)]
    for place, row in enumerate(rows):
        middle = _TOP + _ROW * (place + 0.5)
        label = (
            f'<text x="{_LEFT - 10}" y="{middle + 4:g}" class="name">{write_text(row.name)}</text>'
        )
        parts.append(label)
        step = 10.0 if len(row.intervals) > 1 else 0.0
        for number, interval in enumerate(row.intervals):
            y = middle + step * (number - (len(row.intervals) - 1) / 2)
            parts.append(_across(find, interval, scale, y, row.name))
    return _frame(parts, (_WIDTH, bottom + _BOTTOM), title, description, key, scale.attributes("x"))


def _across(find: Find, interval: Interval, scale: Scale, y: float, name: str) -> str:
    """A horizontal interval with its point."""
    words, parts = f"{name}, {interval.kind}: ", []
    value = find(interval.value)
    if interval.low and interval.high:
        low, high = find(interval.low), find(interval.high)
        words += _describe(value, low, high)
        ends = f'x1="{scale.place(low)}" x2="{scale.place(high)}" y1="{y:g}" y2="{y:g}"'
        keys = f'data-x1-key="{interval.low}" data-x2-key="{interval.high}"'
        parts.append(f"<line {ends} {keys}/>")
    else:
        words += _describe(value)
    if value is not None:
        at = f'cx="{scale.place(value)}" cy="{y:g}" data-cx-key="{interval.value}"'
        parts.append(f'<circle {at} r="4.5"/>')
    body = "".join(parts)
    return f'<g class="{interval.kind}"><title>{write_text(words)}</title>{body}</g>'


class Bar(NamedTuple):
    """A number of either sign and what noise leaves open around it, as paths of the JSON."""

    name: str
    value: str
    low: str
    high: str


def draw_bars(
    find: Find, bars: Sequence[Bar], title: str, description: str, key: str, axis: str
) -> str:
    """Draws numbers of both signs as bars from 0, each with a thin line for its noise."""
    ends_of_all = [abs(find(path)) for bar in bars for path in bar[1:]]
    most = max(ends_of_all, default=0.0) or 1.0
    scale = Scale(-most, most, _LEFT, _WIDTH - _LEFT - _RIGHT)
    bottom = _TOP + _ROW * len(bars)
    parts = [_x_axis(scale, _TOP, bottom, axis, _WIDTH / 2 + _LEFT / 2 - _RIGHT / 2)]
    for place, bar in enumerate(bars):
        y = _TOP + _ROW * (place + 0.5)
        value, low, high = (find(path) for path in bar[1:])
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 4:g}" class="name">{_cut(bar.name)}</text>')
        ends = f'x1="{scale.place(0)}" x2="{scale.place(value)}" y1="{y:g}" y2="{y:g}"'
        line = f'<line class="bar" {ends} data-x2-key="{escape(bar.value)}"/>'
        ends = f'x1="{scale.place(low)}" x2="{scale.place(high)}" y1="{y:g}" y2="{y:g}"'
        keys = f'data-x1-key="{escape(bar.low)}" data-x2-key="{escape(bar.high)}"'
        noise = f'<line class="noise" {ends} {keys}/>'
        words = write_text(f"{bar.name}: {_describe(value, low, high)}")
        kind = "after" if value >= 0 else "before"
        parts.append(f'<g class="{kind}"><title>{words}</title>{line}{noise}</g>')
    return _frame(parts, (_WIDTH, bottom + _BOTTOM), title, description, key, scale.attributes("x"))


def _cut(name: str) -> str:
    """A name that fits to the left of a chart."""
    name = printable(name)
    return write_text(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}\u2026")


class Bin(NamedTuple):
    """A point of a reliability diagram, as paths of the JSON."""

    kind: str
    predicted: str
    rate: str
    low: str
    high: str


def draw_reliability(
    find: Find, bins: Sequence[Bin], title: str, description: str, key: str
) -> str:
    """Draws observed rates against predicted probabilities; a right model is on the diagonal."""
    x = Scale(0.0, 1.0, _MARGIN, _SIDE)
    y = Scale(0.0, 1.0, _TOP + _SIDE, -_SIDE)
    bottom, right = _TOP + _SIDE, _MARGIN + _SIDE
    parts = [
        _x_axis(x, _TOP, bottom, "predicted probability of label 1", _MARGIN + _SIDE / 2),
        _y_axis(y, _MARGIN, right, "share of label 1"),
        f'<line class="diagonal" x1="{_MARGIN}" y1="{bottom}" x2="{right}" y2="{_TOP}"/>',
    ]
    for place, one in enumerate(bins):
        predicted, rate, low, high = (find(path) for path in one[1:])
        at = x.place(predicted)
        words = f"{one.kind}, predicted {predicted:.3f}: {_describe(rate, low, high)}"
        line = f'<line x1="{at}" x2="{at}" y1="{y.place(low)}" y2="{y.place(high)}" '
        line += f'data-x1-key="{one.predicted}" data-y1-key="{one.low}" data-y2-key="{one.high}"/>'
        mark = f'<circle cx="{at}" cy="{y.place(rate)}" r="4.5" '
        mark += f'data-cx-key="{one.predicted}" data-cy-key="{one.rate}"/>'
        text = f"<title>{write_text(words)}</title>"
        parts.append(f'<g class="{one.kind}" data-bin="{place}">{text}{line}{mark}</g>')
    attributes = x.attributes("x") + y.attributes("y")
    size = (_MARGIN + _SIDE + _RIGHT, bottom + _BOTTOM)
    return _frame(parts, size, title, description, key, attributes)


def _describe(value: float | None, low: float | None = None, high: float | None = None) -> str:
    text = "no answer" if value is None else f"{value:.3f}"
    return text if low is None else f"{text}, between {low:.3f} and {high:.3f}"


def _round_up(most: float) -> float:
    """The end of an axis: 1, or a rounder number that is not below."""
    for end in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0):
        if most <= end:
            return end
    return most


def _x_axis(scale: Scale, top: float, bottom: float, name: str, middle: float) -> str:
    parts = []
    for tick in scale.ticks():
        at = scale.place(tick)
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{top}" y2="{bottom:g}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{bottom + 17:g}">{tick:.3g}</text>')
    parts.append(f'<text class="axis" x="{middle:g}" y="{bottom + 38:g}">{write_text(name)}</text>')
    return "".join(parts)


def _y_axis(scale: Scale, left: float, right: float, name: str) -> str:
    parts = []
    for tick in scale.ticks():
        at = scale.place(tick)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="name" x="{left - 8:g}" y="{at + 4:g}">{tick:.3g}</text>')
    middle = scale.place((scale.low + scale.high) / 2)
    turned = f'transform="rotate(-90 16 {middle:g})"'
    parts.append(f'<text class="axis" x="16" y="{middle:g}" {turned}>{write_text(name)}</text>')
    return "".join(parts)


def _frame(
    parts: Sequence[str],
    size: tuple[float, float],
    title: str,
    description: str,
    key: str,
    attributes: str,
) -> str:
    """A drawing with a title and a description for those who do not see it."""
    width, height = size
    names = f'aria-labelledby="{key}-title" aria-describedby="{key}-desc"'
    kind = ' class="wide"' if width == _WIDTH else ""
    head = f'<svg role="img"{kind} {names} viewBox="0 0 {width:g} {height:g}"{attributes} '
    head += f'style="min-width:{0.55 * width:g}px;max-width:{width:g}px">'
    words = f'<title id="{key}-title">{write_text(title)}</title>'
    words += f'<desc id="{key}-desc">{write_text(description)}</desc>'
    return f'<div class="scroll" tabindex="0">{head}{words}{"".join(parts)}</svg></div>'
