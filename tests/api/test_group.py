"""Names that other programs rely on, and modules that the command line imports without pydantic."""

import subprocess
import sys

import pytest
from dgdr_api import group


def test_labels_and_annotations_lie_below_the_group() -> None:
    keys = {name: value for name, value in vars(group).items() if name.startswith(("LABEL_", "ANNOTATION_"))}

    assert len(keys) == 14
    assert all(value.startswith("sweeper.dgdr.dev/") for value in keys.values())
    assert group.LABEL_REQUEST_UID == "sweeper.dgdr.dev/request-uid"
    assert group.ANNOTATION_CANCEL == "sweeper.dgdr.dev/cancel"


@pytest.mark.parametrize("module", ["group", "terms", "reasons", "errors", "skus", "versions", "images", "canonical"])
def test_light_modules_do_not_import_pydantic(module: str) -> None:
    code = f"import sys, dgdr_api.{module}; sys.exit('pydantic' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
