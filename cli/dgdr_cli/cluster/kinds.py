"""The kinds that the commands read and write."""

from dgdr_api.group import DGD_API_VERSION, DGD_KIND
from dgdr_kube.resource import CONFIG_MAP, Resource
from dgdr_operator.kinds import REQUEST
from dgdr_publisher.cluster.kinds import CANDIDATE, RUN

__all__ = ["CANDIDATE", "CONFIG_MAP", "DGD", "REQUEST", "RUN", "WORDS"]

DGD = Resource(DGD_API_VERSION, DGD_KIND, "dynamographdeployments")
WORDS = {REQUEST: "request", RUN: "run", CANDIDATE: "candidate", DGD: "deployment"}
"""What a message calls an object of a kind."""
