# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the first call to the first result: what a process that has a CUDA context waits for
when it calls a rule for the first time, with all caches empty, for us and for others.

Each is measured in a process of its own, whose home and temporary folder are empty, so that
what is compiled or written there is found. `python -m gdn.bench.first_call IMAGE` writes the
rows; IMAGE has the entry prefill of `--layout=ready --l2norm` for this GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

from .report import save

# One sequence, with the heads of Qwen3.5-4B.
SET, KEYS, VALUES = "1x256", 16, 32
PEERS = {"fla": "fla", "flashqla": "flash_qla", "flashinfer": "flashinfer"}
LIMIT_S = 400
# Folders that caches are kept in, below the home of the process.
_CACHES = ("TRITON_CACHE_DIR", "TILELANG_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE")


def _problem():
    from . import grid, prefill_inputs

    case = grid.Case((KEYS, VALUES), SET)
    return prefill_inputs.make_problem(case, "bfloat16", "float32", sets=1)


def _ours(image: Path, library: Path | None, problem):
    """Prepares everything from the file on; the call that is returned launches."""
    import torch

    from gdn import Pool, Runtime

    runtime = Runtime(library)
    loaded = runtime.image(image)
    kernel = runtime.cuda(0).kernel(loaded, "prefill")
    x = problem.sets[0]
    pool = torch.empty((2, *x.state.shape[1:]), dtype=x.state.dtype, device="cuda")
    pool[1:] = x.state
    output = torch.empty_like(x.v)
    slots = torch.ones(1, dtype=torch.int32, device="cuda")
    arguments = {
        "q": x.q,
        "k": x.k,
        "v": x.v,
        "log_decay": x.g,
        "beta": x.beta,
        "cu_seqlens": problem.bounds,
        "slots": slots,
        "state_pool": Pool(pool),
        "core": output,
    }
    binding = kernel.bind(**{p.name: arguments[p.name] for p in kernel.params})
    if binding.workspace_bytes:
        memory = torch.empty(binding.workspace_bytes, dtype=torch.uint8, device="cuda")
        binding.set_workspace(memory, torch.cuda.current_stream())

    def call():
        binding.launch(torch.cuda.current_stream())
        return output

    return call


def _peer(name: str, problem):
    from .peers import prefill

    (make,) = [made for impl, _, _, made in prefill.PEERS if impl == name]
    peer = make(problem)

    def call():
        peer.calls[0]()
        return peer.output()

    return call


def child(name: str, image: Path | None, library: Path | None) -> dict:
    """Milliseconds in this process: to the first result and for a second one, with the error of
    the first."""
    import torch

    problem = _problem()
    torch.cuda.synchronize()
    start = time.perf_counter()
    call = _ours(image, library, problem) if name == "gdn" else _peer(name, problem)
    first = call()
    torch.cuda.synchronize()
    first_ms = (time.perf_counter() - start) * 1e3
    result = first.clone()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    second_ms = (time.perf_counter() - start) * 1e3

    from . import prefill_inputs

    exact, _ = prefill_inputs.exact(problem.case, problem.sets[0])
    error = prefill_inputs.relative_error(result, exact)
    return {"first_call_ms": first_ms, "us": second_ms * 1e3, "error_o": error}


def measure(name: str, image: Path | None, library: Path | None) -> tuple[dict | None, str]:
    """A row and "", or None and why there is none."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"HOME": home, "TMPDIR": home, "XDG_CACHE_HOME": f"{home}/c"}
        environment |= {variable: f"{home}/{variable}" for variable in _CACHES}
        command = [sys.executable, "-m", "gdn.bench.first_call", "--child", name]
        command += [str(image)] if image else []
        command += ["--library", str(library)] if library else []
        options = {"capture_output": True, "text": True, "timeout": LIMIT_S}
        try:
            done = subprocess.run(command, env=environment, **options)
        except subprocess.TimeoutExpired:
            return None, f"no result after {LIMIT_S} s"
        if done.returncode:
            return None, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        files = [path for path in Path(home).rglob("*") if path.is_file()]
        found = json.loads(done.stdout.splitlines()[-1])
        config = {"set": SET, "Hk": KEYS, "Hv": VALUES, "variant": "", "files": len(files)}
        row = {"suite": "first call", "impl": name, "config": config} | found
        return row | {"us_min": row["us"]}, ""


def main() -> int:
    parser = argparse.ArgumentParser("first_call", description=__doc__)
    parser.add_argument("image", type=Path, nargs="?")
    parser.add_argument("--library", type=Path)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--repeats", type=int, default=3, help="processes of ours")
    parser.add_argument("--commit", help="that the image is of; that of this tree by default")
    parser.add_argument("--output", type=Path, help="write the report as JSON")
    parser.add_argument("--append", action="store_true", help="keep the rows that are there")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child, options.image, options.library)))
        return 0
    if options.image is None or not options.image.exists():
        parser.error(f"image: no file {options.image}")
    from . import measure as machine

    report = machine.describe(options.commit) | {"not_measured": [], "rows": []}
    with contextlib.suppress(metadata.PackageNotFoundError):
        report["versions"]["gdn"] = metadata.version("gdn")
    if options.append and options.output.exists():  # of another environment of packages
        before = json.loads(options.output.read_text())
        report["versions"] = before["versions"] | report["versions"]
        report |= {name: before[name] for name in ("not_measured", "rows")}
    runs = [("gdn", options.image, options.library)] * options.repeats
    for run in [*runs, *((name, None, None) for name in options.peers)]:
        row, reason = measure(*run)
        print(f"first_call: {run[0]}: {reason or round(row['first_call_ms'], 1)}", flush=True)
        if row:
            report["rows"].append(row)
        else:
            report["not_measured"].append({"impl": run[0], "reason": reason})
    if options.output:
        save(options.output, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
