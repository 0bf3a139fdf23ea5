"""Our images, built once for each state of what they are made of, and kept as one file that a node can load."""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.build import MODULE_DIRECTORY
from tests.controlplane.node import base_image, containerd, context
from tests.controlplane.node.docker import Docker, docker_daemon

Report = Callable[[str], None]

REPOSITORY = MODULE_DIRECTORY.parents[1]
TARGETS = ("operator", "sweeper", "publisher")
"""The stages of our Dockerfile that are images; the image of each is ``dgdr-<target>``."""

BASE_VARIABLE = "DGDR_TEST_BASE"
"""Environment variable that names a base image to build from, such as ``python:3.12-slim``, in place of our own."""

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_KEPT = 2
_LAYERS_KEPT = "72h"


@dataclass(frozen=True)
class Images:
    """Built images: the name of each target, and the ``docker save`` file that holds them all."""

    names: Mapping[str, str]
    archive: Path


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return where images, the base and the layers of our own docker daemon stay."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dgdr" / "images"


def build_images(report: Report, directory: Path = REPOSITORY, targets: Sequence[str] = TARGETS) -> Images:
    """Return the images of the directory's Dockerfile, built when its files have changed.

    Raises:
        UnavailableError: there is no docker daemon and none can be started here.
        CommandError: a build ended with an error; the message carries its last lines.
    """
    cache = cache_directory(os.environ)
    base = os.environ.get(BASE_VARIABLE)
    tag = context.digest(directory, base or base_image.digest(os.environ), *targets)
    made = Images({target: f"dgdr-{target}:{tag}" for target in targets}, cache / f"images-{tag}.tar")
    cache.mkdir(parents=True, exist_ok=True)
    with _lock(cache / ".lock", report):
        if not made.archive.exists():
            _build(made, directory, base, report)
    made.archive.touch()
    _remove_old(cache)
    return made


def _build(made: Images, directory: Path, base: str | None, report: Report) -> None:
    cache = made.archive.parent
    with docker_daemon(cache / "docker", report) as docker:
        chosen = base or base_image.ensure_base(docker, cache, report)
        arguments = {"BASE": chosen, **{name: os.environ[name] for name in _PROXIES if name in os.environ}}
        for target, name in made.names.items():
            report(f"building {name} on {chosen}")
            given = [f"--build-arg={key}={value}" for key, value in arguments.items()]
            docker("build", "--quiet", "--network=host", *given, f"--target={target}", f"--tag={name}", directory)
        report(f"saving {made.archive}")
        unfinished = made.archive.with_suffix(".unfinished")
        docker("save", f"--output={unfinished}", *made.names.values())
        unfinished.rename(made.archive)
        if docker.own:
            _remove_old_layers(docker, set(made.names.values()))


def load_images(images: Images, report: Report) -> None:
    """Load images into the node, unless they are there.

    Raises:
        CommandError: containerd does not take them.
    """
    there = {name.removeprefix("docker.io/library/") for name in containerd.images()}
    if not there.issuperset(images.names.values()):
        report(f"loading {', '.join(images.names.values())}")
        containerd.load(images.archive)


@contextmanager
def _lock(path: Path, report: Report) -> Iterator[None]:
    """Build once at a time; the kernel frees the lock when the process dies."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another build ({path})")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_old_layers(docker: Docker, kept: set[str]) -> None:
    """Remove from our own daemon earlier images, and the layers of builds that nobody has used for days."""
    for name in docker("images", "--format={{.Repository}}:{{.Tag}}").split():
        if name.startswith("dgdr-") and not name.startswith("dgdr-base:") and name not in kept:
            docker("image", "rm", name)
    docker("container", "prune", "--force")  # of builds that were killed
    docker("image", "prune", "--force", f"--filter=until={_LAYERS_KEPT}")


def _remove_old(cache: Path) -> None:
    """Keep the images that were used last: each file has hundreds of megabytes."""
    by_age = sorted(cache.glob("images-*.tar"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[_KEPT:]:
        path.unlink(missing_ok=True)
