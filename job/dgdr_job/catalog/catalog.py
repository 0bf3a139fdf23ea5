"""The catalog: facts, formats and memory, each computed once and then read from the disk cache.

The performance model is opened only when something is not in the cache.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from dgdr_api.model_ref import ModelRef
from dgdr_api.shape import Shape
from pydantic import JsonValue, TypeAdapter, ValidationError

from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.hardware import Hardware
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.kv import KvEstimate
from dgdr_job.catalog.local import LocalModel, ModelInputs, local_model
from dgdr_job.catalog.model import ModelFacts
from dgdr_job.catalog.provenance import DataProvenance
from dgdr_job.catalog.quantization import Quantization
from dgdr_job.catalog.wheel import config_sha256, is_local, shipped_models, wheel_version

if TYPE_CHECKING:
    from types import ModuleType

    from dgdr_job.catalog.aic import PerformanceModel

Value = TypeVar("Value")


@dataclass(frozen=True)
class _Refusal:
    reason: Reason
    message: str


@dataclass(frozen=True)
class _Memory:
    """Everything known of the memory of one identity: one file for all shapes."""

    fractions: dict[str, float] = field(default_factory=dict)
    estimates: dict[str, KvEstimate | _Refusal] = field(default_factory=dict)


_REFUSAL = TypeAdapter(_Refusal)
_MODEL = TypeAdapter(ModelFacts)
_HARDWARE = TypeAdapter(Hardware)
_SLOTS = TypeAdapter(dict[str, str])
_QUANTIZATION = TypeAdapter(Quantization)
_PROVENANCE = TypeAdapter(DataProvenance)
_MEMORY = TypeAdapter(_Memory)


class Catalog:
    """What is known of models, hardware and data; one object for a search.

    Every method that takes an identity raises `Unsupported`; refusals are remembered like results.
    """

    def __init__(self, cache: DiskCache | None = None) -> None:
        self.cache = cache if cache is not None else DiskCache()
        self._opened: dict[PerfIdentity, PerformanceModel] = {}
        self._memory: dict[PerfIdentity, _Memory] = {}
        self._seen: dict[tuple[str, str], Any] = {}
        self._model_keys: dict[str, dict[str, JsonValue]] = {}
        self._unwritten: set[PerfIdentity] | None = None
        self._local: dict[str, LocalModel | _Refusal] = {}
        self._places: dict[str, str] = {}

    def shipped_models(self) -> list[str]:
        """Ids that need no local directory, sorted."""
        return list(shipped_models())

    def take_model(self, ref: ModelRef, inputs: ModelInputs) -> None:
        """Read the configuration of a run's model, so that its name stands for it from now on.

        A refusal is kept: `model` raises it, where a search asks for its facts.

        Args:
            ref: The model of the run.
            inputs: Where the objects lie that it names.
        """
        try:
            found = local_model(ref, inputs)
        except Unsupported as error:
            self._local[ref.name] = _Refusal(error.reason, error.message)
        else:
            if found is not None:
                self._local[ref.name] = found

    def local_digest(self, name: str) -> str | None:
        """Hash of the configuration of a model that is not shipped; None where it is."""
        found = self._local.get(name)
        return found.digest if isinstance(found, LocalModel) else None

    def model(self, name: str) -> ModelFacts:
        """Facts of a model.

        Args:
            name: Shipped id, local directory, or a name that `take_model` has read.

        Raises:
            Unsupported: UnknownModel, with the ids that resemble the name.
        """
        return self._recall("model", self._model_key(name), _MODEL, lambda: _aic().read_model(self._place(name)))

    def hardware(self, sku: str) -> Hardware:
        """Description of a SKU.

        Raises:
            Unsupported: UnknownHardware, with the SKUs that resemble the name.
        """
        return self._recall("hardware", {"sku": sku}, _HARDWARE, lambda: _aic().read_hardware(sku))

    def version_slots(self, sku: str, backend: str) -> dict[str, str]:
        """Slot (``current``, ``previous``, ``next``) to literal data version; empty when there is no data."""
        key: dict[str, JsonValue] = {"sku": sku, "backend": backend}
        slots: dict[str, str] = self._recall("slots", key, _SLOTS, lambda: _aic().read_version_slots(sku, backend))
        return dict(slots)

    def quantization(self, identity: PerfIdentity) -> Quantization:
        """Number formats that the estimates of an identity are for."""
        return self.recall("quantization", identity, {}, _QUANTIZATION, lambda opened: opened.quantization)

    def data_provenance(self, identity: PerfIdentity) -> DataProvenance:
        """Tables of the identity that are borrowed or filled, and what the performance model warned of."""
        return self.recall("provenance", identity, {}, _PROVENANCE, lambda opened: opened.provenance)

    def default_memory_fraction(self, identity: PerfIdentity, shape: Shape) -> float:
        """The backend's own default memory fraction for its version, memory and shape."""
        known = self._memory_of(identity)
        name = _shape_name(shape)
        if name not in known.fractions:
            with self._by_name():
                known.fractions[name] = self._open(identity).worker(shape).default_memory_fraction()
            self._store_memory(identity)
        return known.fractions[name]

    def kv(
        self, identity: PerfIdentity, shape: Shape, max_num_batched_tokens: int, memory_fraction: float | None = None
    ) -> KvEstimate:
        """KV tokens of one rank.

        Args:
            identity: Model, SKU, backend and version.
            shape: The worker's shape.
            max_num_batched_tokens: Tokens of the largest pass, at least 1.
            memory_fraction: In (0, 1]; the backend's default when None.

        Returns:
            The estimate; 0 tokens with a reason when weights and buffers leave nothing.

        Raises:
            Unsupported: NoLegalShape when the model cannot be split like this, or what the identity lacks.
        """
        known = self._memory_of(identity)
        name = f"{_shape_name(shape)} {max_num_batched_tokens} {memory_fraction}"
        if name not in known.estimates:
            try:
                fraction = self.default_memory_fraction(identity, shape) if memory_fraction is None else memory_fraction
                worker = self._open(identity).worker(shape)
                known.estimates[name] = worker.kv(max_num_batched_tokens, fraction)
            except Unsupported as refusal:
                known.estimates[name] = _Refusal(refusal.reason, self._without_places(refusal.message))
            self._store_memory(identity)
        answer = known.estimates[name]
        if isinstance(answer, _Refusal):
            raise Unsupported(answer.reason, self._with_names(answer.message))
        return answer

    @contextmanager
    def written_together(self) -> Iterator[None]:
        """Inside, estimates of memory are kept and written once at the end: they share a file, of all shapes."""
        outermost = self._unwritten is None
        self._unwritten = self._unwritten or set()
        try:
            yield
        finally:
            if outermost:
                unwritten, self._unwritten = self._unwritten, None
                for identity in sorted(unwritten, key=lambda each: each.label):
                    self._store_memory(identity)

    def performance(self, identity: PerfIdentity) -> "PerformanceModel":
        """The opened performance model, imported now if it was not before.

        Raises:
            Unsupported: UnknownModel, UnknownHardware, NoData or UnsupportedDtype.
        """
        with self._by_name():
            return self._open(identity)

    def _open(self, identity: PerfIdentity) -> "PerformanceModel":
        if identity not in self._opened:
            placed = replace(identity, model=self._place(identity.model))
            self._opened[identity] = _aic().PerformanceModel(placed)
        return self._opened[identity]

    def recall(
        self,
        kind: str,
        identity: PerfIdentity,
        inputs: dict[str, JsonValue],
        adapter: TypeAdapter[Value],
        compute: "Callable[[PerformanceModel], Value]",
    ) -> Value:
        """A result of an identity, from memory, from disk, or computed and stored.

        Args:
            kind: What the result is.
            identity: Model, SKU, backend and version.
            inputs: Everything else that the result depends on.
            adapter: Reads and writes the result.
            compute: Makes the result; a refusal that it raises is stored too.

        Raises:
            Unsupported: What ``compute`` refused, now or when it was stored.
        """
        key = {**self._identity_key(identity), **inputs}
        return self._recall(kind, key, adapter, lambda: compute(self._open(identity)))

    def _recall(
        self, kind: str, key: dict[str, JsonValue], adapter: TypeAdapter[Value], compute: Callable[[], Value]
    ) -> Value:
        seen = (kind, repr(key))
        if seen not in self._seen:
            self._seen[seen] = self._from_disk(kind, key, adapter, compute)
        answer: Value | _Refusal = self._seen[seen]
        if isinstance(answer, _Refusal):
            raise Unsupported(answer.reason, self._with_names(answer.message))
        return answer

    def _from_disk(
        self, kind: str, key: dict[str, JsonValue], adapter: TypeAdapter[Value], compute: Callable[[], Value]
    ) -> Value | _Refusal:
        key = {**key, "wheel": wheel_version()}
        found = _read(self.cache.load(kind, key), adapter)
        if found is not None:
            return found
        try:
            computed = compute()
        except Unsupported as error:
            refusal = _Refusal(error.reason, self._without_places(error.message))
            self.cache.store(kind, key, {"refusal": _REFUSAL.dump_python(refusal, mode="json")})
            return refusal
        self.cache.store(kind, key, {"result": adapter.dump_python(computed, mode="json")})
        return computed

    def _identity_key(self, identity: PerfIdentity) -> dict[str, JsonValue]:
        return {
            **self._model_key(identity.model),
            "sku": identity.sku,
            "backend": identity.backend,
            "data_version": identity.data_version,
        }

    def _model_key(self, model: str) -> dict[str, JsonValue]:
        """A local model is keyed by its content alone, so that its place does not matter."""
        local = self._local.get(model)
        if isinstance(local, _Refusal):
            raise Unsupported(local.reason, local.message)
        if local is not None:
            return {"model": None, "config": local.digest}
        if model not in self._model_keys:
            digest = config_sha256(model)
            self._model_keys[model] = {"model": None if is_local(model) else model, "config": digest}
        return self._model_keys[model]

    def _place(self, model: str) -> str:
        """What the performance model is told: an id that it ships, or the folder of a local model's files."""
        local = self._local.get(model)
        if not isinstance(local, LocalModel):
            return model
        if model not in self._places:
            self._places[model] = str(local.placed_in(self.cache.folder / "models"))
        return self._places[model]

    def _without_places(self, message: str) -> str:
        """A message as it is stored: a local model is called by its content."""
        for name, place in self._places.items():
            message = message.replace(place, f"<{self.local_digest(name)}>")
        return message

    def _with_names(self, message: str) -> str:
        """A message as it is read: a local model is called by the name of this search."""
        for name, local in self._local.items():
            if isinstance(local, LocalModel):
                message = message.replace(f"<{local.digest}>", name)
        return message

    @contextmanager
    def _by_name(self) -> Iterator[None]:
        try:
            yield
        except Unsupported as error:
            raise Unsupported(error.reason, self._with_names(self._without_places(error.message))) from error

    def _memory_of(self, identity: PerfIdentity) -> _Memory:
        if identity not in self._memory:
            self._memory[identity] = self._stored_memory(identity)
        return self._memory[identity]

    def _stored_memory(self, identity: PerfIdentity) -> _Memory:
        key = {**self._identity_key(identity), "wheel": wheel_version()}
        try:
            return _MEMORY.validate_python(self.cache.load("memory", key))
        except ValidationError:
            return _Memory()

    def _store_memory(self, identity: PerfIdentity) -> None:
        """Writes what is known now, with what another process has added since."""
        if self._unwritten is not None:
            self._unwritten.add(identity)
            return
        known = self._memory[identity]
        stored = self._stored_memory(identity)
        merged = _Memory({**stored.fractions, **known.fractions}, {**stored.estimates, **known.estimates})
        key = {**self._identity_key(identity), "wheel": wheel_version()}
        self.cache.store("memory", key, _MEMORY.dump_python(merged, mode="json"))


def _aic() -> "ModuleType":
    """The adapter; a search that finds everything in the cache never gets here."""
    from dgdr_job.catalog import aic  # noqa: PLC0415  (imports the performance model, pandas and pyarrow)

    return aic


def _read(stored: JsonValue, adapter: TypeAdapter[Value]) -> Value | _Refusal | None:
    """What a file holds, or None when it holds nothing that can be used."""
    try:
        match stored:
            case {"refusal": refusal}:
                return _REFUSAL.validate_python(refusal)
            case {"result": result}:
                return adapter.validate_python(result)
    except ValidationError:
        pass
    return None


def _shape_name(shape: Shape) -> str:
    return "-".join(map(str, shape.key))
