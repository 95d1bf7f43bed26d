# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The core of one layer on a device: kernels, weights and pools, and the launches of a
step. Arrays are NumPy's on a CPU, anything with DLPack on a GPU."""

import ctypes as c
import logging
from collections.abc import Mapping

from ... import _serving_abi
from ...arrays import DeviceArray, argument
from ...runtime import GdnError, Image, Kernel, _Handle, _stream, named_arguments
from ...state_pool import StatePool
from .device_arrays import as_dtype
from .gdn_metadata import GDNAttentionMetadata, GDNAttentionMetadataBuilder

logger = logging.getLogger(__name__)

KINDS = ("decode", "prefill", "verify", "commit")
# Parameters that an entry may have or not, and some steps need.
_OF_STEPS = ("has_initial", "write_slots", "cu_checkpoints", "num_accepted", "parents")


def layer_kernels(device, image: Image, suffix: str = "") -> dict[str, Kernel]:
    """The kernels of an image by kind, as far as it has them. `suffix` chooses among pairs
    of types: "_bf16_f32". A kernel without code for the device is left out; a step that
    needs it is refused."""
    entries, kernels = set(image.entries), {}
    if not any(kind + suffix in entries for kind in KINDS):
        known = {e.removeprefix(kind) for e in entries for kind in KINDS if e.startswith(kind)}
        raise ValueError(
            f"suffix: expected one of {', '.join(map(repr, sorted(known))) or 'none'}, for these"
            f" the image has kernels of layers, got {suffix!r}"
        )
    for kind in KINDS:
        if kind + suffix not in entries:
            continue
        try:
            kernels[kind] = device.kernel(image, kind + suffix)
        except GdnError as error:
            if error.status != "UNSUPPORTED":
                raise
            logger.info("%s is left out: %s", kind, error)
    return kernels


def _in_type_of(dtype: str | None, array: object) -> object:
    """A weight as the kernels take it. Pools are what they are."""
    known = dtype is not None and hasattr(array, "dtype") and not isinstance(array, DeviceArray)
    return as_dtype(array, dtype) if known else array


class Workspace(_Handle):
    """Memory in which all of `layers` work, one after another on one stream: as much as the
    one that needs most has to have for steps of up to `rows` sequences and `tokens` tokens. Taken
    once, or `memory`: bytes of the device, 64-byte aligned, which it keeps; work on `stream`
    follows. With `only` it is for launches on `stream` alone, so that batches on several streams
    may overlap. See gdnrt_workspace_create and gdnrt_workspace_wrap."""

    def __init__(
        self,
        layers: list["GDNLayer"],
        rows: int,
        tokens: int,
        memory: object = None,
        stream: object = None,
        *,
        only: bool = False,
    ):
        if not layers:
            raise ValueError("layers: expected at least one")
        runtime, device = layers[0]._runtime, layers[0].device
        size = _serving_abi.WorkspaceSize()
        for layer in layers:
            layer.add_workspace(rows, tokens, size)
        if memory is None:
            handle = runtime.create("gdnrt_workspace_create", device._handle, c.byref(size))
        else:
            space = argument("workspace", memory, device, written=True, dtypes=("uint8",))
            if not space.is_contiguous or space.nbytes < size.total_bytes:
                raise ValueError(
                    f"workspace: expected {size.total_bytes} contiguous bytes, got {space.nbytes}"
                )
            handle = runtime.create(
                "gdnrt_workspace_wrap", device._handle, c.byref(size), space.data, _stream(stream)
            )
        self._memory = memory
        super().__init__(runtime, handle, "gdnrt_workspace_destroy")
        self.nbytes = size.total_bytes
        for layer in layers:
            if only:
                layer.share_workspace_on(stream, self)
            else:
                layer.share_workspace(self)


class GDNLayer(_Handle):
    """See gdnrt_gdn_layer_create. Weights in another type than the kernels' are copied. With
    the builder of an engine's steps a layer that cannot serve all of them is refused when it
    is made; see check_steps. With `pool` all pools are those of layer `layer_idx` there, which
    are state_pool, conv_pool, and those of planes and of pending tokens; see
    gdnrt_gdn_layer_create_in_pool. Used by one thread at a time."""

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        *,
        builder: GDNAttentionMetadataBuilder | None = None,
        pool: StatePool | None = None,
        layer_idx: int = 0,
        **fixed: object,
    ):
        if not kernels:
            raise ValueError("kernels: expected at least one")
        unknown = set(kernels) - set(KINDS)
        if unknown:
            raise ValueError(f"kernels: expected {', '.join(KINDS)}, got {', '.join(unknown)}")
        first = next(iter(kernels.values()))
        runtime = first._runtime
        self.kernels = dict(kernels)
        self.device = first._device
        params = [param for kernel in kernels.values() for param in kernel.params]
        dtypes = {param.name: param.dtype for param in params}
        #: Parameters that a kernel writes.
        self.written = {param.name for param in params if param.access != "read"}
        fixed = {name: _in_type_of(dtypes.get(name), array) for name, array in fixed.items()}
        self._fixed = fixed
        named, self._keep = named_arguments(fixed, self.device, self.written)
        raw = _serving_abi.Kernels(**{kind: k._handle for kind, k in kernels.items()})
        if pool is None:
            handle = runtime.create("gdnrt_gdn_layer_create", c.byref(raw), named, len(fixed))
        else:
            name, given = "gdnrt_gdn_layer_create_in_pool", (c.byref(raw), named, len(fixed))
            handle = runtime.create(name, *given, pool._handle, layer_idx)
        self._pool = pool
        super().__init__(runtime, handle, "gdnrt_gdn_layer_destroy")
        self._workspaces: dict[int | None, Workspace | None] = {}
        if any(kernel.batch_invariant for kernel in kernels.values()):
            self.set_batch_invariant()
        logger.info("a layer with %s", self.serves)
        if builder is not None:
            self.check_steps(builder)

    @property
    def serves(self) -> str:
        """Which kinds of sequences have a kernel, and which parameters of steps it takes, such as
        "decode (write_slots), prefill (has_initial, write_slots)"."""
        parts = []
        for kind, kernel in self.kernels.items():
            taken = {param.name for param in kernel.params}
            found = ", ".join(name for name in _OF_STEPS if name in taken)
            parts.append(f"{kind} ({found})" if found else kind)
        return ", ".join(parts)

    def check_steps(self, builder: GDNAttentionMetadataBuilder) -> None:
        """GdnError, UNSUPPORTED, unless the layer can serve every step of the builder: it
        names what the kernels lack, and the options of gdn-compile that make it."""
        self._runtime.call("gdnrt_gdn_layer_check_steps", self._handle, builder._handle)

    def allow_dependent_launch(self, allowed: bool = True) -> None:
        """See gdnrt_gdn_layer_allow_dependent_launch; on by default."""
        self._runtime.call("gdnrt_gdn_layer_allow_dependent_launch", self._handle, int(allowed))

    def set_batch_invariant(self, wanted: bool = True) -> None:
        """See gdnrt_gdn_layer_set_batch_invariant; on for kernels that are batch
        invariant when the layer is made."""
        self._runtime.call("gdnrt_gdn_layer_set_batch_invariant", self._handle, int(wanted))

    def add_workspace(self, rows: int, tokens: int, size: _serving_abi.WorkspaceSize) -> None:
        """Raises `size` to what steps of up to so many sequences and tokens need."""
        self._runtime.call(
            "gdnrt_gdn_layer_workspace_size", self._handle, rows, tokens, c.byref(size)
        )

    def share_workspace(self, workspace: Workspace | None) -> None:
        """See gdnrt_gdn_layer_share_workspace."""
        handle = None if workspace is None else workspace._handle
        self._runtime.call("gdnrt_gdn_layer_share_workspace", self._handle, handle)
        self._workspace = workspace

    def share_workspace_on(self, stream: object, workspace: Workspace | None) -> None:
        """See gdnrt_gdn_layer_share_workspace_on_stream."""
        handle = None if workspace is None else workspace._handle
        name = "gdnrt_gdn_layer_share_workspace_on_stream"
        self._runtime.call(name, self._handle, handle, _stream(stream))
        self._workspaces[_stream(stream)] = workspace

    def forward(
        self,
        metadata: GDNAttentionMetadata | None,
        *,
        stream: object = None,
        **tokens: object,
    ) -> None:
        """Runs a step into the outputs among `tokens`; see gdnrt_gdn_layer_forward."""
        named, keep = named_arguments(tokens, self.device, self.written)
        raw = None if metadata is None else c.byref(metadata.raw)
        arena = None if metadata is None else metadata.device_arena
        self._runtime.call(
            "gdnrt_gdn_layer_forward",
            self._handle,
            raw,
            None if arena is None else arena.data,
            named,
            len(tokens),
            _stream(stream),
        )
        self._last = keep
