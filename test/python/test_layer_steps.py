# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer says when it is made which steps it can serve: all that its kernels lack for those of
a builder, with the options of gdn-compile that make it."""

import numpy as np
import pytest
from gdn_layer_model import compile_image, make_weights

from gdn import GdnError, Pool, Runtime
from gdn.layers.attention import GDNAttentionMetadataBuilder, GDNLayer, layer_kernels

SPLIT = ("--layout=split", "--outputs=core")


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def make_layer(runtime, tool, tmp_path_factory):
    """Makes a layer of an image with these options, or of some of its kernels."""
    folder, device = tmp_path_factory.mktemp("layer"), runtime.device()

    def make(*options: str, kinds=None, **given) -> GDNLayer:
        kernels = layer_kernels(device, runtime.image(compile_image(tool, folder, *options)))
        kernels = {kind: k for kind, k in kernels.items() if kinds is None or kind in kinds}
        weights = make_weights(np.random.default_rng(0), 1, 2)
        channels = len(weights["conv_weight"])
        conv, state = np.zeros((3, channels, 3)), np.zeros((3, 2, 64, 64))
        pools = {"conv_pool": conv, "state_pool": state}
        pools = {name: Pool(array.astype(np.float32)) for name, array in pools.items()}
        return GDNLayer(kernels, **weights, **pools, **given)

    return make


def builder(runtime, **options):
    return GDNAttentionMetadataBuilder.from_options(
        runtime, max_num_seqs=2, max_num_tokens=16, **options
    )


def test_a_plain_image_serves_no_new_requests(runtime, make_layer):
    layer = make_layer(*SPLIT)
    assert layer.serves == "decode, prefill"
    with pytest.raises(GdnError) as error:
        layer.check_steps(builder(runtime, num_speculative_tokens=9))
    assert str(error.value) == (
        "UNSUPPORTED: layer: expected kernels for all steps of the builder, got others, which"
        " gdn-compile makes with the options in brackets: prefill has no has_initial"
        " (--has-initial); decode has no write_slots (--write-slots); prefill has no write_slots"
        " (--write-slots); no kernel verify (--verify=slots)"
    )
    with pytest.raises(GdnError, match=r"no kernel commit \(--verify=lazy\)"):
        layer.check_steps(builder(runtime, num_speculative_tokens=3, verify_states="lazy"))
    with pytest.raises(GdnError, match=r"prefill has no cu_checkpoints \(--checkpoints\)"):
        layer.check_steps(builder(runtime, mamba_cache_mode="all"))
    with pytest.raises(GdnError, match=r"brackets: no kernel prefill$"):
        make_layer(*SPLIT, kinds=["decode"], builder=builder(runtime))


def test_what_an_engine_needs(runtime, make_layer):
    options = (*SPLIT, "--write-slots", "--has-initial", "--verify=slots")
    layer = make_layer(*options, builder=builder(runtime, num_speculative_tokens=7))
    assert layer.serves == (
        "decode (write_slots), prefill (has_initial, write_slots), verify (num_accepted)"
    )
    layer.check_steps(builder(runtime))
    layer.check_steps(builder(runtime, mamba_cache_mode="align", num_speculative_tokens=1))
    with pytest.raises(
        GdnError, match=r"verify takes 8 tokens of a row, not 9 \(--verify-tokens=9\)"
    ):
        layer.check_steps(builder(runtime, num_speculative_tokens=8))
    with pytest.raises(GdnError, match=r"verify keeps states as slots \(--verify=buffer\)"):
        layer.check_steps(builder(runtime, num_speculative_tokens=1, verify_states="buffer"))
