"""Which cluster and namespace a person means, file by file as kubectl chooses them."""

import json
from pathlib import Path
from typing import Any

import pytest
from dgdr_kube.errors import NoCluster
from dgdr_kube.kubeconfig import user_context


def written(path: Path, *names: str, **context: Any) -> Path:
    """A kubeconfig with a cluster, user and context of each name; the first is the current one."""
    document = {
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}.example"}} for name in names],
        "users": [{"name": name, "user": {"token": name}} for name in names],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}} for name in names],
        "current-context": names[0],
    }
    path.write_text(json.dumps(document))
    return path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a kubeconfig, outside a pod."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    return tmp_path


def test_the_current_context_of_a_file(tmp_path: Path) -> None:
    found = user_context(written(tmp_path / "a", "one", "two", namespace="here"))
    assert (found.configuration.host, found.namespace) == ("http://one.example", "here")
    assert found.configuration.api_key["BearerToken"] == "Bearer one"


def test_a_context_by_name_and_the_default_namespace(tmp_path: Path) -> None:
    found = user_context(written(tmp_path / "a", "one", "two"), "two")
    assert (found.configuration.host, found.namespace) == ("http://two.example", "default")


def test_the_variable_then_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(home / ".kube/config", "home")
    assert user_context().configuration.host == "http://home.example"
    first, second = written(home / "a", "one"), written(home / "b", "two")
    monkeypatch.setenv("KUBECONFIG", f"{home / 'absent'}:{first}:{second}")
    assert user_context(context="two").configuration.host == "http://two.example"
    assert user_context(home / ".kube/config").configuration.host == "http://home.example"


def test_nothing_at_all() -> None:
    with pytest.raises(NoCluster, match=r"there is no kubeconfig: ~/.kube/config does not exist, nor is this a pod"):
        user_context()
    with pytest.raises(NoCluster, match="context x"):
        user_context(context="x")


def test_a_context_that_is_not_there(tmp_path: Path) -> None:
    file = written(tmp_path / "a", "one", "two")
    with pytest.raises(NoCluster, match="there is no context three; it has one, two"):
        user_context(file, "three")
    with pytest.raises(NoCluster, match="there is no such file"):
        user_context(tmp_path / "absent")


@pytest.mark.parametrize(
    "text", ["", "7", "[]", "a: [", "\x00", "contexts: 7", "contexts: []", "current-context: a\ncontexts: [{}]", "{}"]
)
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a"
    file.write_text(text)
    with pytest.raises(NoCluster, match=str(file)):
        user_context(file)


@pytest.mark.parametrize("part", ["clusters", "users"])
def test_a_context_that_names_what_is_not_there(tmp_path: Path, part: str) -> None:
    file = written(tmp_path / "a", "one")
    document = json.loads(file.read_text())
    document[part] = [{"name": "other", part[:-1]: {"server": "http://x"}}]
    file.write_text(json.dumps(document))
    if part == "users":  # as kubectl: nobody in particular asks
        assert "BearerToken" not in user_context(file).configuration.api_key
        return
    with pytest.raises(NoCluster, match="one"):
        user_context(file)


def test_a_file_of_certificates_that_is_missing(tmp_path: Path) -> None:
    file = written(tmp_path / "a", "one")
    document = json.loads(file.read_text())
    document["clusters"][0]["cluster"] = {"server": "https://x", "certificate-authority": str(tmp_path / "absent.crt")}
    file.write_text(json.dumps(document))
    with pytest.raises(NoCluster, match=r"absent\.crt"):
        user_context(file)
