"""Puts the commands of the cluster side beside the others."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dgdr_cli.cluster import cancel, candidates, create, diff, promote, report, rerun, runs, show, watch

if TYPE_CHECKING:
    import typer

PANEL = "In a cluster"
COMMANDS: Mapping[str, Callable[..., Any]] = {
    "create": create.create,
    "watch": watch.watch,
    "runs": runs.runs,
    "candidates": candidates.candidates,
    "show": show.show,
    "diff": diff.diff,
    "promote": promote.promote,
    "rerun": rerun.rerun,
    "cancel": cancel.cancel,
    "report": report.report,
}


def add_to(app: "typer.Typer") -> None:
    """Register the commands."""
    for name, command in COMMANDS.items():
        app.command(name, rich_help_panel=PANEL)(command)
