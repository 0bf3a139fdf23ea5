"""Which cluster a person means: file, context and namespace, chosen as kubectl chooses them."""

import os
from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.config import kube_config

from dgdr_kube.errors import NoCluster

VARIABLE = "KUBECONFIG"
HOME_FILE = "~/.kube/config"
DEFAULT_NAMESPACE = "default"
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True)
class UserContext:
    """The cluster that a person means."""

    configuration: Configuration
    namespace: str
    """Of the context; where it names none, ``default``."""


def user_context(kubeconfig: Path | None = None, context: str | None = None) -> UserContext:
    """Return what kubectl would use: this file, else those of $KUBECONFIG, else ~/.kube/config, else the pod's account.

    Args:
        kubeconfig: the one file to read.
        context: name of the context; None: the current one.

    Raises:
        NoCluster: a file is missing or wrong, there is no such context, or there is nothing at all.
    """
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise NoCluster(f"kubeconfig {kubeconfig}", "there is no such file")
        return _of_files(str(kubeconfig), context)
    files = os.environ.get(VARIABLE) or HOME_FILE
    present = [file for file in files.split(os.pathsep) if file and Path(file).expanduser().is_file()]
    if present:
        return _of_files(os.pathsep.join(present), context)
    if context is not None:
        raise NoCluster(f"context {context}", f"there is no kubeconfig: {files} does not exist")
    return _of_pod(files)


def _of_files(files: str, context: str | None) -> UserContext:
    named = f"kubeconfig {files}"
    found = Configuration()
    try:
        contexts, current = kube_config.list_kube_config_contexts(files)  # type: ignore[no-untyped-call]
        if context is not None:
            names = [str(each["name"]) for each in contexts]
            if context not in names:
                raise NoCluster(named, f"there is no context {context}; it has {', '.join(names) or 'none'}")
            current = contexts[names.index(context)]
        config.load_kube_config(  # type: ignore[no-untyped-call]
            files, context=context, client_configuration=found
        )
        namespace = (current.get("context") or {}).get("namespace")
    except config.ConfigException as error:
        raise NoCluster(named, str(error)) from error
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise NoCluster(named, f"it cannot be used: {type(error).__name__}: {error}") from error
    return UserContext(found, str(namespace or DEFAULT_NAMESPACE))


def _of_pod(files: str) -> UserContext:
    found = Configuration()
    try:
        config.load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
        namespace = NAMESPACE_FILE.read_text("utf-8").strip()
    except (config.ConfigException, OSError) as error:
        raise NoCluster("the cluster", f"there is no kubeconfig: {files} does not exist, nor is this a pod") from error
    return UserContext(found, namespace or DEFAULT_NAMESPACE)
