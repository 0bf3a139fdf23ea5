"""A cluster by the official client: its configuration, credentials and transport; requests and answers stay JSON.

The typed API of the client would copy every object into classes, and its dynamic client would spend requests on
discovery, so this module gives the generated transport the path and reads the bytes that come back.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.rest import RESTResponse

from dgdr_kube.errors import KubeError, NotFound, Retryable, Stale, error_of
from dgdr_kube.kube import Listing, Propagation
from dgdr_kube.resource import Object, Resource
from dgdr_kube.watch import Change, change_of, lines_of

PAGE_SIZE = 200
CONNECT_TIMEOUT_S, TIMEOUT_S = 5.0, 30.0
WATCH_S = 60
"""Seconds after which the server ends a watch: a connection that died unnoticed is missed no longer than that."""
_APPLY = "application/apply-patch+yaml"
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
_LIST_ATTEMPTS = 3
_FIRST_ERROR = 400
_GONE = 410
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What YAML takes only escaped; JSON allows it as it is."""


class KubeClient:
    """`dgdr_kube.kube.Kube` on a real API server. Safe to use from several threads.

    Args:
        configuration: where the server is and who asks; see `configuration`.
        field_manager: name under which this program owns what it writes.
        timeout_s: seconds to wait for an answer, and at most 5 of them for a connection.
        connections: requests under way at the same time that keep their connection.
    """

    def __init__(
        self,
        configuration: Configuration,
        field_manager: str,
        *,
        timeout_s: float = TIMEOUT_S,
        connections: int = 8,
    ) -> None:
        configuration.retries = urllib3.Retry(0)  # callers decide what is asked again, and when
        configuration.connection_pool_maxsize = connections
        self._client = ApiClient(configuration)
        self._client.user_agent = field_manager
        self._manager = field_manager
        self._timeout = (min(CONNECT_TIMEOUT_S, timeout_s), timeout_s)

    def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        """See `dgdr_kube.kube.Kube.get`."""
        return self._ask("GET", resource.path(namespace, name))

    def list(
        self, resource: Resource, namespace: str | None, *, label_selector: str = "", field_selector: str = ""
    ) -> Listing:
        """See `dgdr_kube.kube.Kube.list`. A list whose pages expired between two requests starts again."""
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        path = resource.path(namespace)
        for attempt in range(_LIST_ATTEMPTS):
            try:
                return self._pages(resource, path, {name: text for name, text in selectors.items() if text})
            except NotFound as error:
                if error.status != _GONE or attempt == _LIST_ATTEMPTS - 1:
                    raise
        raise AssertionError  # the last attempt raises

    def _pages(self, resource: Resource, path: str, selectors: Mapping[str, str]) -> Listing:
        items: list[dict[str, Any]] = []
        query: dict[str, str] = {"limit": str(PAGE_SIZE), **selectors}
        while True:
            page = self._ask("GET", path, query)
            items += [{"apiVersion": resource.api_version, "kind": resource.kind} | item for item in page["items"]]
            token = page["metadata"].get("continue")
            if not token:
                return Listing(tuple(items), page["metadata"]["resourceVersion"])
            query["continue"] = token

    def create(self, resource: Resource, value: Object, *, dry_run: bool = False) -> dict[str, Any]:
        """See `dgdr_kube.kube.Kube.create`."""
        query = {"fieldManager": self._manager, "fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        return self._ask("POST", resource.path(value["metadata"]["namespace"]), query, value)

    def replace(self, resource: Resource, value: Object) -> dict[str, Any]:
        """See `dgdr_kube.kube.Kube.replace`."""
        return self._ask("PUT", _path(resource, value), {"fieldManager": self._manager}, value)

    def apply(self, resource: Resource, value: Object) -> dict[str, Any]:
        """See `dgdr_kube.kube.Kube.apply`."""
        return self._ask("PATCH", _path(resource, value), self._apply_query(), value, content_type=_APPLY)

    def merge_patch(self, resource: Resource, namespace: str, name: str, patch: Object) -> dict[str, Any]:
        """Change parts of an object; null removes. A resourceVersion in its metadata is a precondition.

        Raises:
            NotFound: there is none.
            Stale: the stored object is another one.
        """
        query = {"fieldManager": self._manager, "fieldValidation": "Strict"}
        return self._ask("PATCH", resource.path(namespace, name), query, patch, content_type=_MERGE_PATCH)

    def watch(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Iterator[Change]:
        """Yield what changes after a state of the collection, until the server ends the watch: then ask again.

        Args:
            resource: kind of the objects.
            namespace: None: all namespaces.
            resource_version: the state: of a list, or of the last change.
            label_selector: of the objects.
            field_selector: of the objects.

        Raises:
            NotFound: with status 410 when the server no longer knows that state: list again.
            Retryable: the connection broke: ask again, from the last change.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_S),
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        path = resource.path(namespace)
        timeout = (self._timeout[0], WATCH_S + self._timeout[1])
        with self._asked("GET", path, {name: text for name, text in query.items() if text}, timeout=timeout) as answer:
            for line in lines_of(answer.response.stream(None, decode_content=True)):
                yield change_of(f"GET {path}", line)

    def apply_status(self, resource: Resource, value: Object, *, uid: str, resource_version: str) -> dict[str, Any]:
        """See `dgdr_kube.kube.Kube.apply_status`."""
        guarded = {**value, "metadata": {**value["metadata"], "resourceVersion": resource_version}}
        path = _path(resource, value, "status")
        found = self._ask("PATCH", path, self._apply_query(), guarded, content_type=_APPLY)
        if found["metadata"]["uid"] != uid:
            raise Stale(f"PATCH {path}", f"uid is {found['metadata']['uid']}, expected {uid}")
        return found

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str,
        resource_version: str | None = None,
        propagation: Propagation = "Foreground",
    ) -> None:
        """See `dgdr_kube.kube.Kube.delete`."""
        preconditions = {"uid": uid} | ({} if resource_version is None else {"resourceVersion": resource_version})
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": preconditions,
            "propagationPolicy": propagation,
        }
        self._ask("DELETE", resource.path(namespace, name), {}, options)

    def _apply_query(self) -> dict[str, str]:
        return {"fieldManager": self._manager, "force": "false", "fieldValidation": "Strict"}

    def _ask(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        *,
        content_type: str = _JSON,
    ) -> dict[str, Any]:
        with self._asked(verb, path, query, body, content_type=content_type) as answer:
            content = answer.read()  # type: ignore[no-untyped-call]
        return _object(f"{verb} {path}", content)

    @contextmanager
    def _asked(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        *,
        content_type: str = _JSON,
        timeout: tuple[float, float] | None = None,
    ) -> Iterator[RESTResponse]:
        """The answer of the server, not yet read; whatever breaks while it is read is `Retryable`."""
        asked = f"{verb} {path}"
        method, url, headers, sent, _ = self._client.param_serialize(
            verb,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": _JSON, "Content-Type": content_type},
            body=_yaml(body) if content_type == _APPLY else body,
            auth_settings=["BearerToken"],
        )
        answer = None
        try:
            answer = self._client.call_api(method, url, headers, sent, _request_timeout=timeout or self._timeout)
            if answer.status >= _FIRST_ERROR:
                text = answer.read().decode(errors="replace")  # type: ignore[no-untyped-call]
                raise error_of(asked, answer.status, text, retry_after=answer.headers.get("Retry-After"))
            yield answer
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Retryable(asked, f"no answer: {error}") from error
        finally:
            if answer is not None:
                answer.response.close()


def configuration(kubeconfig: Path | None = None) -> Configuration:
    """Return where the API server is and who asks: this file, else the pod's service account, else the user's file.

    Raises:
        ConfigException: of the client; there is none of them.
    """
    found = Configuration()
    if kubeconfig is not None:
        config.load_kube_config(str(kubeconfig), client_configuration=found)  # type: ignore[no-untyped-call]
        return found
    try:
        config.load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
    except config.ConfigException:
        config.load_kube_config(client_configuration=found)  # type: ignore[no-untyped-call]
    return found


def _path(resource: Resource, value: Object, subresource: str | None = None) -> str:
    return resource.path(value["metadata"]["namespace"], value["metadata"]["name"], subresource)


def _yaml(value: object) -> bytes:
    """JSON that is YAML too: YAML knows no surrogate pairs, so characters beyond U+FFFF stay as they are."""
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _object(asked: str, content: bytes) -> dict[str, Any]:
    """The object in an answer: what stands in front of the server, or in its place, may say anything."""
    try:
        value = json.loads(content.decode())
    except ValueError as error:
        raise Retryable(asked, f"the answer is no JSON: {_start(content)}") from error
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        raise KubeError(asked, f"the answer is no object: {_start(content)}")
    return value


def _start(content: bytes) -> str:
    return content[:200].decode(errors="replace")
