"""Every command that the documentation shows works as shown."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from dgdr_cli.main import app
from typer.testing import CliRunner

from tests.conftest import ROOT

GUIDES = ("architecture", "cluster", "coverage", "decisions", "rbac", "reasons", "replay", "troubleshooting")
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "charts/dgdr/README.md",
    *(f"docs/{name}.md" for name in GUIDES),
)


def commands(page: str) -> list[str]:
    """The lines of the page's shell blocks that call dgdr, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("dgdr ")]


def test_commands_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    shown = [line for page in PAGES for line in commands(page)]
    assert len(shown) >= 8
    for line in shown:
        words = shlex.split(line.replace("results/candidates/NAME.yaml", first_candidate(tmp_path)))
        ended = CliRunner().invoke(app, words[1:])
        assert ended.exit_code == 0, f"{line}\n{ended.output}"


def first_candidate(folder: Path) -> str:
    """The published candidate that the README's first search calls best."""
    run = folder / "results" / "run.yaml"
    if not run.exists():
        return "none"
    name = re.search(r"^  candidateRefs:\n  - name: (\S+)$", run.read_text(), re.MULTILINE)
    assert name
    return f"results/candidates/{name[1]}.yaml"


def test_make_targets_that_the_documentation_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        for target in re.findall(r"`?make ([a-z-]+)", (ROOT / page).read_text()):
            assert target in targets, f"{page}: make {target}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text()):
        if "://" not in link:
            assert (ROOT / page).parent.joinpath(link).exists(), link
