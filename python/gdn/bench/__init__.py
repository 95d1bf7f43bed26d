# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measurements on a GPU: ours and others in one process, on the same buffers.

    python -m gdn.bench run IMAGE --output FILE     measure
    python -m gdn.bench prefill IMAGE --output FILE the grid of prefill
    python -m gdn.bench prologue IMAGE              the stages of a prefill, each alone
    python -m gdn.bench packed IMAGE --output FILE  prefill of projections, beside chains of kernels
    python -m gdn.bench.layer IMAGE --output FILE   decode through a layer, beside rules alone
    python -m gdn.bench.mixed IMAGE IMAGE --output FILE  steps of all kinds of sequences
    python -m gdn.bench join FILE.. --output FILE   one report of several
    python -m gdn.bench table FILE                  what was measured, as a table
    python -m gdn.bench plot FILE.. --output FILE.svg   what of it is beside others, as a picture

`gdn-bench` is the same program where the package is installed. Measuring needs PyTorch
and Triton, pictures matplotlib; tables need nothing. How times are taken is in
docs/design/20261121-gpu-measurements.md.
"""
