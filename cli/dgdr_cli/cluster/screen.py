"""Where a watch shows what it sees: lines that stay in place on a terminal, else one line per change."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from dgdr_cli.plain_text import plain

if TYPE_CHECKING:
    from dgdr_cli.cluster.view import RunView


class Screen:
    """Shows a run.

    Args:
        stream: standard output, or standard error where standard output is for data.
    """

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._stream = stream
        self._last = ""
        console = Console(file=stream, highlight=False)
        self._live = Live(console=console, auto_refresh=False)
        # only the stream knows a pipe in spite of FORCE_COLOR, only rich a terminal that cannot move its cursor
        self._on_terminal = stream.isatty() and console.is_terminal and not console.is_dumb_terminal

    def __enter__(self) -> Self:
        if self._on_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """Show that there is nothing to see yet, and why."""
        if self._on_terminal:
            from rich.text import Text

            self._live.update(Text(plain(text)), refresh=True)
        else:
            self._line(plain(text))

    def show(self, view: "RunView") -> None:
        """Show how far the run is."""
        from dgdr_cli.cluster.view import line_of, renderable

        if self._on_terminal:
            self._live.update(renderable(view), refresh=True)
        else:
            self._line(line_of(view))

    def _line(self, text: str) -> None:
        if text != self._last:
            self._stream.write(f"{text}\n")
            self._stream.flush()  # who reads a pipe sees it now
            self._last = text


def standard(*, data: bool) -> Screen:
    """The screen on standard output, or beside the data that goes there."""
    return Screen(sys.stderr if data else sys.stdout)
