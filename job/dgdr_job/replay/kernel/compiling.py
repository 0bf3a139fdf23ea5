"""Where compiled code is kept. Import this before numba: it names the folder by the content of all kernel files.

numba's own stamp covers one file only: a changed callee in another file would leave stale results.
"""

import hashlib
import importlib.metadata
import os
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent


def cache_folder() -> Path:
    """The folder for this content of the kernel and this numba; a temporary one where none can be written."""
    digest = hashlib.sha256(importlib.metadata.version("numba").encode())
    for file in sorted(FOLDER.glob("*.py")):
        digest.update(file.read_bytes())
    chosen = os.environ.get("DGDR_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dgdr"
    folder = base / "kernel" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="dgdr-kernel-"))
    return folder


def use_cache() -> Path:
    """Tell numba the folder; before the first function is compiled."""
    import numba  # noqa: PLC0415 - it is the slow import that only a replay needs

    folder = cache_folder()
    setattr(numba.config, "CACHE_DIR", str(folder))  # noqa: B010 - the name is made at run time
    return folder


USED = use_cache()
"""The folder of this process."""


def is_compiled(folder: Path = USED) -> bool:
    """Whether compiled code is kept there; without it a first replay takes most of a minute."""
    return next(folder.rglob("*.nbc"), None) is not None
