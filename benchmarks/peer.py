"""aiconfigurator 0.12.0, in a virtual environment of its own: what the static search is measured beside."""

import csv
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "aiconfigurator==0.12.0"


@dataclass(frozen=True)
class PeerBest:
    """The peer's best row of one topology."""

    tokens_per_s_per_gpu: float
    """Per GPU of the whole cluster, as the peer ranks."""
    row: dict[str, str]


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


def peer_arguments(save: Path) -> list[str]:
    """The same request as ours: Qwen3-32B, 16 H200, vLLM, 3000/300, TTFT 1000 ms, TPOT 40 ms."""
    request = ["--model", "Qwen/Qwen3-32B", "--system", "h200_sxm", "--backend", "vllm", "--total-gpus", "16"]
    load = ["--isl", "3000", "--osl", "300", "--ttft", "1000", "--tpot", "40"]
    return ["cli", "default", *request, *load, "--save-dir", str(save)]


def peer_best(save: Path, topology: str) -> PeerBest:
    """The first row of the peer's ranking."""
    (path,) = save.rglob(f"{topology}/best_config_topn.csv")
    with path.open(newline="") as file:
        row = next(csv.DictReader(file))
    return PeerBest(float(row["tokens/s/gpu_cluster"]), row)
