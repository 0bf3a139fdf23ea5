"""The progress bar of a search, on stderr."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from dgdr_job.search.sweep import Progress


class SearchBar:
    """Shows shapes done of all, deployments found, the best so far and the time left; nothing where none looks."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[found]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task("starting", total=None, found="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, progress: "Progress") -> None:
        """Show how far the search is."""
        found = f"{progress.feasible} feasible" + (f", best {progress.best}" if progress.best else "")
        self._bar.update(
            self._task,
            completed=progress.done,
            total=progress.total or None,
            description=progress.stage,
            found=found,
        )
