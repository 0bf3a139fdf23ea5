"""What holds the project together: the lock, the package, the shadowing trap, the cold start's budget of imports."""

import re
import subprocess
import sys
import zipfile

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_module_and_data_file(wheel: zipfile.ZipFile) -> None:
    packaged = set(wheel.namelist())
    for room in ("api/dgdr_api", "job/dgdr_job", "publisher/dgdr_publisher", "cli/dgdr_cli"):
        for path in (ROOT / room).rglob("*"):
            if path.is_file() and path.suffix in (".py", ".yaml"):
                assert str(path.relative_to((ROOT / room).parent)) in packaged
    for path in (ROOT / "templates").rglob("*.j2"):
        assert f"dgdr_publisher/templates/{path.relative_to(ROOT / 'templates')}" in packaged


def test_the_lock_has_a_hash_for_everything_and_no_address() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    entries = re.split(r"^(?=\S)", lock, flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==[^ ]+", entry)
        assert "--hash=sha256:" in entry


def test_the_performance_model_is_pinned_exactly() -> None:
    assert '"aiconfigurator-core==0.12.0"' in (ROOT / "pyproject.toml").read_text()
    assert re.search(r"^aiconfigurator-core==0\.12\.0 ", (ROOT / "requirements.lock").read_text(), re.MULTILINE)


@pytest.mark.parametrize("folder", ["operator", "tests/operator"])
def test_nothing_shadows_the_standard_librarys_operator(folder: str) -> None:
    """An __init__.py there would break every Python that is started in its parent."""
    assert not (ROOT / folder / "__init__.py").exists()


def test_no_file_names_a_place_of_one_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    place = re.compile(r"(^|[^A-Za-z0-9_.])/(home|root|Users|work)/[a-z]")
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            assert not place.search(path.read_text(errors="ignore")), name


def test_a_request_file_needs_no_place_outside_the_checkout() -> None:
    """Nothing that is shipped reads what lies beside the checkout; tests that do so skip when it is not there."""
    modules = [path for room in ("api", "job", "publisher", "cli") for path in (ROOT / room).rglob("*.py")]
    shipped = [*(ROOT / "examples").rglob("*.yaml"), *modules]
    for path in shipped:
        assert "../shared" not in path.read_text(), path


def test_a_module_fits_on_a_few_screens() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.split():
        if (ROOT / name).is_file():
            assert len((ROOT / name).read_text().splitlines()) <= 600, name
