"""Runs each example once and reads what it wrote."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from dgdr_cli.main import app
from typer.testing import CliRunner

REQUESTS = (
    "qwen3-32b",
    "qwen3-32b-sglang",
    "gpt-oss-120b",
    "qwen3-32b-pareto",
    "heterogeneous",
    "qwen3-32b-trtllm",
    "qwen3-vl-epd",
    "unsupported",
)
NATIVE = "native"
NAMES = (*REQUESTS, NATIVE)
NOT_DEPLOYED = ("qwen3-vl-epd", "unsupported")
"""Examples that end without a deployment, and say why."""


@dataclass(frozen=True)
class Result:
    """An example's exit code, terminal text, and files."""

    exit_code: int
    text: str
    request: Path
    out: Path

    @property
    def run(self) -> Any:
        return load(self.out / "run.yaml")

    @property
    def candidates(self) -> list[Any]:
        """Published candidates in the order of the run's status."""
        refs = self.run["status"].get("candidateRefs", [])
        return [load(self.out / "candidates" / f"{ref['name']}.yaml") for ref in refs]

    def condition(self, kind: str) -> tuple[str, str]:
        """(status, reason) of a condition of the run."""
        found = next(each for each in self.run["status"]["conditions"] if each["type"] == kind)
        return found["status"], found["reason"]


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def run_example(request: Path, out: Path) -> Result:
    asked = ["--config", str(request)] if request.stem == NATIVE else [str(request)]
    outcome = CliRunner().invoke(app, ["search", *asked, "--out", str(out)])
    return Result(outcome.exit_code, outcome.output, request, out)
