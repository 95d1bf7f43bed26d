# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of a model of transformers and their times: whole, and of its linear attention."""

import statistics
from collections.abc import Callable
from functools import partial

import torch
from transformers import StaticCache

from .transformers_models import VOCABULARY, linear_layers

REPEATS, WARM_UP = 12, 3
BEHIND = 64  # tokens of the prompts behind which tokens are made
MOST_TOKENS = 512  # of a static cache: more than all steps of a measurement


def tokens_of(batch: int, length: int) -> torch.Tensor:
    numbers = torch.arange(batch * length, device="cuda").reshape(batch, length)
    return numbers * 7 % VOCABULARY


def prefill(model, batch: int, length: int) -> Callable[[], object]:
    return partial(model, tokens_of(batch, length), use_cache=True)


def decode(model, batch: int, static: bool = False, step=None) -> Callable[[], object]:
    """A token of each sequence; `step` is the model, or what was compiled of it."""
    tokens = tokens_of(batch, BEHIND)
    cache = StaticCache(config=model.config, max_cache_len=MOST_TOKENS) if static else None
    cache = model(tokens, past_key_values=cache, use_cache=True).past_key_values
    token = tokens[:, :1].clone()
    return partial(step or model, token, past_key_values=cache, use_cache=True)


def layer_step(model, batch: int) -> Callable[[], object]:
    """A token of each sequence through one layer of linear attention."""
    layer = linear_layers(model)[0]
    cache = StaticCache(config=model.config, max_cache_len=MOST_TOKENS)
    model(tokens_of(batch, BEHIND), past_key_values=cache, use_cache=True)
    hidden = torch.randn((batch, 1, layer.hidden_size), dtype=torch.bfloat16, device="cuda")
    return partial(layer, hidden, cache)


def in_graph(run: Callable[[], object]) -> Callable[[], object]:
    """Replays of a graph of a step."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def milliseconds(run: Callable[[], object]) -> float:
    """The median of a step, by events."""
    times = []
    for _ in range(WARM_UP + REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[WARM_UP:])


class LayerTimer:
    """Milliseconds that the linear attention takes of a step, by events around its layers."""

    def __init__(self, model):
        self.pairs, self.hooks = [], []
        for layer in linear_layers(model):
            self.hooks.append(layer.register_forward_pre_hook(lambda *_: self._mark(True)))
            self.hooks.append(layer.register_forward_hook(lambda *_: self._mark(False)))

    def _mark(self, begins: bool) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        if begins:
            self.pairs.append([event])
        else:
            self.pairs[-1].append(event)

    def take(self) -> float:
        torch.cuda.synchronize()
        total = sum(start.elapsed_time(end) for start, end in self.pairs)
        self.pairs.clear()
        return total

    def remove(self) -> None:
        for hook in self.hooks:
            hook.remove()


def linear_milliseconds(model, run: Callable[[], object]) -> float:
    timer = LayerTimer(model)
    times = []
    for _ in range(WARM_UP + REPEATS):
        run()
        times.append(timer.take())
    timer.remove()
    return statistics.median(times[WARM_UP:])
