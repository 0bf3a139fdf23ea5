"""Images are built once for each state of their files, by whichever docker daemon answers."""

import os
from pathlib import Path

import pytest

from tests.controlplane.node.errors import CommandError
from tests.controlplane.node.images import BASE_VARIABLE, build_images

_DOCKER = """#!/bin/sh
echo "$@" >> "{calls}"
for word in "$@"; do case "$word" in --output=*) echo saved > "${{word#--output=}}";; esac; done
"""
_FAILS = """#!/bin/sh
[ "$1" = build ] || exit 0
echo 'The command uv returned a non-zero code: 2' >&2
exit 1
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a Dockerfile, a docker that answers, an empty cache, and a base that needs no making."""
    _write_docker(tmp_path, _DOCKER.format(calls=tmp_path / "calls"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(BASE_VARIABLE, "python:3.12-slim")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "Dockerfile").write_text("FROM scratch AS operator", "utf-8")
    return tmp_path / "tree"


def _write_docker(folder: Path, script: str) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "docker").write_text(script, "utf-8")
    (folder / "bin" / "docker").chmod(0o755)


def test_a_second_run_builds_nothing_and_a_change_builds_again(tree: Path) -> None:
    said: list[str] = []
    first = build_images(said.append, tree, ["operator", "sweeper"])
    calls = (tree.parent / "calls").read_text("utf-8")
    assert build_images(said.append, tree, ["operator", "sweeper"]) == first
    assert (tree.parent / "calls").read_text("utf-8") == calls
    assert first.archive.read_text("utf-8") == "saved\n"
    assert [name.partition(":")[0] for name in first.names.values()] == ["dgdr-operator", "dgdr-sweeper"]
    (tree / "new.py").touch()
    assert set(build_images(said.append, tree, ["operator", "sweeper"]).names.values()).isdisjoint(first.names.values())


def test_the_build_gets_target_base_and_proxies(tree: Path) -> None:
    names = build_images(lambda _: None, tree, ["operator"]).names
    (build,) = [line for line in (tree.parent / "calls").read_text("utf-8").splitlines() if line.startswith("build ")]
    assert build.startswith("build --quiet --network=host --build-arg=BASE=python:3.12-slim ")
    assert "--build-arg=HTTPS_PROXY=http://proxy:3128 " in build
    assert build.endswith(f"--target=operator --tag={names['operator']} {tree}")


def test_only_the_images_used_last_are_kept(tree: Path) -> None:
    archives = []
    for number in range(4):
        (tree / "source.py").write_text(str(number), "utf-8")
        archives.append(build_images(lambda _: None, tree, ["operator"]).archive)
        os.utime(archives[-1], (number, number))
    assert [archive.exists() for archive in archives] == [False, False, True, True]


def test_a_failed_build_says_why_and_leaves_no_images(tree: Path) -> None:
    _write_docker(tree.parent, _FAILS)
    with pytest.raises(CommandError, match=r"docker build .*ended with status 1:\n.*non-zero code: 2"):
        build_images(lambda _: None, tree, ["operator"])
    assert list((tree.parent / "cache" / "dgdr" / "images").glob("*.tar")) == []
