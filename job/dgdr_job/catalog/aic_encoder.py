"""The vision encoder (ViT and projector) of the performance model; beside `dgdr_job.catalog.aic` it knows the package.

An encoder stands beside a language model, where each GPU of the worker holds a whole copy and takes whole images (the
package's default), or alone in an encode worker, where its weights are split over the GPUs. Times come from the
package's public ``run_encoder_static``; shares by source from the same operators, asked one by one.
"""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import aiconfigurator_core
from aiconfigurator_core.sdk import common, config, engine, utils
from aiconfigurator_core.sdk.backends.factory import get_backend
from aiconfigurator_core.sdk.config import RuntimeConfig
from aiconfigurator_core.sdk.models.blocks.vit import EncoderOnlyModel, build_encoder_ops

from dgdr_job.catalog.border import Reasons
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.images import Images, VisionFacts, image_tokens
from dgdr_job.catalog.provenance import OperatorTime, SourceShares, source_shares
from dgdr_job.catalog.tables import tables_of_operators

if TYPE_CHECKING:
    from dgdr_job.catalog.aic import PerformanceModel

_GIB = 1 << 30
_WIDEST_COMMUNICATION = 8
"""Communication buffers are listed up to so many GPUs; a wider worker takes those of the widest."""
_BEHIND = ("projector", "all_gather")
"""In the names of operators that come after patches are merged."""
_SPLITTING: Reasons = {AssertionError: Reason.NO_LEGAL_SHAPE, ValueError: Reason.NO_LEGAL_SHAPE}


class EncoderPass(NamedTuple):
    """The images of a batch of requests, encoded together.

    Attributes:
        latency_ms: Time of the pass.
        weights_gib: Weights of the encoder on one GPU.
        activations_gib: Activations on one GPU, the embeddings of the whole batch included.
    """

    latency_ms: float
    weights_gib: float
    activations_gib: float


def vision_facts(extra_params: object) -> VisionFacts | None:
    """Geometry of a model's vision encoder, or None when the package models none."""
    if not isinstance(extra_params, common.VisionEncoderConfig):
        return None
    return VisionFacts(
        patch_size=int(extra_params.patch_size),
        merge_size=int(extra_params.spatial_merge_size),
        heads=int(extra_params.num_heads),
        intermediate_size=int(extra_params.intermediate_size),
        layers=int(extra_params.depth),
    )


def runtime_config(*, isl: int, osl: int, batch: int, images: Images | None) -> Any:  # noqa: ANN401
    """The package's description of a load; ``isl`` without the tokens of the images."""
    runtime: Any = RuntimeConfig(batch_size=batch, beam_width=1, isl=isl, osl=osl, prefix=0)
    if images is not None:
        runtime.image_height, runtime.image_width = images.height, images.width
        runtime.num_images_per_request = images.count
    return runtime


class EncoderModel:
    """The encoder of one worker, ready to be asked for times."""

    def __init__(self, performance: "PerformanceModel", model: Any, spec_bytes: bytes) -> None:  # noqa: ANN401
        """Take the package's model object, whose ``encoder_ops`` are the encoder, and its compiled engine."""
        self._performance, self._model, self._spec_bytes = performance, model, spec_bytes
        self._backend: Any = get_backend(performance.identity.backend)

    def passes(self, batches: Sequence[int], images: Images) -> list[EncoderPass]:
        """One pass over the images of each number of requests.

        Raises:
            Unsupported: MissingOperatorData, UnsupportedDtype, or InvalidData for a time that is not positive.
        """
        what = f", encoder of {images.label}"
        found = []
        with self._performance.guarded(what):
            for batch in batches:
                runtime = runtime_config(isl=1, osl=1, batch=batch, images=images)
                latency_ms, _, memory, _ = self._backend.run_encoder_static(
                    self._model, self._performance.database, runtime, batch
                )
                found.append(EncoderPass(float(latency_ms), float(memory["weights"]), float(memory["activations"])))
        for each in found:
            if not (math.isfinite(each.latency_ms) and each.latency_ms > 0):
                text = f"{self._performance.identity.label}{what}: {each.latency_ms} is not a positive time"
                raise Unsupported(Reason.INVALID_DATA, text)
        return found

    def shares(self, images: Images) -> SourceShares:
        """Where the time of one request's images on one GPU comes from."""
        tables = tables_of_operators(self._operators)
        borrowed = frozenset(name for name, used in tables.items() if self._performance.borrowed(used))
        return source_shares(self._times(images), borrowed)

    def one_gpu_ms(self, images: Images) -> float:
        """Time of one request's images on one GPU, the sum over its operators."""
        return math.fsum(time.latency_ms for time in self._times(images))

    def roofline_ms(self, images: Images) -> float:
        """The least that the same operators can take by the GPU's peak arithmetic and memory bandwidth."""
        with self._asking_operators(images) as groups:
            answers = [self._engine.evaluate_ops_sol_json(**group) for group in groups]
        return math.fsum(float(sol_ms) for answer in answers for _, sol_ms, _, _ in answer)

    @cached_property
    def _operators(self) -> list[Any]:
        """The operators in wire form, ``{"Gemm": {"name": ...}}``."""
        operators: list[Any] = json.loads(engine.build_ops_json(self._model.encoder_ops))
        return operators

    @cached_property
    def _engine(self) -> Any:  # noqa: ANN401
        return engine.EngineHandle(self._spec_bytes)

    def _times(self, images: Images) -> list[OperatorTime]:
        with self._asking_operators(images) as groups:
            answers = [self._engine.evaluate_ops_json(**group) for group in groups]
        return [OperatorTime(name, float(ms), source) for answer in answers for name, ms, _, source in answer]

    @contextmanager
    def _asking_operators(self, images: Images) -> Iterator[list[dict[str, Any]]]:
        """One request's images on one GPU: operators of the ViT see their patches, those behind it their tokens."""
        vision = self._performance.facts.vision
        if vision is None:
            raise ValueError("a model without an encoder has no EncoderModel")
        tokens = image_tokens(Images(images.height, images.width), vision)
        behind = [each for each in self._operators if any(word in _name(each) for word in _BEHIND)]
        inside = [each for each in self._operators if each not in behind]
        groups = ((inside, tokens * vision.merge_size**2), (behind, tokens))
        with self._performance.guarded(f", encoder of {images.label} by operator"):
            yield [
                {
                    "ops_json": json.dumps(operators),
                    "is_context": True,
                    "batch_size": images.count,
                    "s": length,
                    "x": images.count * length,
                }
                for operators, length in groups
            ]


def beside_language_model(performance: "PerformanceModel", model: Any, spec_bytes: bytes) -> EncoderModel:  # noqa: ANN401
    """The encoder inside a prefill or aggregated worker.

    Args:
        performance: The data.
        model: The package's model object of the worker.
        spec_bytes: Its compiled engine.

    Raises:
        Unsupported: UnsupportedFeature: the model has no encoder.
    """
    _check_has_encoder(performance)
    return EncoderModel(performance, model, spec_bytes)


class EncodeWorker(EncoderModel):
    """An encoder alone on ``tp`` GPUs.

    Attributes:
        runtime_gib: Driver, library and allocator overhead on one GPU.
        communication_gib: Collective buffers on one GPU.
        capacity_gib: Memory of one GPU.
    """

    def __init__(self, performance: "PerformanceModel", tp: int) -> None:
        """Split the encoder.

        Raises:
            Unsupported: UnsupportedFeature: the model has no encoder. NoLegalShape: it does not split like this, or
                the GPU type has no communication data for so many GPUs.
        """
        _check_has_encoder(performance)
        identity = performance.identity
        backend: Any = get_backend(identity.backend)
        misc = performance.database.system_spec["misc"]
        width = min(tp, _WIDEST_COMMUNICATION)
        if width not in misc["nccl_mem"]:
            text = f"{identity.label}: no communication data for an encoder on {tp} GPUs"
            raise Unsupported(Reason.NO_LEGAL_SHAPE, text)
        self.capacity_gib = performance.hardware.memory_bytes / _GIB
        self.communication_gib = misc["nccl_mem"][width] / _GIB
        self.runtime_gib = misc["other_mem"] * (1.0 + backend.OTHERS_OVERHEAD_FRAC) / _GIB
        with performance.guarded(f", encoder tp{tp}", _SPLITTING):
            vision = utils.get_model_config_from_model_path(identity.model)["extra_params"]
            model = EncoderOnlyModel(
                encoder_ops=build_encoder_ops(vision, tp, enable_encoder_dp=False),
                encoder_config=vision,
                config=config.ModelConfig(tp_size=tp, enable_encoder_dp=False),
            )
            spec = performance.spec(model)
        super().__init__(performance, model, bytes(aiconfigurator_core.engine_spec_bincode_from_json(spec)))


def _name(operator: dict[str, dict[str, Any]]) -> str:
    return next((str(fields["name"]) for fields in operator.values()), "")


def _check_has_encoder(performance: "PerformanceModel") -> None:
    if performance.facts.vision is None:
        text = f"{performance.identity.model} has no vision encoder that is modelled"
        raise Unsupported(Reason.UNSUPPORTED_FEATURE, text)
