"""Measuring a command as a whole process: wall and CPU seconds, peak memory of its largest process."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

KIB = 1024
MB = 1_000_000


@dataclass(frozen=True)
class Run:
    """One run of a command."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    exit_code: int


@dataclass(frozen=True)
class Runs:
    """Several runs of one command."""

    runs: tuple[Run, ...]

    @property
    def wall_s(self) -> float:
        """Least wall time in seconds: the run that the machine disturbed least."""
        return min(run.wall_s for run in self.runs)

    @property
    def median_wall_s(self) -> float:
        """Median wall time in seconds."""
        return median(run.wall_s for run in self.runs)

    @property
    def cpu_s(self) -> float:
        """Least CPU time in seconds."""
        return min(run.cpu_s for run in self.runs)

    @property
    def peak_mb(self) -> float:
        """Largest peak memory in MB (10^6 bytes)."""
        return max(run.peak_mb for run in self.runs)


def measure(
    command: Sequence[str | Path],
    log: Path,
    environment: Mapping[str, str] | None = None,
    *,
    allowed: Sequence[int] = (0,),
) -> Run:
    """Run a command to its end; its output goes to ``log``.

    Raises:
        RuntimeError: it ends with a code that is not allowed.
    """
    with log.open("wb") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: see {log}")
    return Run(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * KIB / MB, process.returncode)
