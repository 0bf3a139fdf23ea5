"""Every deployment that the examples render is accepted by a real API server with the real CRD, strictly validated."""

import json
from pathlib import Path

import pytest

from tests.controlplane.kubectl import Kubectl
from tests.examples.results import NAMES, NOT_DEPLOYED, Result, load

CRD = Path(__file__).parents[2].parent / "shared/data/crds/nvidia.com_dynamographdeployments.yaml"


@pytest.fixture(scope="module")
def dgd_crd(kubectl: Kubectl) -> None:
    if not CRD.is_file():
        pytest.skip(f"the DynamoGraphDeployment CRD is not at {CRD}: put Dynamo's own there")
    kubectl.install_crds(CRD)


@pytest.mark.usefixtures("dgd_crd")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_DEPLOYED])
def test_deployments_are_accepted(
    results: dict[str, Result], kubectl: Kubectl, namespace: str, tmp_path: Path, name: str
) -> None:
    result = results[name]
    deployments = [result.out / "dgd.yaml"]
    for place, candidate in enumerate(result.candidates):
        spec = {key: value for key, value in candidate["spec"].items() if key != "parameters"}
        document = {**load(result.out / "dgd.yaml"), "spec": spec}
        document["metadata"] = {**document["metadata"], "name": f"candidate-{place}"}
        path = tmp_path / f"{place}.json"
        path.write_text(json.dumps(document))
        deployments.append(path)
    for path in deployments:
        kubectl("create", "-n", namespace, "--validate=strict", "--dry-run=server", "-f", str(path))
