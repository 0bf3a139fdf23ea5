"""What the search needs to know of a model, apart from how fast it is."""

from dataclasses import dataclass

from dgdr_job.catalog.images import VisionFacts


@dataclass(frozen=True)
class ModelFacts:
    """Facts of a model's config.json.

    Attributes:
        architecture: First entry of ``architectures``.
        layers: Decoder layers.
        attention_heads: Query heads.
        kv_heads: Key/value heads (1 or the head count for latent attention, as the config says).
        hidden_size: Width of the residual stream.
        is_moe: Whether the model has routed experts.
        experts: Routed experts per layer, 0 for a dense model.
        experts_per_token: Experts that one token visits, 0 for a dense model.
        moe_intermediate_size: Width of one expert, 0 for a dense model.
        context_length: Longest sequence in tokens, 0 when the config does not say.
        vision: Its vision encoder, or None when it takes no images or the encoder is not modelled (it is for the
            Qwen3-VL family).
        quantization: The checkpoint's weight format (``fp8_block``, ``nvfp4``, …), or None for unquantized.
        quantization_block: Rows of one scale block when ``quantization`` is ``fp8_block`` (128), otherwise None.
            The experts' width over moe_tp must be a multiple of it.
        nextn_predict_layers: Multi-token prediction layers in the checkpoint.
        config_sha256: Hash of the configuration files, which keys every cached result.
        needs_remote_code: Whether a configuration that is not shipped names Python code of the model's own
            (``auto_map``). The engines carry the code of shipped models.
    """

    architecture: str
    layers: int
    attention_heads: int
    kv_heads: int
    hidden_size: int
    is_moe: bool
    experts: int
    experts_per_token: int
    moe_intermediate_size: int
    context_length: int
    vision: VisionFacts | None
    quantization: str | None
    quantization_block: int | None
    nextn_predict_layers: int
    config_sha256: str
    needs_remote_code: bool = False

    @property
    def is_vision_language(self) -> bool:
        """Whether the model takes images and its encoder is modelled."""
        return self.vision is not None

    @property
    def is_fp8_block(self) -> bool:
        """Whether the weights are FP8 with block scales, which limits moe_tp."""
        return self.quantization_block is not None
