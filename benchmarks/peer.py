"""aiconfigurator 0.12.0, in a virtual environment of its own: what the static search is measured beside."""

import csv
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

PACKAGE = "aiconfigurator==0.12.0"
NAME = "aiconfigurator 0.12.0"


def peer_command() -> Path:
    """Path of the peer's command; installs it once, outside the work tree."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "dgdr" / "benchmarks" / PACKAGE.replace("==", "-")
    command = folder / "bin" / "aiconfigurator"
    if not command.exists():
        sys.stderr.write(f"installing {PACKAGE} into {folder}\n")
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", PACKAGE], check=True)
    return command


def peer_arguments(request: Sequence[str], save: Path) -> list[str]:
    """A request to the peer, whose results go to a folder."""
    return ["cli", "default", *request, "--save-dir", str(save)]


def peer_rows(save: Path, topology: str) -> list[dict[str, str]]:
    """The peer's ranking of one topology, best first."""
    (path,) = save.rglob(f"{topology}/best_config_topn.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
