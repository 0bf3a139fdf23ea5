"""The base is made anew when what it is made of changes: the authorities and the package indexes of the machine."""

from pathlib import Path

import pytest

from tests.controlplane.node.base_image import digest, settings


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with authorities of its own."""
    bundle = tmp_path / "bundle.crt"
    bundle.write_text("one", "utf-8")
    return {"SSL_CERT_FILE": str(bundle), "HOME": "/root"}


def test_the_image_names_its_authorities_and_the_indexes_of_the_machine(environ: dict[str, str]) -> None:
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    assert settings(environ) == {"SSL_CERT_FILE": bundle, "PIP_CERT": bundle}
    assert settings(environ | {"UV_DEFAULT_INDEX": "https://mirror/"})["UV_DEFAULT_INDEX"] == "https://mirror/"


def test_the_hash_changes_with_what_goes_into_the_image(environ: dict[str, str]) -> None:
    before = digest(environ)
    assert digest(environ | {"HOME": "/elsewhere"}) == before
    assert digest(environ | {"PIP_INDEX_URL": "https://mirror/"}) != before
    Path(environ["SSL_CERT_FILE"]).write_text("two", "utf-8")
    assert digest(environ) != before
