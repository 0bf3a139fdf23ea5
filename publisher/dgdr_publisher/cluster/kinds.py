"""Our kinds, as the API server serves them."""

from dgdr_api.group import API_VERSION, CANDIDATE_KIND, RUN_KIND
from dgdr_kube.resource import Resource

RUN = Resource(API_VERSION, RUN_KIND, "dynamographdeploymentruns")
CANDIDATE = Resource(API_VERSION, CANDIDATE_KIND, "dynamographdeploymentcandidates")
