"""A CSV of tuples for `dgdr coverage --matrix`, with what each is expected to be."""

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from dgdr_cli.documents import read_text
from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import fail

if TYPE_CHECKING:
    from dgdr_api.not_modelled import NotModelled
    from dgdr_api.terms import Backend, Topology
    from dgdr_job.search.coverage import Tuple

MOST_GPUS = 65_536
MOST_TOKENS = 2**31 - 1
COLUMNS = ("model_path", "backend", "mode", "sku", "gpu_budget", "isl", "osl")
NOT_MODELLED, EXPECTED, ROW = "feature_not_modelled", "expected_here", "row"
VERDICTS = ("supported", "supported-except", "unsupported")


@dataclass(frozen=True)
class Probe:
    """One row: the tuple, and the verdict that is expected of it."""

    tuple: "Tuple"
    expected: str | None = None
    row: str | None = None
    """What the matrix calls the row."""


def read_matrix(path: Path) -> list[Probe]:
    """The rows of a CSV file; ends with exit 2, naming file, line and column, where one is wrong.

    Needed are the columns of ``COLUMNS``. Optional are ``feature_not_modelled``, names of features beside the tuple
    that no estimate knows, ``expected_here``, one of ``VERDICTS``, and ``row``, a name; others are left alone.
    """
    reader = csv.DictReader(read_text(path).splitlines(), restval="")
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
    if missing:
        fail(WRONG_INPUT, f"{path}: columns {', '.join(missing)} are missing; needed are {', '.join(COLUMNS)}")
    return [_probe(path, line, row) for line, row in _rows(reader, path)]


def _probe(path: Path, line: int, row: dict[str, str]) -> Probe:
    from dgdr_api.terms import Backend, Topology
    from dgdr_job.search.coverage import Tuple

    for name, most in (("gpu_budget", MOST_GPUS), ("isl", MOST_TOKENS), ("osl", MOST_TOKENS)):
        if re.fullmatch("[0-9]{1,10}", row[name]) is None or not 1 <= int(row[name]) <= most:
            fail(WRONG_INPUT, f"{path}:{line}: {name} is {row[name][:60]!r}, must be a whole number from 1 to {most:,}")
    if row["backend"] not in get_args(Backend) or row["mode"] not in get_args(Topology):
        fail(WRONG_INPUT, f"{path}:{line}: backend {row['backend']!r} or mode {row['mode']!r} is not known")
    expected = row.get(EXPECTED) or None
    if expected is not None and expected not in VERDICTS:
        fail(WRONG_INPUT, f"{path}:{line}: {EXPECTED} is {expected[:60]!r}, must be one of {', '.join(VERDICTS)}")
    asked = Tuple(
        _model(row["model_path"], path),
        row["sku"],
        cast("Backend", row["backend"]),
        cast("Topology", row["mode"]),
        int(row["isl"]),
        int(row["osl"]),
        int(row["gpu_budget"]),
        not_modelled=_features(path, line, row.get(NOT_MODELLED) or ""),
    )
    return Probe(asked, expected, row.get(ROW) or None)


def _features(path: Path, line: int, cell: str) -> "tuple[NotModelled, ...]":
    """The names of a cell, separated by spaces or commas."""
    from dgdr_api.not_modelled import MEANINGS

    names = re.split(r"[\s,;]+", cell.strip()) if cell.strip() else []
    for name in names:
        if name not in MEANINGS:
            fail(WRONG_INPUT, f"{path}:{line}: {NOT_MODELLED} is {name[:60]!r}, must be of {', '.join(MEANINGS)}")
    return tuple(cast("NotModelled", name) for name in names)


def _rows(reader: "csv.DictReader[str]", path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows with their lines."""
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        fail(WRONG_INPUT, f"{path}:{reader.line_num + 1}: {error}")


def _model(name: str, matrix: Path) -> str:
    """A model id, or a directory with a config.json: relative to here, then to the folders above the CSV."""
    for folder in (Path(), *matrix.resolve().parents):
        with suppress(OSError):  # a name that no file can have
            if (folder / name / "config.json").is_file():
                return str(folder / name)
    return name
