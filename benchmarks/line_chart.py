"""Draws a line chart as SVG, with nothing but text: linear axes from zero, a mark at each value, a legend."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 20, 50
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#9a6700")
TICKS = 5


@dataclass(frozen=True)
class Line:
    """Values over positions, both from zero."""

    title: str
    x: tuple[float, ...]
    y: tuple[float, ...]


def line_chart(lines: Sequence[Line], *, x_title: str, y_title: str) -> str:
    """The chart as an SVG document.

    Args:
        lines: what is drawn, at most as many as there are colours; no value is negative, and some are positive.
        x_title: what stands below, with its unit.
        y_title: what stands beside, with its unit.
    """
    x_step, y_step = (_step(max(max(values) for values in some)) for some in _columns(lines))
    x_most, y_most = (
        step * math.ceil(max(max(values) for values in some) / step)
        for step, some in zip((x_step, y_step), _columns(lines), strict=True)
    )

    def at(x: float, y: float) -> tuple[float, float]:
        across, up = x / x_most * (WIDTH - LEFT - RIGHT), y / y_most * (HEIGHT - TOP - BOTTOM)
        return round(LEFT + across, 1), round(HEIGHT - BOTTOM - up, 1)

    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13">\n<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n'
    )
    for value in _ticks(x_step, x_most):
        x, y = at(value, 0)
        text += f'<text x="{x}" y="{y + 18}" text-anchor="middle">{value:g}</text>\n'
    for value in _ticks(y_step, y_most):
        x, y = at(0, value)
        text += f'<path d="M{x} {y}H{WIDTH - RIGHT}" stroke="#d0d7de"/>\n'
        text += f'<text x="{x - 8}" y="{y + 4}" text-anchor="end">{value:g}</text>\n'
    text += f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_title)}</text>\n'
    middle = (TOP + HEIGHT - BOTTOM) / 2
    text += f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle">{escape(y_title)}</text>\n'
    for number, (line, colour) in enumerate(zip(lines, COLOURS, strict=False)):
        points = [at(x, y) for x, y in zip(line.x, line.y, strict=True)]
        path = " ".join(f"{x},{y}" for x, y in points)
        text += f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>\n'
        text += "".join(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>\n' for x, y in points)
        row = TOP + 18 * (number + 1)
        text += f'<path d="M{LEFT + 12} {row - 4}h20" stroke="{colour}" stroke-width="2"/>\n'
        text += f'<text x="{LEFT + 38}" y="{row}">{escape(line.title)}</text>\n'
    return text + "</svg>\n"


def _columns(lines: Sequence[Line]) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    return [line.x for line in lines], [line.y for line in lines]


def _step(most: float) -> float:
    """A round distance of ticks: 1, 2 or 5 times a power of ten."""
    rough = most / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


def _ticks(step: float, most: float) -> Iterator[float]:
    return (step * count for count in range(round(most / step) + 1))
