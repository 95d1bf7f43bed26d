# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One GPU that serves a trace behind a prefix cache: steps with pieces of prompts in the order of
arrival, and a token of each request that is decoding.

A step has at most `PIECE_TOKENS` tokens of prompts. A request looks for its prefix when its first
piece is in a step. Requests of one step cannot use each other's prefixes. Time to first token is
from the arrival to the end of the step with the last piece of the prompt. What a prefix has on the
host comes layer by layer while the step computes: the step takes the longer of the two.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass

import numpy as np

from .machine import Machine
from .rules import Policy
from .traces import Trace

PIECE_TOKENS = 8192
MOST_RUNNING = 256


@dataclass
class Result:
    """Of one trace with one policy and one size of memory."""

    requests: int
    prompt_tokens: int
    hit_tokens: int
    ttft: np.ndarray  # seconds, by request
    copied_bytes: int  # states written beside those of running requests
    host_bytes: int  # from pinned host memory
    evicted: int  # states
    busy: float  # seconds of steps
    waits: int  # times that a request could not begin for want of memory
    stored: int = 0  # states copied to the host, and back
    fetched: int = 0

    def row(self) -> dict:
        ms = self.ttft * 1e3
        return {
            "hit_rate": round(self.hit_tokens / self.prompt_tokens, 5),
            "computed_tokens": self.prompt_tokens - self.hit_tokens,
            "state_bytes": self.copied_bytes,
            "host_bytes": self.host_bytes,
            "evicted": self.evicted,
            "ttft_mean_ms": round(float(ms.mean()), 3),
            "ttft_p50_ms": round(float(np.percentile(ms, 50)), 3),
            "ttft_p99_ms": round(float(np.percentile(ms, 99)), 3),
        }


def run(trace: Trace, policy: Policy, machine: Machine) -> Result:
    """Serves all requests of a trace. Raises RuntimeError if a request alone has too little
    memory."""
    arrival, count = trace.arrival, len(trace.arrival)
    ttft = np.zeros(count)
    waiting: deque[int] = deque()
    begun: list | None = None  # the request at the head of the queue, if a piece of it is done
    decoding: list[tuple[int, int, object]] = []  # step at which it ends, number, request
    now = busy = context = 0.0
    steps = following = hits = waits = done = host_bytes = 0
    per_state = machine.moved(policy.passes)

    def end_answers() -> None:
        nonlocal context, done
        while decoding and decoding[0][0] <= steps:
            _, _, request = heapq.heappop(decoding)
            context -= request.end + 1
            policy.finish(request, now)
            done += 1

    while done < count:
        while following < count and arrival[following] <= now:
            waiting.append(following)
            following += 1
        pieces, budget, from_host, state_at = [], PIECE_TOKENS, 0, 0.0
        copied = policy.copied
        while budget and (begun or waiting):
            if begun is None:
                if len(decoding) + len(pieces) >= MOST_RUNNING:
                    break
                if policy.waits(waiting[0], [piece[0] for piece in pieces]):
                    break
                request = policy.begin(waiting[0], now)
                if request is None:
                    waits += 1
                    break
                waiting.popleft()
                hits += request.hit
                from_host += request.host_bytes
                state_at = max(state_at, request.state_at)
                begun = [request, request.hit]
            request, first = begun
            tokens = policy.piece(request, first, budget)
            pieces.append((request, first, tokens))
            budget -= tokens
            if first + tokens < request.tokens:
                begun[1] = first + tokens
                break
            begun = None
        rows = len(decoding)
        if not pieces and rows == 0:
            if waiting:
                raise RuntimeError(f"request {waiting[0]}: expected memory for it alone")
            now = max(now, arrival[following])
            continue
        if pieces:
            seconds = machine.step([piece[1:] for piece in pieces], rows, context)
            for request, first, tokens in pieces:
                policy.computed(request, first, tokens, now)
            seconds += per_state * (policy.copied - copied)
            seconds = max(seconds, machine.from_host(from_host), state_at - now)
            host_bytes += from_host
            steps += 1
        else:
            seconds = machine.step([], rows, context)
            many = decoding[0][0] - steps
            if following < count:
                many = min(many, max(1, int(np.ceil((arrival[following] - now) / seconds))))
            steps += many
            seconds *= many
        now += seconds
        busy += seconds
        end_answers()
        for request, first, tokens in pieces:
            if first + tokens == request.tokens:
                ttft[request.number] = now - arrival[request.number]
                left = request.end - request.tokens
                context += request.end + 1
                heapq.heappush(decoding, (steps + left, request.number, request))
        end_answers()
    return Result(
        requests=count,
        prompt_tokens=trace.prompt_tokens(),
        hit_tokens=hits,
        ttft=ttft,
        copied_bytes=policy.copied * machine.model.state_bytes,
        host_bytes=host_bytes,
        evicted=policy.evicted,
        busy=busy,
        waits=waits,
        stored=getattr(policy.tree, "stored", 0),
        fetched=getattr(policy.tree, "fetched", 0),
    )
