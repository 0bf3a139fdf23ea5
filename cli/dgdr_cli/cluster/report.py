"""`dgdr report`: every point that a run has looked at, and the last log lines of its pod."""

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dgdr_cli.cluster.options import Cluster, Context, Kubeconfig, Namespace, Output, connected
from dgdr_cli.documents import Format, write_data
from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import border, fail, note
from dgdr_cli.plain_text import plain, plain_data

if TYPE_CHECKING:
    from dgdr_publisher.report.reading import Report

    from dgdr_cli.cluster.objects import Object


def report(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.parquet", help="Write the points there; a file that exists is kept.")
    ] = None,
    logs: Annotated[  # noqa: FBT002
        bool, typer.Option("--logs", help="Print the stored log lines of both containers instead.")
    ] = False,
    output: Output = Format.TEXT,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Put the report of a run together: every point that was evaluated, pruned or refused, with the reason.

    text counts the points; json and yaml print each.

    Example: kubectl dgdr report qwen3-32b-run-1-4f2a --out points.parquet
    """
    with border():
        if out is not None and logs:
            fail(WRONG_INPUT, "--out and --logs: give one of them; the file takes the points")
        if out is not None and os.path.lexists(out):
            _taken(out)
        cluster = connected(namespace, context, kubeconfig)
        from dgdr_cli.cluster.lookup import run_named

        found = run_named(cluster, run)
        if logs:
            _logs(cluster, found, output)
        else:
            _points(cluster, found, out, output)


def _points(cluster: Cluster, run: "Object", out: Path | None, output: Format) -> None:
    from dgdr_cli.cluster.objects import name_of
    from dgdr_cli.cluster.outcome import outcome_text
    from dgdr_cli.cluster.stored_report import json_lines, rows_of, stored_points

    name = name_of(run)
    found = stored_points(cluster, run)
    if found is None:
        fail(WRONG_INPUT, f"run {name} has no report: {outcome_text(run)}; the first is written when points are known")
    if found.remark:
        note(f"the report of run {name} is thinned: {found.remark}")
    if out is not None:
        _write(out, found.parquet)
        if output is Format.TEXT:
            sys.stdout.write(f"{out}: {found.kept:,} points\n")
    if output is Format.JSON:
        sys.stdout.write(plain_data(json_lines(rows_of(found))))
    elif output is Format.YAML:
        write_data(rows_of(found), output)
    elif out is None:
        _print(name, found)


def _print(name: str, found: "Report") -> None:
    """Points by what became of them."""
    from dgdr_cli.cluster.stored_report import columns_of
    from dgdr_cli.tables import console, print_table

    columns = columns_of(found)
    counts = Counter(zip(columns["branch"], columns["status"], columns["reason"], strict=True))
    rows = [[branch, status, reason or "", f"{count:,}"] for (branch, status, reason), count in counts.most_common()]
    names = [("branch", False), ("status", False), ("reason", False), ("points", True)]
    print_table(f"Points of {name}", names, rows, console())


def _logs(cluster: Cluster, run: "Object", output: Format) -> None:
    from dgdr_cli.cluster.objects import name_of
    from dgdr_cli.cluster.stored_report import stored_logs

    found = stored_logs(cluster, run)
    if not found:
        fail(WRONG_INPUT, f"run {name_of(run)} has no stored logs: they are written when the search ends")
    if output is not Format.TEXT:
        write_data(found, output)
        return
    for container, lines in found.items():
        sys.stdout.write(plain(f"==> {container} <==\n" + "".join(f"{line}\n" for line in lines)))


def _write(path: Path, content: bytes) -> None:
    """Write a new file whole, or none: a name that somebody else took meanwhile is kept."""
    try:
        file = path.open("xb")
    except FileExistsError:
        _taken(path)
    with file:
        try:
            file.write(content)
            file.flush()
        except BaseException:
            path.unlink()
            raise


def _taken(path: Path) -> NoReturn:
    fail(WRONG_INPUT, f"--out {path}: exists and is left as it is; name another file")
