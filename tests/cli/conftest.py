"""The command as a user calls it, in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from dgdr_cli.app import app
from typer.testing import CliRunner, Result

Dgdr = Callable[..., Result]
Write = Callable[..., Path]


@pytest.fixture
def dgdr() -> Dgdr:
    """Run ``dgdr`` with arguments; standard output and errors apart."""
    return lambda *arguments, **options: CliRunner().invoke(app, [str(each) for each in arguments], **options)


@pytest.fixture
def write(examples: Path, tmp_path: Path) -> Write:
    """Write an example with changes, each a path with dots and its value; None removes."""

    def write(base: str = "qwen3-32b", **changes: Any) -> Path:
        document = yaml.safe_load((examples / f"{base}.yaml").read_text())
        for place, value in changes.items():
            *way, last = place.split("__")
            below = document
            for step in way:
                below = below.setdefault(step, {})
            if value is None:
                below.pop(last, None)
            else:
                below[last] = value
        path = tmp_path / "request.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    return write
