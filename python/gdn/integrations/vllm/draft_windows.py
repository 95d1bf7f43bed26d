# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows of the convolution of sequences with drafts, as vLLM copies them. Arrays are NumPy's, or
tensors of PyTorch."""


def join_windows(windows, token_slots, width: int) -> None:
    """vLLM keeps one window of a sequence, in the slot of its first token: `width` inputs up to
    that token, and behind them the inputs of the tokens after it. It copies that from the column of
    the last accepted token on when a sequence goes on in another block. Kernels of verify keep
    `width` inputs up to token t in token_slots[n, t] [N, S]; so the last of those go behind the
    first window. `windows` are [P, D, width + S - 1].

    Behind a sequence with fewer tokens than S, and in slot 0, which is padding, columns get values
    that nobody reads."""
    drafts = int(token_slots.shape[1]) - 1
    last = windows[:, :, width - 1][token_slots[:, 1:]]
    windows[:, :, width : width + drafts][token_slots[:, 0]] = last.swapaxes(1, 2)
