"""Images: built as the version that the project has, and listed for clusters without a registry of their own."""

import re
import tomllib

import yaml

from tests.chart.rendering import CHART, Helm, environment, operator_pod
from tests.conftest import ROOT
from tests.controlplane.node import context

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


def test_every_package_from_outside_is_checked_by_its_hash() -> None:
    commands = re.split(r"\n(?=[A-Z]+ )| && ", dockerfile().replace("\\\n", ""))
    installing = [command for command in commands if re.search(r"\bpip install\b", command)]
    ours = [command for command in installing if "--no-deps /dist/*.whl" in command]
    others = [command for command in installing if command not in ours]

    assert len(ours) == len(COMPONENTS)
    assert len(others) == len(COMPONENTS) + 2  # uv; hatchling
    for command in others:
        assert "--require-hashes -r uv.lock" in command or "--verify-hashes" in command
        assert "--require-hashes" in command or "-c requirements.lock" in command


def test_the_build_sees_what_the_wheel_needs_and_no_test() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    sent = set(context.files(ROOT))
    inputs = {
        found.relative_to(ROOT)
        for package in wheel["packages"]
        for found in (ROOT / package).rglob("*")
        if (found.is_symlink() or found.is_file()) and "__pycache__" not in found.parts
    }

    assert inputs <= sent
    for link in (path for path in inputs if (ROOT / path).is_symlink()):
        target = (ROOT / link).resolve().relative_to(ROOT)
        assert any(path.is_relative_to(target) for path in sent)
    assert {path.parts[0] for path in sent if not path.name.startswith(("README", "LICENSE"))} == {
        *(package.partition("/")[0] for package in wheel["packages"]),
        ".ci",
        "templates",
        "pyproject.toml",
        "requirements.lock",
    }


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
