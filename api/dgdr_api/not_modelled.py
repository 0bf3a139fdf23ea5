"""Features that run but whose cost no estimate knows: what is evaluated with them is `PartiallyModelled`.

Source: engine.md section 2.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

NotModelled = Literal["kvbm", "eagle3", "external_endpoint_picker", "embedding_cache", "multinode_interconnect"]

MEANINGS: Mapping[NotModelled, str] = MappingProxyType(
    {
        "kvbm": "offload of KV blocks to host memory and disks (KVBM)",
        "eagle3": "drafts of an EAGLE3 head",
        "external_endpoint_picker": "routing by an end-point picker outside of the deployment",
        "embedding_cache": "cache of image embeddings",
        "multinode_interconnect": "interconnect between the nodes of one worker",
    }
)
"""What each feature is, for a reader."""
