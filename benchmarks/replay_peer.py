"""Dynamo 1.6.1's replay in a virtual environment of its own, kept alive: one case a line in, one result a line out."""

import json
import os
import select
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

PACKAGES = ("ai-dynamo==1.6.1", "ai-dynamo-runtime==1.6.1")
NEEDED = [
    "numpy",
    "pandas",
    "pyyaml",
    "scipy",
    "pyarrow",
    "pydantic==2.13.4",
    "uvloop",
    "msgspec",
    "typing-extensions",
    "tqdm",
    "aiohttp",
    "prometheus-client",
    "packaging",
]
PROGRAM = Path(__file__).parent / "replay_peer_program.py"


def peer_python() -> Path:
    """The interpreter that has the peer; installs it once, outside the work tree."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "dgdr" / "benchmarks" / PACKAGES[0].replace("==", "-")
    done = folder / "complete"
    if not done.exists():
        sys.stderr.write(f"installing {' '.join(PACKAGES)} into {folder}\n")
        venv.create(folder, with_pip=True, clear=True)
        pip = folder / "bin" / "pip"
        subprocess.run([pip, "install", "--quiet", "--no-deps", *PACKAGES], check=True)
        subprocess.run([pip, "install", "--quiet", *NEEDED], check=True)
        done.touch()
    return folder / "bin" / "python"


class Peer:
    """A running peer. A case that ends its process is an answer too; the next case gets a new one."""

    def __init__(self, patience_s: float = 600) -> None:
        self._python = peer_python()
        self._patience_s = patience_s
        """How long a case may take before the peer is said to hang."""
        self._process: subprocess.Popen[str] | None = None

    def replay(self, case: dict[str, Any]) -> dict[str, Any]:
        """Replay a case: ``trace`` (lines) or ``trace_path`` or ``synthetic``, ``trace_block_size`` and ``options``.

        Returns:
            ``summary`` and ``per_request``, and what the call took; or ``error``.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [self._python, PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "DYN_LOG": "error"},
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(case) + "\n")
            self._process.stdin.flush()
            ready, _, _ = select.select([self._process.stdout], [], [], self._patience_s)
            if not ready:
                self._process.kill()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self._process.wait()
            self._process = None
            return {"error": f"the peer's process ended with {code}"}
        result: dict[str, Any] = json.loads(answer)
        return result

    def close(self) -> None:
        """End the peer."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None
