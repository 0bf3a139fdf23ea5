"""Kernel settings come back as they were, also when another process puts them back."""

from pathlib import Path

import pytest

from tests.controlplane.node import layout, sysctls


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings in a folder."""
    for name, value in {"kernel/panic": "0", "net/ipv4/ip_forward": "0", "vm/overcommit_memory": "2"}.items():
        (tmp_path / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys" / name).write_text(f"{value}\n", "utf-8")
    monkeypatch.setattr(sysctls, "_SYS", tmp_path / "sys")
    monkeypatch.setattr(layout, "SYSCTLS", tmp_path / "kept.json")
    return tmp_path / "sys"


def test_forwarding_is_on_while_a_node_runs_and_everything_is_put_back(proc: Path) -> None:
    sysctls.save()
    assert (proc / "net/ipv4/ip_forward").read_text("utf-8") == "1"
    (proc / "kernel/panic").write_text("10", "utf-8")
    sysctls.restore()
    assert [(proc / name).read_text("utf-8").strip() for name in ("kernel/panic", "net/ipv4/ip_forward")] == ["0", "0"]
    assert (proc / "vm/overcommit_memory").read_text("utf-8") == "2\n"


def test_nothing_kept_is_nothing_to_put_back(proc: Path) -> None:
    sysctls.restore()
    assert (proc / "kernel/panic").read_text("utf-8") == "0\n"
