"""The engine as a program: a run in, numbered events out; on a laptop in one process, in a pod below a small parent.

The engine is imported when it is first asked for: the parent must stay small, and alive when the engine is not.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgdr_job.main.engine import EventWriter, check, sweep

__all__ = ["EventWriter", "check", "sweep"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the engine's module holds
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("dgdr_job.main.engine"), name)
