from typing import Any

import pytest
from dgdr_publisher.errors import NotRenderableError
from dgdr_publisher.render.deployment import Claim, ModelSource
from dgdr_publisher.render.model_source import container_path, model_places
from dgdr_publisher.rendering import render_candidate, verify_dgd

from tests.publisher.samples import evaluated, role, spec

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("mount", "path", "expected"),
    [
        ("/opt/models", "", "/opt/models"),
        ("/opt/models/", "", "/opt/models"),
        ("/opt/models", "qwen/fp8", "/opt/models/qwen/fp8"),
        ("/opt/models/", "qwen", "/opt/models/qwen"),
        ("/opt/models", "/qwen", "/opt/models/qwen"),
        ("/opt/models", "/opt/models", "/opt/models"),
        ("/opt/models", "/opt/models/qwen", "/opt/models/qwen"),
        ("/opt/models", "/opt/models2", "/opt/models/opt/models2"),
        ("/opt/models", "opt/models/x", "/opt/models/opt/models/x"),
        ("/opt/models", "qwen/fp8/", "/opt/models/qwen/fp8"),
    ],
)
def test_container_path(mount: str, path: str, expected: str) -> None:
    assert container_path(mount, path) == expected


def components(model: dict[str, Any]) -> list[dict[str, Any]]:
    candidate, request = evaluated(role("prefill"), role("decode")), spec(model=model)
    dgd = render_candidate(candidate, request, "qwen").dgd
    assert verify_dgd(dgd, candidate, request) == []
    found: list[dict[str, Any]] = dgd["spec"]["components"]
    return found


def main(component: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = component["podTemplate"]["spec"]["containers"][0]
    return found


def value(component: dict[str, Any], flag: str) -> str:
    arguments = main(component)["args"]
    return str(arguments[arguments.index(flag) + 1])


def test_a_cache_is_mounted_once_on_every_component_and_the_model_keeps_its_id() -> None:
    for component in components({"cache": {"pvc": {"name": "models", "mountPath": "/data/"}}}):
        assert main(component)["env"] == [{"name": "HF_HOME", "value": "/data"}]
        assert main(component)["volumeMounts"] == [{"name": "model-cache", "mountPath": "/data"}]
        assert component["podTemplate"]["spec"]["volumes"] == [
            {"name": "model-cache", "persistentVolumeClaim": {"claimName": "models"}}
        ]
        assert "--model-path" not in main(component)["args"]
        if component["type"] != "frontend":
            assert value(component, "--model") == "Qwen/Qwen3-32B"


def test_a_path_in_the_claim_is_what_workers_and_frontend_read_under_the_served_name() -> None:
    frontend, *workers = components({"cache": {"pvc": {"name": "models", "modelPath": "qwen/fp8"}}, "revision": "v1"})
    assert value(frontend, "--model-path") == "/opt/model-cache/qwen/fp8"
    assert value(frontend, "--model-name") == "Qwen/Qwen3-32B"
    assert "env" not in main(frontend)
    for worker in workers:
        assert value(worker, "--model") == "/opt/model-cache/qwen/fp8"
        assert value(worker, "--served-model-name") == "Qwen/Qwen3-32B"
        assert "--revision" not in main(worker)["args"]


def test_a_slash_at_the_end_of_a_path_means_nothing() -> None:
    frontend, *workers = components({"cache": {"pvc": {"name": "models", "modelPath": "qwen/fp8//"}}})
    assert {value(one, "--model") for one in workers} == {"/opt/model-cache/qwen/fp8"}
    assert value(frontend, "--model-path") == "/opt/model-cache/qwen/fp8"


def test_a_revision_is_given_to_every_worker() -> None:
    _, *workers = components({"revision": "v1.2"})
    assert [value(worker, "--revision") for worker in workers] == ["v1.2", "v1.2"]


def test_without_a_claim_nothing_is_mounted() -> None:
    for component in components({}):
        assert not {"env", "volumeMounts"} & set(main(component))
        assert "volumes" not in component["podTemplate"]["spec"]


def test_a_token_comes_from_its_secret_on_every_component() -> None:
    for component in components({"tokenSecret": {"name": "hf", "key": "token"}}):
        reference = {"secretKeyRef": {"name": "hf", "key": "token"}}
        assert main(component)["env"] == [{"name": "HF_TOKEN", "valueFrom": reference}]


@pytest.mark.parametrize(
    ("model", "trusted"),
    [
        ({}, False),
        ({"remoteCode": "AlwaysTrust"}, True),
        (
            {
                "remoteCode": "TrustCacheAndRevision",
                "revision": COMMIT,
                "cache": {"pvc": {"name": "models"}},
            },
            True,
        ),
    ],
)
def test_remote_code_is_trusted_only_when_asked_for_and_then_everywhere(model: dict[str, Any], trusted: bool) -> None:  # noqa: FBT001
    for component in components(model):
        assert ("--trust-remote-code" in main(component)["args"]) == trusted


def test_code_of_a_pinned_revision_is_read_from_its_snapshot() -> None:
    frontend, *workers = components(
        {"remoteCode": "TrustCacheAndRevision", "revision": COMMIT, "cache": {"pvc": {"name": "models"}}}
    )
    snapshot = f"/opt/model-cache/hub/models--Qwen--Qwen3-32B/snapshots/{COMMIT}"
    assert value(frontend, "--model-path") == snapshot
    assert [value(worker, "--model") for worker in workers] == [snapshot, snapshot]


def test_code_of_a_branch_is_not_pinned() -> None:
    source = ModelSource("m", revision="main", remote_code="TrustCacheAndRevision", claim=Claim("c", "/m", ""))
    with pytest.raises(NotRenderableError, match="40 hex"):
        model_places(source)


@pytest.mark.parametrize(
    "name",
    [
        "--trust-remote-code",
        "-x",
        "a b",
        "a,b",
        "$(POD_UID)",
        "a$(X)",
        "a\nb",
        'a"b',
        "a'b",
        "{{ 7 * 7 }}",
        "a\x7fb",
        "\N{GRINNING FACE}",
        "",
        "*alias",
        "&anchor",
        "!!python/object",
        "a: b",
        "a #b",
        "None",
        "a\n",
        "/a",
        "a/../b",
    ],
)
def test_a_name_that_an_argument_cannot_carry_is_refused(name: str) -> None:
    with pytest.raises(NotRenderableError, match=r"modelRef\.name"):
        model_places(ModelSource(name))


@pytest.mark.parametrize("revision", ["$(reboot)", "-x", "a\nb", "a\n", "a..b", "None", "/a", ""])
def test_a_revision_that_an_argument_cannot_carry_is_refused(revision: str) -> None:
    with pytest.raises(NotRenderableError, match=r"modelRef\.revision"):
        model_places(ModelSource("m", revision=revision))


@pytest.mark.parametrize("mount", ["relative", "/", "/a/../b", "/a:b", "/$(X)", "/dev/shm"])  # noqa: S108
def test_a_mount_that_no_pod_takes_is_refused(mount: str) -> None:
    with pytest.raises(NotRenderableError, match=r"mountPath"):
        model_places(ModelSource("m", claim=Claim("c", mount, "")))


@pytest.mark.parametrize("path", ["a$(X)", "a\nb", "a'b", "{{x}}"])
def test_a_path_that_an_argument_cannot_carry_is_refused(path: str) -> None:
    with pytest.raises(NotRenderableError, match="modelPath"):
        model_places(ModelSource("m", claim=Claim("c", "/m", path)))


@pytest.mark.parametrize("name", ["y", "on", "null", "1.4", "0x10", "1:30"])
def test_a_name_that_yaml_reads_as_something_else_stays_a_text(name: str) -> None:
    candidate, request = evaluated(role("agg"), model=name), spec(model={"name": name})
    worker = render_candidate(candidate, request, "qwen").dgd["spec"]["components"][1]
    assert value(worker, "--model") == name
