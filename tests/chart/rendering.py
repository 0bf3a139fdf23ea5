"""The chart as helm renders it: values in, objects out."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import ROOT

CHART = ROOT / "charts" / "dgdr"
VALUES = Path(__file__).parent / "values"
RELEASE, SYSTEM = "dgdr", "dgdr-system"
"""Name and namespace of the release."""
CASES = {"default": None, "namespaced": VALUES / "namespaced.yaml", "everything": VALUES / "everything.yaml"}
"""Files of values by the name of their golden file."""
Objects = list[dict[str, Any]]


@dataclass(frozen=True)
class Helm:
    """The helm binary on our chart. It never asks a cluster here."""

    executable: Path

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run helm; with ``check`` it must succeed."""
        done = subprocess.run([str(self.executable), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0 or not check, done.stderr
        return done

    def text(self, *settings: str, values: Path | None = None) -> str:
        """What ``helm template`` prints."""
        files = [] if values is None else ["--values", str(values)]
        given = [f"--set={setting}" for setting in settings]
        return self("template", RELEASE, str(CHART), "--namespace", SYSTEM, *files, *given).stdout

    def objects(self, *settings: str, values: Path | None = None) -> Objects:
        """The rendered objects."""
        return [found for found in yaml.safe_load_all(self.text(*settings, values=values)) if found]

    def refusal(self, *settings: str) -> str:
        """Why helm refuses the settings."""
        given = [f"--set={setting}" for setting in settings]
        done = self("template", RELEASE, str(CHART), "--namespace", SYSTEM, *given, check=False)
        assert done.returncode != 0
        assert done.stdout == ""
        return done.stderr


def one(objects: Objects, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
    """The one object of a kind and name."""
    (found,) = [
        value
        for value in objects
        if (value["kind"], value["metadata"]["name"]) == (kind, name)
        and (namespace is None or value["metadata"].get("namespace") == namespace)
    ]
    return found


def operator_pod(objects: Objects) -> dict[str, Any]:
    """Template of the operator's pods."""
    (deployment,) = [value for value in objects if value["kind"] == "Deployment"]
    template: dict[str, Any] = deployment["spec"]["template"]
    return template


def environment(objects: Objects) -> dict[str, str]:
    """The operator's variables; of the one that the kubelet fills in, its field."""
    (container,) = operator_pod(objects)["spec"]["containers"]
    return {
        each["name"]: each["value"] if "value" in each else each["valueFrom"]["fieldRef"]["fieldPath"]
        for each in container["env"]
    }
