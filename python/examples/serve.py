# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An engine in one file: continuous batching, speculation and prefix reuse over gdn's layers.

    python python/examples/serve.py --check

Each step is one batch of whatever there is to do: the next blocks of new prompts, and the next
tokens of the requests that generate, with drafts. The model (small_model.py) is small and has
random weights. Needs NumPy, and gdn-compile of the package gdn-compiler or on the PATH.
"""

import argparse
import sys
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field

import numpy as np

import gdn
import small_model
from gdn.layers.attention import CommonAttentionMetadata, GDNAttentionMetadataBuilder

BLOCK = 64  # tokens of a prompt in a step; states at the ends of blocks are kept


@dataclass(eq=False)
class Request:
    """A prompt, and what has been made of it."""

    name: int
    prompt: list[int]
    wanted: int  # new tokens
    tokens: list[int] = field(default_factory=list)  # the prompt and the new ones
    slots: list[int] = field(default_factory=list)  # one, or one for each token of a verify
    done: int = 0  # tokens that are in the state
    accepted: int = (
        1  # of the step before: the state is in slots[accepted - 1], or they are pending
    )
    reused: int = 0
    drafted: int = 0
    right: int = 0

    @property
    def new(self) -> int:
        return len(self.tokens) - len(self.prompt)

    @property
    def prefills(self) -> bool:
        return self.done < len(self.prompt)


class Prefixes:
    """States at the ends of blocks of prompts, in the pool's track slots. Where they are all in use
    the one that was used least recently makes room."""

    def __init__(self, pool: gdn.StatePool):
        self.pool, self.kept = pool, OrderedDict()

    def start(self, request: Request) -> None:
        """The longest kept beginning of the prompt; one token at least is left to run."""
        for end in range((len(request.prompt) - 1) // BLOCK * BLOCK, 0, -BLOCK):
            key = tuple(request.prompt[:end])
            if key in self.kept:
                self.kept.move_to_end(key)
                self.pool.copy_states(self.kept[key], request.slots[0])
                request.done = request.reused = end
                return

    def keep(self, request: Request) -> None:
        """The state of a request whose last step ended at the end of a block."""
        key = tuple(request.prompt[: request.done])
        if key in self.kept:
            self.kept.move_to_end(key)
            return
        slot = self.pool.alloc_track_slot()
        if slot is None:
            if not self.kept:
                return
            slot = self.kept.popitem(last=False)[1]
        self.pool.copy_states(request.slots[0], slot)
        self.kept[key] = slot


def lookup(tokens: list[int], count: int, longest: int = 3) -> list[int]:
    """Drafts: what followed the last tokens where they occurred before."""
    for size in range(longest, 0, -1):
        for at in range(len(tokens) - size - 1, -1, -1):
            if tokens[at : at + size] == tokens[-size:]:
                return tokens[at + size : at + size + count]
    return []


class Server:
    """The scheduler. Requests wait for slots; a step is a batch of at most `budget` tokens."""

    def __init__(self, model: small_model.Model, running: int, drafts: int, kept: int, budget: int):
        least = running * (1 + drafts) + BLOCK
        if budget < least:
            raise ValueError(f"budget: expected at least {least} tokens, got {budget}")
        self.model, self.drafts, self.budget, self.most = model, drafts, budget, running
        self.pool = model.make_pool(running, kept, drafts)
        self.prefixes = Prefixes(self.pool)
        self.builder = GDNAttentionMetadataBuilder.from_options(
            model.runtime,
            model.device,
            max_num_seqs=running,
            max_num_tokens=budget,
            num_speculative_tokens=drafts,
            mixed_batch=drafts > 0,
            verify_states="lazy" if model.defers else "slots",
            deferred_writes=model.defers,
        )
        self.layers = model.layers(self.pool, self.builder)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.finished: list[Request] = []
        self.steps = 0

    def add(self, request: Request) -> None:
        request.tokens = list(request.prompt)
        self.waiting.append(request)

    def admit(self) -> None:
        """Requests get their slots in the order in which they came."""
        while self.waiting and len(self.running) < self.most:
            slots = self.pool.allocate(self.model.slots_each(self.drafts), zero=False)
            if slots is None:
                return
            request = self.waiting.popleft()
            request.slots, request.accepted = slots, int(not self.model.defers)
            self.prefixes.start(request)
            self.running.append(request)

    def plan(self) -> list[tuple[Request, list[int]]]:
        """What a step runs: requests that generate, then blocks of prompts while there is room."""
        rows, room = [], self.budget
        for request in self.running:
            if not request.prefills:
                count = min(self.drafts, request.wanted - request.new - 1)
                drafts = lookup(request.tokens, count) if count > 0 else []
                rows.append((request, [request.tokens[-1], *drafts]))
                room -= len(rows[-1][1])
        for request in self.running:
            if request.prefills:
                piece = request.prompt[request.done : request.done // BLOCK * BLOCK + BLOCK]
                if len(piece) > room:
                    break
                rows.append((request, piece))
                room -= len(piece)
        return rows

    def step(self) -> None:
        self.admit()
        rows = self.plan()
        if not rows:
            return
        lengths = [len(piece) for _, piece in rows]
        starts = np.cumsum([0, *lengths], dtype=np.int32)
        common = CommonAttentionMetadata(
            query_start_loc=starts,
            seq_lens=np.array([r.done + len(piece) for r, piece in rows], np.int32),
            num_reqs=len(rows),
            num_actual_tokens=int(starts[-1]),
            block_table_tensor=np.array([r.slots for r, _ in rows], np.int32),
        )
        counts = {}
        if self.drafts:
            drafts = [-1 if r.prefills else len(piece) - 1 for r, piece in rows]
            counts["num_accepted_tokens"] = np.array([r.accepted for r, _ in rows], np.int32)
            counts["num_decode_draft_tokens_cpu"] = np.array(drafts, np.int32)
        metadata = self.builder.build(0, common, **counts)
        tokens = [token for _, piece in rows for token in piece]
        best = self.model.logits(self.layers, tokens, metadata).argmax(axis=1).tolist()
        for (request, piece), start in zip(rows, starts, strict=False):
            self.take(request, piece, best[start : start + len(piece)])
        self.steps += 1

    def take(self, request: Request, piece: list[int], best: list[int]) -> None:
        """What the model says behind each token of a piece goes into the request."""
        if request.prefills:
            request.done += len(piece)
            if request.done % BLOCK == 0:
                self.prefixes.keep(request)
            if request.prefills:
                return
            request.tokens.append(best[-1])
        else:
            right = 0
            while right + 1 < len(piece) and piece[right + 1] == best[right]:
                right += 1
            request.tokens += best[: right + 1]
            request.done += right + 1
            request.accepted = right + 1
            request.drafted += len(piece) - 1
            request.right += right
        if request.new >= request.wanted:
            self.pool.free(request.slots)
            self.running.remove(request)
            self.finished.append(request)


def table(requests: list[Request]) -> list[str]:
    lines = ["request  prompt  reused  tokens     accepted"]
    for r in requests:
        tokens, accepted = f"{r.new}/{r.wanted}", f"{r.right} of {r.drafted}"
        lines.append(f"{r.name:7}  {len(r.prompt):6}  {r.reused:6}  {tokens:>6}  {accepted:>11}")
    return lines


class Progress:
    """The requests that run, shown in place on a terminal a few times in a second."""

    def __init__(self, server: Server, count: int):
        self.server, self.count = server, count
        self.start, self.shown, self.height = time.perf_counter(), 0.0, 0
        self.terminal = sys.stdout.isatty()

    def show(self) -> None:
        seconds, server = time.perf_counter() - self.start, self.server
        if not self.terminal or seconds - self.shown < 0.1:
            return
        tokens = sum(r.new for r in server.finished + server.running)
        lines = table(server.running)
        lines.append(
            f"step {server.steps}, {len(server.finished)} of {self.count} requests, "
            f"{len(server.waiting)} waiting, {tokens} tokens, {tokens / seconds:.0f} tokens/s"
        )
        up = f"\x1b[{self.height}F\x1b[J" if self.height else ""
        print(up + "\n".join(lines), flush=True)
        self.shown, self.height = seconds, len(lines)


def serve(server: Server, requests: list[Request], each_step: int, show=lambda: None) -> None:
    """Serves requests, of which so many arrive in each step; `show` is called behind each step."""
    arriving = deque(requests)
    while len(server.finished) < len(requests):
        for _ in range(min(each_step, len(arriving))):
            server.add(arriving.popleft())
        server.step()
        show()


def make_requests(count: int, wanted: int, seed: int) -> list[Request]:
    """Prompts of 10 to 80 tokens behind one of two common beginnings of 150 tokens."""
    rng = np.random.default_rng(seed)
    beginnings = rng.integers(small_model.VOCABULARY, size=(2, 150)).tolist()
    own = [rng.integers(small_model.VOCABULARY, size=rng.integers(10, 80)) for _ in range(count)]
    return [Request(i, beginnings[i % 2] + own[i].tolist(), wanted) for i in range(count)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--new-tokens", type=int, default=48, help="of each request")
    parser.add_argument("--running", type=int, default=6, help="requests at a time")
    parser.add_argument("--drafts", type=int, default=3, help="tokens that are guessed in a step")
    parser.add_argument("--kept", type=int, default=8, help="states of beginnings that are kept")
    parser.add_argument("--budget", type=int, default=256, help="tokens of a step")
    parser.add_argument("--defer-writes", type=int, default=0, help="steps to a write of a state")
    parser.add_argument("--state", default="f32", help="f32, bf16, f16, i8x2, i8x2_upper, i8")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="compare with each request alone")
    options = parser.parse_args(arguments)
    runtime = gdn.Runtime()
    device = runtime.cuda() if options.device == "cuda" else runtime.device(num_workers=0)
    kinds = small_model.kernels_for(options.drafts, options.defer_writes)
    model = small_model.Model(runtime, device, options.seed, options.state, *kinds)
    server = Server(model, options.running, options.drafts, options.kept, options.budget)
    requests = make_requests(options.requests, options.new_tokens, options.seed)
    progress = Progress(server, len(requests))
    serve(server, requests, 2, progress.show)
    seconds = time.perf_counter() - progress.start
    tokens = sum(r.new for r in requests)
    print("", *table(requests), sep="\n")
    print(
        f"{tokens} tokens in {server.steps} steps, {tokens / seconds:.0f} tokens/s, {device.name}"
    )
    if not options.check:
        return 0
    return check(small_model.Model(runtime, device, options.seed, "f32"), requests)


def check(model: small_model.Model, requests: list[Request]) -> int:
    """Serves each request alone, without drafts and kept states, with kernels for such steps: 1 if
    a token differs."""
    wrong = 0
    for request in requests:
        alone = Request(request.name, request.prompt, request.wanted)
        serve(Server(model, running=1, drafts=0, kept=0, budget=BLOCK + 1), [alone], 1)
        if alone.tokens != request.tokens:
            wrong += 1
            print(f"request {request.name}: expected {alone.tokens}, got {request.tokens}")
    right = f"{len(requests) - wrong} of {len(requests)}"
    print(f"{right} requests have the tokens of one that is served alone")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
