"""The base of the images where no registry is reachable: a small Debian with Python, made by debootstrap.

What a build behind a proxy needs goes in as well: the machine's certificate authorities and its package indexes. A
user's own base (``python:3.12-slim``) needs none of that.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.controlplane.node.command import run
from tests.controlplane.node.docker import Docker
from tests.controlplane.node.errors import CommandError
from tests.controlplane.node.packages import IMAGE_PACKAGES, require, search_path

Report = Callable[[str], None]

SUITE = "bookworm"
INCLUDED = ("ca-certificates", "python3", "python3-venv")
_UNUSED = ("./dev/*", "./var/cache/apt/*", "./var/lib/apt/lists/*", "./usr/share/doc/*", "./usr/share/man/*")
_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX")
_TIMEOUT_S = 900.0


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the image: where its authorities are, and this machine's package indexes."""
    indexes = {name: environ[name] for name in _INDEXES if environ.get(name)}
    return {"SSL_CERT_FILE": str(_BUNDLE), "PIP_CERT": str(_BUNDLE), **indexes}


def digest(environ: Mapping[str, str]) -> str:
    """Return what the image depends on, as a short hash."""
    parts = [SUITE, *INCLUDED, *_UNUSED, repr(sorted(settings(environ).items()))]
    content = b"\0".join([*(part.encode() for part in parts), _authorities(environ)])
    return hashlib.sha256(content).hexdigest()[:12]


def ensure_base(docker: Docker, cache: Path, report: Report) -> str:
    """Return the name of the base in a docker daemon, made when absent.

    Args:
        docker: the daemon.
        cache: directory of the tarball, which stays for the next daemon.
        report: receives a line for each step.

    Raises:
        UnavailableError: debootstrap is absent and cannot be installed.
        CommandError: a program ended with an error.
    """
    name = f"dgdr-base:{digest(os.environ)}"
    try:
        docker("image", "inspect", name)
    except CommandError:
        tarball = _ensure_tarball(cache / f"base-{digest(os.environ)}.tar", report)
        changes = [f"--change=ENV {key}={value}" for key, value in settings(os.environ).items()]
        docker("import", *changes, tarball, name)
    return name


def _ensure_tarball(tarball: Path, report: Report) -> Path:
    """Run debootstrap unless its result is in the cache; it appears under its name only when it is complete."""
    if tarball.exists():
        return tarball
    require(IMAGE_PACKAGES, report)
    report(f"making a base image by debootstrap {SUITE} (a minute, once)")
    root, unfinished = tarball.with_suffix(".root"), tarball.with_suffix(".unfinished")
    shutil.rmtree(root, ignore_errors=True)  # what an aborted run left
    path = {"PATH": search_path()}
    # In namespaces of its own: nothing that it mounts or starts outlives it.
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    command: list[str | Path] = ["debootstrap", "--variant=minbase", f"--include={','.join(INCLUDED)}", SUITE, root]
    run(*alone, *command, environ=path, timeout_s=_TIMEOUT_S)
    (root / _BUNDLE.relative_to("/")).write_bytes(_authorities(os.environ))
    unused = [f"--exclude={path}" for path in _UNUSED]
    run(
        "tar",
        f"--directory={root}",
        "--numeric-owner",
        *unused,
        "--create",
        f"--file={unfinished}",
        ".",
        timeout_s=_TIMEOUT_S,
    )
    unfinished.rename(tarball)
    shutil.rmtree(root)
    return tarball


def _authorities(environ: Mapping[str, str]) -> bytes:
    bundle = Path(environ.get("SSL_CERT_FILE") or _BUNDLE)
    return bundle.read_bytes() if bundle.exists() else b""
