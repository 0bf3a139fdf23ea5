"""The vision encoder inside a prefill or aggregated worker: its time, and the KV cache that it takes.

Source: engine.md section 6 ("Without EPD"). A text-only request, a decode worker, and any worker beside encode workers
has none.
"""

from collections.abc import Sequence

import numpy as np
from dgdr_api.shape import Shape

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images
from dgdr_job.catalog.kv import KvEstimate
from dgdr_job.matching.arrays import Floats
from dgdr_job.timing.encoder import EncoderRows, inline_encoder_rows
from dgdr_job.timing.plausibility import EncoderPlausibility


class InlineEncoder:
    """The encoder of one worker at some batches, or none."""

    def __init__(
        self, catalog: Catalog, identity: PerfIdentity, shape: Shape, images: Images | None, batches: Sequence[int]
    ) -> None:
        """Time the encoder.

        Args:
            catalog: source of times and memory.
            identity: what the worker runs on.
            shape: its shape.
            images: images of one request that the worker encodes; None: it has no encoder.
            batches: requests of one data-parallel rank that will be asked about.

        Raises:
            Unsupported: the encoder has no data.
        """
        self._rows: EncoderRows | None = None
        if images is not None:
            self._rows = inline_encoder_rows(catalog, identity, shape, images=images, batches=batches)
        self._place = {batch: index for index, batch in enumerate(batches)}

    def beside(self, estimate: KvEstimate, batch: int) -> KvEstimate:
        """The KV estimate of the worker with its encoder, which holds the images of ``batch`` requests at once."""
        if self._rows is None:
            return estimate
        return estimate.beside_encoder(self._rows.weights_gib, float(self._rows.activations_gib[self._place[batch]]))

    def latency_ms(self, batches: Sequence[int]) -> Floats:
        """Raw time of a pass over the images of each number of requests; 0 without an encoder."""
        if self._rows is None:
            return np.zeros(len(batches))
        return self._rows.latency_ms[[self._place[batch] for batch in batches]]

    @property
    def plausibility(self) -> EncoderPlausibility | None:
        """Judgement of the encoder's time, None without one."""
        return None if self._rows is None else self._rows.plausibility
