"""Tables for the terminal, without colour where the output is no terminal."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dgdr_cli.plain_text import plain

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 160
"""Columns of a table that is not shown on a terminal."""


def console(*, stderr: bool = False) -> "Console":
    """The console: coloured on a terminal, plain and of one width elsewhere."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made = Console(stderr=stderr, highlight=False, no_color=True, width=PLAIN_WIDTH)
    return made


def print_table(
    title: str,
    columns: Sequence[tuple[str, bool]],
    rows: Iterable[Sequence[str]],
    target: "Console",
    *,
    dense: bool = False,
) -> None:
    """Print a table.

    Args:
        title: what it shows.
        columns: name of each column, and whether it holds numbers (then it is aligned to the right).
        rows: cells as text, taken literally.
        target: where to.
        dense: whether columns stand close together.
    """
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(plain(title)), title_justify="left", box=SIMPLE_HEAD, title_style="bold", pad_edge=False)
    if dense:
        table.padding = (0, 1, 0, 0)
    for name, numeric in columns:
        table.add_column(escape(name), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(plain(cell)) for cell in row))
    target.print(table)
