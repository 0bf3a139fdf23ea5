"""The packaged chart: what a checkout has as links is in it as files."""

import tarfile
from pathlib import Path

from tests.chart.rendering import CHART, RELEASE, SYSTEM, Helm
from tests.conftest import ROOT


def test_a_package_holds_the_crds_and_renders_the_same(chart: Helm, tmp_path: Path) -> None:
    chart("package", str(CHART), "--destination", str(tmp_path))
    (package,) = tmp_path.iterdir()
    with tarfile.open(package) as archive:
        packed = {path.rpartition("/")[2]: archive.extractfile(path) for path in archive.getnames() if "/crds/" in path}
        found = {name: file.read() for name, file in packed.items() if file is not None}
    crds = ROOT / "crds"

    assert found == {path.name: path.read_bytes() for path in crds.iterdir()}
    assert (CHART / "crds").resolve() == crds
    assert chart("template", RELEASE, str(package), "--namespace", SYSTEM).stdout == chart.text()
