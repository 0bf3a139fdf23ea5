"""Absent packages are installed by root on Debian; everybody else is told what to install."""

import os
from pathlib import Path

import pytest

from tests.controlplane.node.errors import UnavailableError
from tests.controlplane.node.packages import absent, require

_APT = """#!/bin/sh
echo "$DEBIAN_FRONTEND $@" >> "{calls}"
[ "$1" = update ] || {{ echo '#!/bin/sh' > "{bin}/tool"; chmod +x "{bin}/tool"; }}
"""


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH where only apt-get and a shell's tools are found, as root."""
    folder = tmp_path / "bin"
    folder.mkdir()
    apt = folder / "apt-get"
    apt.write_text(_APT.format(calls=tmp_path / "calls", bin=folder), "utf-8")
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


def test_a_package_is_absent_when_its_program_is() -> None:
    assert absent({"shell": "sh", "none": "dgdr-no-such-program", "path": "/no/such/path"}) == ["none", "path"]


def test_what_is_there_is_not_installed(bin_folder: Path) -> None:
    require({"shell": "sh"}, pytest.fail)
    assert not (bin_folder.parent / "calls").exists()


def test_what_is_absent_is_installed(bin_folder: Path) -> None:
    said: list[str] = []
    require({"package-of-tool": "tool", "shell": "sh"}, said.append)
    assert said == ["installing package-of-tool"]
    assert (bin_folder.parent / "calls").read_text("utf-8").splitlines() == [
        "noninteractive update -q",
        "noninteractive install --yes --quiet --no-install-recommends package-of-tool",
    ]


def test_a_package_without_its_program_is_an_error(bin_folder: Path) -> None:
    with pytest.raises(UnavailableError, match="apt-get installed no dgdr-other"):
        require({"package": "dgdr-other"}, lambda _: None)


def test_who_is_not_root_is_told_what_to_install(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UnavailableError, match=r"missing: package; .* as root: apt-get install package$"):
        require({"package": "dgdr-other"}, pytest.fail)
