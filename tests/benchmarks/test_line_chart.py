from xml.etree import ElementTree as ET

import pytest

from benchmarks.line_chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Line, line_chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines: Line) -> ET.Element:
    return ET.fromstring(line_chart(lines, x_title="GPUs & more", y_title="seconds"))  # noqa: S314 - our own text


def test_values_stand_where_linear_axes_from_zero_put_them() -> None:
    chart = drawn(Line("a < b", (0, 50, 100), (0, 2, 4)), Line("flat", (0, 100), (1, 1)))
    first, second = (each.attrib["points"].split() for each in chart.iter(f"{SVG}polyline"))
    right, top, bottom = WIDTH - RIGHT, TOP, HEIGHT - BOTTOM
    middle = ((LEFT + right) / 2, (top + bottom) / 2)
    assert [tuple(map(float, point.split(","))) for point in first] == [(LEFT, bottom), middle, (right, top)]
    assert {float(point.split(",")[1]) for point in second} == {bottom - (bottom - top) / 4}


def test_titles_and_ticks_are_text() -> None:
    texts = [each.text for each in drawn(Line("a < b", (8, 512), (0.2, 0.47))).iter(f"{SVG}text")]
    assert {"a < b", "GPUs & more", "seconds", "0", "200", "600", "0.1", "0.5"} <= set(texts)


@pytest.mark.parametrize("most", [0.003, 1, 7.5, 512, 4_523_550])
def test_the_axis_ends_at_a_tick_at_or_above_the_greatest_value(most: float) -> None:
    ticks = [float(each.text or "") for each in drawn(Line("x", (1, 1), (0, most))).iter(f"{SVG}text") if _number(each)]
    assert max(ticks) >= most * (1 - 1e-5)


def _number(element: ET.Element) -> bool:
    try:
        float(element.text or "")
    except ValueError:
        return False
    return True
