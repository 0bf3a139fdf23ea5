"""Reading what a user names and printing data: text, JSON or YAML."""

import enum
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgdr_cli.exits import WRONG_INPUT, fail

if TYPE_CHECKING:
    from dgdr_api.request import DynamoGraphDeploymentRequest

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024


class Format(enum.StrEnum):
    """How data is printed."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


def read_text(path: Path) -> str:
    """The text of a file; ``-`` is standard input. Ends with exit 2 where there is none."""
    if str(path) == "-":
        return sys.stdin.read(MAX_DOCUMENT_BYTES)
    if path.is_dir():
        fail(WRONG_INPUT, f"{path}: is a directory; name a file")
    try:
        size = path.stat().st_size
        if size > MAX_DOCUMENT_BYTES:
            fail(WRONG_INPUT, f"{path}: has {size:,} bytes, at most {MAX_DOCUMENT_BYTES:,} are read")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        fail(WRONG_INPUT, f"{path}: is no UTF-8 text (byte {error.start})")
    except OSError as error:
        fail(WRONG_INPUT, f"{path}: {error.strerror}")


def read_request(path: Path) -> "DynamoGraphDeploymentRequest":
    """The request in a file.

    Raises:
        InvalidRequest: with everything that is wrong.
    """
    from dgdr_api.parse import parse_request

    return parse_request(read_text(path))


def read_mapping(path: Path) -> Mapping[str, Any]:
    """The one YAML or JSON object in a file.

    Raises:
        InvalidRequest: it is none.
    """
    from dgdr_api.document import read_document

    return read_document(read_text(path))


def write_data(data: Any, output: Format) -> None:  # noqa: ANN401 - any JSON value
    """Print a value as JSON or YAML to standard output."""
    if output is Format.JSON:
        sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        return
    from dgdr_publisher.yaml_text import yaml_text

    sys.stdout.write(yaml_text(data))
