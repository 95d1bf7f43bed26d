# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What layers of both kinds of decays have in common, between their projections: states, the core
of the runtime library, the gated norm, and the output projection. NumPy arrays or tensors."""

from collections.abc import Callable, Mapping

import numpy as np

from ...runtime import Kernel, Pool
from ...state_pool import StatePool
from .device_arrays import empty_like_rows, floats_beside, stream_of
from .gdn_layer import GDNLayer
from .gdn_metadata import GDNAttentionMetadata
from .layer_shape import gated_delta_net_state_dtype, gated_delta_net_state_shape

GATES = {"silu": "silu", "swish": "silu", "sigmoid": "sigmoid"}


class DeltaLayer:
    """One rank's part of a layer. Classes of layers set the attributes below, and make
    projections."""

    mamba_type = "gdn_attention"

    kernels: dict[str, Kernel]
    #: Names of parameters that some kernel takes.
    _taken: set[str]
    tp_size: int
    num_k_heads: int
    num_v_heads: int
    head_k_dim: int
    head_v_dim: int
    conv_kernel_size: int
    num_spec: int
    model_dtype: str
    mamba_cache_dtype: str
    mamba_ssm_cache_dtype: str
    conv_state_layout: str
    layer_norm_epsilon: float
    output_gate: str
    all_reduce: Callable | None
    out_proj: Callable
    #: Weights in the shapes of kernels.
    conv_weight: object
    A_log: object
    dt_bias: object
    norm_weight: object
    #: Columns of what out_proj gives, if it is the layer's own.
    _out_width: int | None = None
    kv_cache: tuple | None = None
    _core: GDNLayer | None = None

    def project(self, hidden_states) -> tuple[dict[str, object], object]:
        """What the kernels take of the projections, and what goes into the gate of the norm, unless
        it is packed."""
        raise NotImplementedError

    def _check_loaded(self) -> None:
        """ValueError unless all weights are there."""

    # States.

    def get_state_dtype(self) -> tuple[str, ...]:
        """Types of the arrays of get_state_shape(), by NumPy's names. Kernels with states in planes
        say themselves what these are: "uint8" for a plane, whatever the type of the caches, and
        "float32" for scales."""
        conv, state = gated_delta_net_state_dtype(
            self._runtime, self.model_dtype, self.mamba_cache_dtype, self.mamba_ssm_cache_dtype
        )
        planes = {"state_scales": "float32", "state_low": "uint8"}
        more = tuple(planes[name] for name in self._plane_names())
        return (conv, "uint8", *more) if more else (conv, state)

    def get_state_shape(self) -> tuple[tuple[int, ...], ...]:
        """Of one slot on one rank: of conv_state and ssm_state, and of kernels with states in
        planes those of state_scales and, with two planes, state_low. Where verify leaves tokens
        pending, the token that is not guessed has a position too."""
        verify = self.kernels.get("verify")
        pending = verify is not None and any(p.name == "pending_keys" for p in verify.params)
        conv, state = gated_delta_net_state_shape(
            self._runtime,
            self.tp_size,
            self.num_k_heads,
            self.num_v_heads,
            self.head_k_dim,
            self.head_v_dim,
            self.conv_kernel_size,
            self.num_spec + pending,
            self.conv_state_layout,
        )
        planes = {"state_scales": state[:-1], "state_low": state}
        return (conv, state, *(planes[name] for name in self._plane_names()))

    def _plane_names(self) -> tuple[str, ...]:
        """What kernels keep beside ssm_state, which then is the upper plane; none for states that
        are numbers."""
        return tuple(name for name in ("state_scales", "state_low") if name in self._taken)

    def bind_kv_cache(self, conv_state, ssm_state, null_slot: int = 0, **states) -> None:
        """The layer's states, slots in front of get_state_shape(). They stay the caller's.
        `states` are what kernels keep states in besides: pending_keys, pending_deltas and
        pending_decays, with deferred writes pending_counts, too, and of deltas in f16
        pending_scales, or token_conv_pool and token_state_pool; of states in planes state_scales
        and state_low."""
        self._check_loaded()
        given = {"conv_state": conv_state, "ssm_state": ssm_state, **states}
        names = ("conv_state", "ssm_state", *self._plane_names())
        for name, shape in zip(names, self.get_state_shape(), strict=True):
            array = given.get(name)
            if array is None:
                raise ValueError(f"{name}: expected slots of {list(shape)}, got none")
            if tuple(array.shape[1:]) != shape:
                raise ValueError(
                    f"{name}: expected slots of {list(shape)}, got {list(array.shape[1:])}"
                )
        window = conv_state if self.conv_state_layout == "DS" else conv_state.swapaxes(1, 2)
        # What is bound stays where this fails.
        core = GDNLayer(
            self.kernels,
            **self._weights_of_kernels(),
            conv_pool=Pool(window, null_slot),
            state_pool=Pool(ssm_state, null_slot),
            **{name: Pool(array, null_slot) for name, array in states.items()},
        )
        self.kv_cache, self._core = (conv_state, ssm_state), core

    def bind_state_pool(self, pool: StatePool, layer_idx: int) -> None:
        """The same with layer `layer_idx` of a pool, which has all that the kernels keep."""
        self._check_loaded()
        states = pool.get_layer_state(layer_idx)
        core = GDNLayer(self.kernels, pool=pool, layer_idx=layer_idx, **self._weights_of_kernels())
        self.kv_cache, self._core = states[::-1], core

    def _weights_of_kernels(self) -> dict[str, object]:
        weights = {
            "conv_weight": self.conv_weight,
            "A_log": self.A_log,
            "dt_bias": self.dt_bias,
            "norm_weight": self.norm_weight,
        }
        if "norm_constants" in self._taken:
            constants = (self.layer_norm_epsilon, float(self.output_gate == "silu"))
            weights["norm_constants"] = floats_beside(self.A_log, constants)
        return {name: array for name, array in weights.items() if name in self._taken}

    # A step.

    def forward(
        self,
        hidden_states,
        output,
        attn_metadata: GDNAttentionMetadata | None = None,
        *,
        stream: object = None,
    ) -> None:
        """hidden_states [T, hidden] to output[:T], of the type that the projections take; T are
        the tokens of `attn_metadata`, with padding. It is that of a builder
        (GDNAttentionMetadataBuilder.build) of this step, and states and windows of its slots are
        changed in place. Without metadata it is a profile run: no slot is touched and the core's
        output is zero. `stream` is PyTorch's current one of a GPU's tensors, or given. ValueError
        before bind_kv_cache or with weights that are missing, GdnError for a step that the kernels
        do not serve or arrays that do not go together."""
        tokens = hidden_states.shape[0]
        self._check_output(output, tokens)
        arrays, z = self.project(hidden_states)
        normed = "out" in self._taken
        rows = self.num_v_heads // self.tp_size
        core = empty_like_rows(hidden_states, (tokens, rows, self.head_v_dim))
        if normed and z is not None and "z" in self._taken:
            arrays["z"] = z
        self._run(attn_metadata, arrays, core, stream)
        if not normed:
            core = self.norm(core, z)
        self._project_out(core, output, tokens)

    def norm(self, core, z):
        """RMSNorm over dv with the gate behind it, summed in f32, rounded once."""
        z = z.reshape(core.shape)
        return rms_norm_gated(core, z, self.norm_weight, self.layer_norm_epsilon, self.output_gate)

    def _run(self, metadata, arrays, core, stream) -> None:
        name = "out" if "out" in self._taken else "core"
        if self._core is None:
            if metadata is not None:
                raise ValueError("kv_cache: expected bind_kv_cache before a step")
            core[...] = 0
            return
        self._core.forward(
            metadata,
            stream=stream_of(core, stream),
            **arrays,
            **{name: core},
        )

    def _check_output(self, output, tokens: int) -> None:
        """Ahead of all else: where the output has no room for a step's, no state has changed."""
        shape, width = list(output.shape), self._out_width
        if len(shape) != 2 or shape[0] < tokens or width not in (None, shape[1]):
            columns = "any" if width is None else width
            raise ValueError(
                f"output: expected the shape [{tokens} or more, {columns}], got {shape}"
            )

    def _project_out(self, core, output, tokens: int) -> None:
        result = self.out_proj(core.reshape(tokens, core.shape[1] * core.shape[2]))
        if self.tp_size > 1 and self.all_reduce is not None:
            result = self.all_reduce(result)
        output[:tokens] = result


def check_callables(projections: Mapping[str, Callable] | None) -> dict[str, Callable]:
    """Projections by their names. TypeError for one that cannot be called."""
    given = dict(projections or {})
    for name, projection in given.items():
        if not callable(projection):
            raise TypeError(
                f"projections: expected a callable for {name}, got {type(projection).__name__}"
            )
    return given


def check_kernels(kernels: Mapping[str, Kernel]) -> None:
    """ValueError for kernels that no layer can be made of."""
    if not kernels:
        raise ValueError("kernels: expected at least one, got none")
    for kind, kernel in kernels.items():
        if {"core", "out"} <= {param.name for param in kernel.params}:
            raise ValueError(
                f"kernels: expected one of the outputs core and out of {kind}, got both; compile"
                " with --outputs=core or --outputs=norm"
            )


def rms_norm_gated(x, z, weight, eps: float, gate: str):
    """x * rsqrt(mean x^2 + eps) * weight * gate(z) over the last dimension, in f32, in the
    type of x. NumPy arrays or tensors."""
    if gate not in GATES:
        raise ValueError(f"gate: expected {', '.join(GATES)}, got {gate}")
    silu = GATES[gate] == "silu"
    if isinstance(x, np.ndarray):
        wide, gates = x.astype(np.float32), np.asarray(z).astype(np.float32)
        scale = 1 / np.sqrt((wide * wide).mean(-1, keepdims=True) + np.float32(eps))
        sigmoid = np.exp(-np.logaddexp(np.float32(0), -gates))
        result = wide * scale * weight.astype(np.float32) * sigmoid
        return (result * gates if silu else result).astype(x.dtype)
    wide, gates = x.float(), z.float()
    scale = (wide * wide).mean(-1, keepdim=True).add(eps).rsqrt()
    result = wide * scale * weight.float() * gates.sigmoid()
    return (result * gates if silu else result).to(x.dtype)
