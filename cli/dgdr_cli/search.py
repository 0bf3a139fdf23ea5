"""`dgdr search`: a whole search on a laptop; engine and publisher joined in one process."""

import enum
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer

from dgdr_cli import signals
from dgdr_cli.documents import Format, about, write_data
from dgdr_cli.exit_codes import HONEST_NO, INTERRUPTED, OK
from dgdr_cli.exits import border
from dgdr_cli.search_inputs import CommandLine, ConfigFile, ConfigMaps, Mounts, RequestFile, asked_of

if TYPE_CHECKING:
    from dgdr_api.run import DynamoGraphDeploymentRun
    from dgdr_publisher.publisher import Publisher

    from dgdr_cli.requests import Admitted

ATTEMPT = "laptop"


class FidelityName(enum.StrEnum):
    """How closely candidates are evaluated."""

    REPLAY = "replay"
    STATIC = "static"


def _directory(text: str) -> Path:
    if not text:
        raise typer.BadParameter("must be the name of a directory, found nothing")
    return Path(text)


def search(
    out: Annotated[Path, typer.Option(parser=_directory, metavar="DIR", help="Directory for the results.")],
    request: RequestFile = None,
    config: ConfigFile = None,
    config_map: ConfigMaps = None,
    mount: Mounts = None,
    fidelity: Annotated[FidelityName | None, typer.Option(help="Overrides search.fidelity.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Overrides search.parameters.sweep.seed.")] = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="Overrides search.budget.parallelEvaluations.")] = None,
    max_duration: Annotated[str | None, typer.Option(help="Overrides search.budget.maxDuration, e.g. 90s.")] = None,
    resume: Annotated[  # noqa: FBT002
        bool, typer.Option("--resume", help="Go on with the same request in a directory that holds its results.")
    ] = False,
    force: Annotated[  # noqa: FBT002
        bool, typer.Option("--force", help="Replace the results of an earlier search; other files stay.")
    ] = False,
    output: Annotated[
        Format, typer.Option("-o", "--output", help="text shows tables; json or yaml the run.")
    ] = Format.TEXT,
) -> None:
    """Search without a cluster; the results are files.

    DIR gets run.yaml (the run with its status), candidates/*.yaml, dgd.yaml (the best, ready for kubectl apply) with
    dgd.mapping.yaml (where each evaluated value stands), points.parquet and events.ndjson.

    Exit 0: candidates found. 2: the input is wrong. 3: unsupported, or nothing feasible. 4: failed. 130: interrupted,
    results so far kept.

    Example: dgdr search examples/qwen3-32b.yaml --out out
    or the native form: dgdr search --config examples/native.yaml --out out
    """
    with border():
        from dgdr_job.main import check

        from dgdr_cli.output_directory import reserved

        given = CommandLine(None if fidelity is None else fidelity.value, seed, parallel, max_duration)
        path, asked = asked_of(request, config, config_map, mount, given)
        with about(path):
            check(asked.spec)
        with reserved(out, asked, resume=resume, force=force):
            run, published = search_into(asked, out)
        if output is Format.TEXT:
            from dgdr_cli.summary import print_summary

            print_summary(published, out)
        else:
            from dgdr_api.base import wire

            write_data(wire(run), output)
        raise typer.Exit(_exit_code(run))


def search_into(asked: "Admitted", out: Path) -> "tuple[DynamoGraphDeploymentRun, Publisher]":
    """Run the engine into a publisher; an interrupt keeps what is known, an error stands in the run."""
    from dgdr_api.run_object import run_of
    from dgdr_job.main import EventWriter, sweep
    from dgdr_publisher.directory import DirectoryStore
    from dgdr_publisher.publisher import Publisher
    from dgdr_publisher.resources import run_identity

    from dgdr_cli.clock import now
    from dgdr_cli.known import opened_catalog
    from dgdr_cli.progress import SearchBar

    run, store = run_of(asked.request, asked.spec), DirectoryStore(out)
    publisher = Publisher(run, store, now)
    writer = EventWriter(publisher.handle, attempt=ATTEMPT, run_uid=run_identity(run).uid, now=now)
    with _Recorded(publisher):
        try:
            publisher.start()
            store.remove_earlier_results()
            with signals.noticed(), opened_catalog(asked) as known, SearchBar() as bar:
                sweep(asked.spec, writer, catalog=known, progress=bar.update)
        except KeyboardInterrupt as stop:
            sys.stderr.write("dgdr: interrupted; writing what is known, once more ends it at once\n")
            publisher.interrupt(_who_interrupted(stop))
    return run.model_copy(update={"status": publisher.status}), publisher


class _Recorded:
    """An error that passes leaves its cause in the run, as far as the store takes it."""

    def __init__(self, publisher: "Publisher") -> None:
        self._publisher = publisher

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from dgdr_publisher.errors import StoreError

        if isinstance(error, Exception):
            with suppress(StoreError):
                text = f"{type(error).__name__}: {error}"
                self._publisher.fail(text.encode(errors="replace").decode())  # a path can be no text


def _who_interrupted(stop: KeyboardInterrupt) -> str:
    return f"ended by {stop}" if isinstance(stop, signals.Stopped) else "interrupted from the keyboard"


def _exit_code(run: "DynamoGraphDeploymentRun") -> int:
    status = run.status
    if status is None or status.outcome is None:
        raise RuntimeError("the search ended without an outcome")
    if status.outcome.reason == "Cancelled":
        return INTERRUPTED
    return OK if status.candidate_refs else HONEST_NO
