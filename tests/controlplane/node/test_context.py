"""The hash of a build context follows what docker sends, and nothing else."""

from pathlib import Path

import pytest

from tests.controlplane.node.context import digest, files, is_ignored, rules

_IGNORE = """
# only these
*
!api
!.ci/lock.py
**/__pycache__
**/*.egg-info
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory with what is sent and what is not."""
    for name in (
        "api/a.py",
        "api/deep/b.py",
        "api/__pycache__/a.pyc",
        ".ci/lock.py",
        ".ci/run",
        ".venv/x.py",
        "docs.md",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, "utf-8")
    (tmp_path / "Dockerfile").write_text("FROM scratch", "utf-8")
    (tmp_path / ".dockerignore").write_text(_IGNORE, "utf-8")
    return tmp_path


def test_the_files_are_those_that_docker_sends(tree: Path) -> None:
    assert [str(path) for path in files(tree)] == [".ci/lock.py", "api/a.py", "api/deep/b.py"]


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("docs.md", True),
        ("api", False),
        ("api/a.py", False),
        ("apis/a.py", True),
        ("api/x/__pycache__/a.pyc", True),
        ("api/dgdr.egg-info/PKG-INFO", True),
        (".ci/lock.py", False),
        (".ci/run", True),
    ],
)
def test_the_last_rule_that_matches_decides(path: str, ignored: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert is_ignored(path, rules(_IGNORE)) is ignored


def test_without_rules_everything_is_sent() -> None:
    assert not is_ignored("a", rules(""))


def test_the_hash_is_that_of_content_name_mode_and_further_inputs(tree: Path) -> None:
    before = digest(tree, "base")
    (tree / "docs.md").write_text("not sent", "utf-8")
    (tree / "api" / "a.py").touch()
    assert digest(tree, "base") == before
    assert digest(tree, "another base") != before
    seen = {before}
    (tree / "api" / "a.py").write_text("changed", "utf-8")
    seen.add(digest(tree, "base"))
    (tree / "api" / "a.py").chmod(0o755)
    seen.add(digest(tree, "base"))
    (tree / "api" / "a.py").rename(tree / "api" / "c.py")
    seen.add(digest(tree, "base"))
    (tree / "Dockerfile").write_text("FROM other", "utf-8")
    seen.add(digest(tree, "base"))
    assert len(seen) == 5
