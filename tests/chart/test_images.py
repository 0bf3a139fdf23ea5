"""Images: built as the version that the project has, and listed for clusters without a registry of their own."""

import re
import tomllib

import yaml

from tests.chart.rendering import CHART, Helm, environment, operator_pod
from tests.conftest import ROOT

COMPONENTS = ("operator", "publisher", "sweeper")


def project() -> str:
    version: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return version


def test_one_version_everywhere() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    arguments = re.findall(r"^ARG VERSION=(.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    assert (chart["version"], chart["appVersion"]) == (project(), project())
    assert arguments == [project()] * 2


def test_the_list_names_every_image_that_is_pulled(chart: Helm) -> None:
    objects = chart.objects()
    (container,) = operator_pod(objects)["spec"]["containers"]
    given = environment(objects)
    pulled = {container["image"], given["DGDR_SWEEPER_IMAGE"], given["DGDR_PUBLISHER_IMAGE"]}

    assert (CHART / "images.txt").read_text() == "".join(f"{image}\n" for image in sorted(pulled))
    assert pulled == {f"dgdr-{name}:{project()}" for name in COMPONENTS}


def test_each_image_starts_its_program() -> None:
    stages = re.findall(
        r"^FROM runtime AS (\w+)\n.*?^ENTRYPOINT \[\"([-a-z]+)\"\]$", dockerfile(), re.MULTILINE | re.DOTALL
    )

    assert stages == [(name, f"dgdr-{name}") for name in COMPONENTS]


def test_the_build_needs_neither_buildkit_nor_another_registry() -> None:
    for line in dockerfile().splitlines():
        assert not line.startswith("# syntax")
        assert "--mount" not in line
    bases = set(re.findall(r"^FROM (\S+)", dockerfile(), re.MULTILINE))
    assert bases == {"${BASE}", "build", "runtime"}


def test_the_user_is_the_one_that_pods_ask_for(chart: Helm) -> None:
    user = operator_pod(chart.objects())["spec"]["securityContext"]["runAsUser"]

    assert f"\nUSER {user}:{user}\n" in dockerfile()


def test_a_mirror_serves_all_images_and_an_image_may_say_otherwise(chart: Helm) -> None:
    objects = chart.objects("global.imageRegistry=mirror.example.com/a", "sweeper.image.registry=other.example.com")
    (container,) = operator_pod(objects)["spec"]["containers"]

    assert container["image"] == f"mirror.example.com/a/dgdr-operator:{project()}"
    assert environment(objects)["DGDR_SWEEPER_IMAGE"] == f"other.example.com/dgdr-sweeper:{project()}"


def test_a_digest_is_used_instead_of_a_tag(chart: Helm) -> None:
    digest = "sha256:" + "0" * 64
    objects = chart.objects(f"publisher.image.digest={digest}", "publisher.image.tag=x")

    assert environment(objects)["DGDR_PUBLISHER_IMAGE"] == f"dgdr-publisher@{digest}"


def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text()
