"""The reader that checks the renderer must not share its tables, and the publisher knows no other room."""

import ast
from collections.abc import Iterator
from pathlib import Path

import dgdr_publisher

ROOT = Path(dgdr_publisher.__file__).parent


def imports_of(folder: Path) -> Iterator[tuple[str, str]]:
    for path in folder.rglob("*.py"):
        yield from ((path.name, module) for module in _modules(path))


def _modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_reader_shares_nothing_with_the_renderer() -> None:
    for name, module in imports_of(ROOT / "verify"):
        assert not module.startswith(("dgdr_publisher.render", "dgdr_publisher.materialize")), name


def test_the_renderer_and_its_table_share_no_table_of_options() -> None:
    for name, module in imports_of(ROOT / "materialize"):
        assert not module.startswith(("dgdr_publisher.render", "dgdr_publisher.verify")), name
    for name, module in imports_of(ROOT / "render"):
        assert not module.startswith(("dgdr_publisher.materialize", "dgdr_publisher.verify")), name


def test_the_publisher_knows_the_contract_and_no_other_room() -> None:
    for name, module in imports_of(ROOT):
        assert not module.startswith(("dgdr_job", "dgdr_cli", "dgdr_operator", "dgdr_ui")), name


def test_only_the_folder_and_the_service_know_of_files() -> None:
    for name, module in imports_of(ROOT):
        if module in {"os", "tempfile", "pathlib"}:
            assert name in {"directory.py", "journal.py", "logs.py", "main.py"}


def test_only_the_cluster_and_its_program_know_the_client() -> None:
    for path in ROOT.rglob("*.py"):
        if any(module.startswith(("dgdr_kube", "kubernetes")) for module in _modules(path)):
            assert path.parent.name == "cluster" or path.name == "main.py", path
