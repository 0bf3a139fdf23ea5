"""A disk cache of results that depend on nothing but their inputs.

One JSON file per result, named by the hash of its inputs. A file that cannot be read, is cut short, or belongs to other
inputs is a miss and is written again. A folder that cannot be written means no cache and one note.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path

from pydantic import JsonValue

_SCHEMA = 3
"""Part of every key: raised when the meaning of a cached value changes."""


def default_folder() -> Path:
    """``DGDR_CACHE_DIR``, or ``dgdr`` in the user's cache folder (``XDG_CACHE_HOME``, ``~/.cache``).

    A container's arbitrary user can be without a home: then among the temporary files.
    """
    if chosen := os.environ.get("DGDR_CACHE_DIR"):
        return Path(chosen)
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "dgdr"
    try:
        return Path.home() / ".cache" / "dgdr"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / "dgdr"


class DiskCache:
    """Reads and writes results below one folder.

    Attributes:
        folder: Where they lie.
        notes: At most one line, once the folder turned out not to be writable.
        hits: Results found.
        misses: Results not found.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else default_folder()
        self._writable = True
        self.notes: list[str] = []
        self.hits = 0
        self.misses = 0

    def load(self, kind: str, key: JsonValue) -> JsonValue:
        """The value stored for these inputs, or None.

        Args:
            kind: What the value is; a folder of its own.
            key: Inputs of the result.
        """
        try:
            stored = json.loads(self._file(kind, key).read_bytes())
        except (OSError, ValueError):
            stored = None
        if isinstance(stored, dict) and stored.get("schema") == _SCHEMA and stored.get("key") == key:
            self.hits += 1
            value: JsonValue = stored.get("value")
            return value
        self.misses += 1
        return None

    def store(self, kind: str, key: JsonValue, value: JsonValue) -> None:
        """Writes a value; readers see the old file or the new one, never a part.

        Args:
            kind: As for `load`.
            key: As for `load`.
            value: JSON without NaN or infinity.

        Raises:
            ValueError: The value is not strict JSON.
        """
        content = json.dumps({"schema": _SCHEMA, "key": key, "value": value}, allow_nan=False, separators=(",", ":"))
        if not self._writable:
            return
        file = self._file(kind, key)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=".", suffix=".part", delete=False) as part:
                try:
                    part.write(content)
                    part.close()
                    Path(part.name).replace(file)
                except OSError:
                    Path(part.name).unlink(missing_ok=True)
                    raise
        except OSError as error:
            self._writable = False
            self.notes.append(f"results are not cached: {self.folder} cannot be written ({error.strerror})")

    def _file(self, kind: str, key: JsonValue) -> Path:
        canonical = json.dumps([_SCHEMA, key], sort_keys=True, separators=(",", ":"))
        return self.folder / kind / f"{hashlib.sha256(canonical.encode()).hexdigest()}.json"
