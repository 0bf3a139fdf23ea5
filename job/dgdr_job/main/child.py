"""The engine in a process of its own: writes each piece of data as one line to a pipe, and turns a crash into words.

A line is ``<type> <data as JSON>``: the parent numbers it without looking into it.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.errors import InvalidRequest, VersionChainBroken
from dgdr_api.events import Completed, Counters, Evaluations, EventData, Failed, Resolved, RoundCompleted
from dgdr_api.run import RunSpec
from pydantic import ValidationError

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.local import ModelInputs
from dgdr_job.main.engine import check, sweep
from dgdr_job.main.process import add_mounts

TYPES: dict[type, str] = {
    Resolved: "search.resolved",
    Evaluations: "evaluations",
    EvaluatedCandidate: "candidate",
    RoundCompleted: "round.completed",
    Completed: "search.completed",
    Failed: "search.failed",
}
BAD_INPUT = "InvalidSpec"
MAX_MESSAGE = 500
FAILED = 4

_log = logging.getLogger("engine")


class Emitter:
    """Writes data to the parent, each piece at once."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._counters = Counters()

    def __call__(self, data: EventData) -> None:
        """Write one piece of data."""
        if isinstance(data, RoundCompleted | Completed):
            self._counters = data.counters
        text = data.model_dump_json(by_alias=True, exclude_none=True)
        self._pipe.write(f"{TYPES[type(data)]} {text}\n".encode())
        self._pipe.flush()

    def fail(self, reason: str, message: str) -> None:
        """Write that the search failed, with the counters of the last round."""
        self(Failed(reason=reason, message=message[:MAX_MESSAGE], counters=self._counters))


class BadInputError(Exception):
    """The file of the run cannot be read, or is none."""


def read_spec(path: Path) -> RunSpec:
    """Read the spec of a run, whether the file holds the whole run or its spec alone.

    Raises:
        BadInputError: there is no such file, or a value in it is wrong.
    """
    try:
        document = json.loads(path.read_bytes())
        spec = document.get("spec", document) if isinstance(document, dict) else document
        return RunSpec.model_validate_json(json.dumps(spec))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadInputError(f"{path}: is no JSON: {error}") from error
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or str(path)
        raise BadInputError(f"{where}: {first['msg']}") from error


def model_inputs(spec: RunSpec, *, claims: Path | None, config_maps: Path | None) -> ModelInputs:
    """The folders of what a run names, mounted by its name.

    Args:
        spec: a run's spec.
        claims: folder of the mounted claims; None: none are.
        config_maps: folder of the mounted ConfigMaps.
    """
    config, cache = spec.model_ref.config, spec.model_ref.cache
    return ModelInputs(
        config_maps={}
        if config is None or config_maps is None
        else {config.config_map.name: config_maps / config.config_map.name},
        claims={} if cache is None or claims is None else {cache.pvc.name: claims / cache.pvc.name},
    )


def search(path: Path, emit: Emitter, *, claims: Path | None = None, config_maps: Path | None = None) -> int:
    """Search the run in a file.

    Args:
        path: the file.
        emit: takes each piece of data.
        claims: see `model_inputs`.
        config_maps: see `model_inputs`.

    Returns:
        0 after the search's own end; 4 after a failure, which is emitted.
    """
    try:
        spec = read_spec(path)
        check(spec)
        catalog = Catalog()
        catalog.take_model(spec.model_ref, model_inputs(spec, claims=claims, config_maps=config_maps))
        sweep(spec, emit, catalog=catalog)
    except BrokenPipeError:  # the parent has gone, and nobody listens
        raise
    except (BadInputError, InvalidRequest, VersionChainBroken) as error:
        emit.fail(BAD_INPUT, str(error))
    except Exception as error:  # noqa: BLE001 - the one border: a fault of the engine is an event and ends the run
        _log.exception("the engine failed")
        emit.fail(type(error).__name__[:63], str(error) or "no message")
    else:
        return 0
    return FAILED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the engine as a child of ``dgdr_job``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True, type=Path, help="the run's spec as JSON")
    parser.add_argument("--events-fd", required=True, type=int, help="the pipe to the parent")
    add_mounts(parser)
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    with os.fdopen(given.events_fd, "wb") as pipe:
        return search(given.run, Emitter(pipe), claims=given.claims, config_maps=given.config_maps)


if __name__ == "__main__":
    ended = main()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(ended)  # all is said; to take the tables of the engine apart costs the publisher's core 0.2 s
