"""Reading what a user names and printing data: text, JSON or YAML."""

import enum
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import fail
from dgdr_cli.plain_text import plain_data


class Format(enum.StrEnum):
    """How data is printed."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


def read_text(path: Path) -> str:
    """The text of a regular file; ``-`` is standard input. Ends with exit 2 where there is none."""
    from dgdr_api.document import MAX_TEXT_BYTES

    try:
        content = _read(path, MAX_TEXT_BYTES + 1)
    except OSError as error:
        fail(WRONG_INPUT, f"{named(path)}: {error.strerror}")
    if len(content) > MAX_TEXT_BYTES:
        fail(WRONG_INPUT, f"{named(path)}: is too large; at most {MAX_TEXT_BYTES:,} bytes are read")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        fail(WRONG_INPUT, f"{named(path)}: is no UTF-8 text (byte {error.start})")


def read_mapping(path: Path) -> Mapping[str, Any]:
    """The one YAML or JSON object in a file. Ends with exit 2, naming the file, where there is none."""
    from dgdr_api.document import read_document

    text = read_text(path)
    with about(path):
        return read_document(text)


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Whatever turns out to be wrong in the content of a file ends with exit 2 and names the file."""
    from dgdr_api.errors import ContractError, InvalidRequest
    from dgdr_publisher.errors import DocumentError

    try:
        yield
    except InvalidRequest as error:
        fail(WRONG_INPUT, f"{named(path)}: is not valid\n" + "\n".join(f"  {problem}" for problem in error.problems))
    except (ContractError, DocumentError) as error:
        fail(WRONG_INPUT, f"{named(path)}: {error}")


def named(path: Path) -> str:
    """What a message calls a file."""
    return "standard input" if _is_stdin(path) else str(path)


def write_data(data: Any, output: Format) -> None:  # noqa: ANN401 - any JSON value
    """Print a value as JSON or YAML to standard output."""
    if output is Format.JSON:
        sys.stdout.write(plain_data(json.dumps(data, indent=2, ensure_ascii=False)) + "\n")
        return
    from dgdr_publisher.yaml_text import yaml_text

    sys.stdout.write(plain_data(yaml_text(data)))


def _read(path: Path, most: int) -> bytes:
    """The first bytes. Opening a pipe must not wait for a writer, and a device may never end."""
    if _is_stdin(path):
        return sys.stdin.buffer.read(most)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            fail(WRONG_INPUT, f"{path}: is no regular file; name one, or - for standard input")
        return file.read(most)


def _is_stdin(path: Path) -> bool:
    return str(path) == "-"
