# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the test suites of other libraries against the functions of gdn.ops, with nothing but the
import swapped, and counts.

  peer_suites.py fetch suites                  the suites that packages have, into a folder
  peer_suites.py take fla folder suites        one of them, from sources that are there
  peer_suites.py run suites --device cuda      all that are in the folder
  peer_suites.py run suites --only vLLM --every 20 --record

Needs PyTorch, pytest and gdn, on a device without a network too once the folder is there. On a CPU
the suites' name of the device is replaced. --every runs each nth case of a test, which is for slow
machines and said in the record. --jobs runs so many shares of a suite at the same time. --record
puts the counts into docs/generated/peer-suites.json, those of a GPU beside those of a CPU.
Ends with 0 if nothing failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from peers.sources import SOURCES, FetchError, fetch, fetch_needed, take
from peers.suites import SUITES, Suite

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs/generated/peer-suites.json"
# How suites name the device, for a run on a CPU.
CPU_EDITS = (
    (r"""(["'])cuda\1""", r"\1cpu\1"),
    (r"torch\.cuda\.is_available\(\)", "True"),
    (r"torch\.cuda\.get_device_capability\(\w*\)", "(9, 0)"),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch")
    fetching.add_argument("folder", type=Path)
    taking = commands.add_parser("take")
    taking.add_argument("source", choices=list(SOURCES))
    taking.add_argument("root", type=Path)
    taking.add_argument("folder", type=Path)
    running = commands.add_parser("run")
    running.add_argument("folder", type=Path)
    running.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    running.add_argument("--only", default="", help="suites with this in their names")
    running.add_argument("--every", type=int, default=1)
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--record", action="store_true")
    running.add_argument("--commit", help="that the sources are of, where no git is")
    asked = parser.parse_args()
    try:
        if asked.command == "take":
            take(asked.source, asked.root, asked.folder)
            return 0
        if asked.command == "fetch":
            for name, source in SOURCES.items():
                if source.package:
                    fetch(name, asked.folder)
            fetch_needed(asked.folder)
            return 0
    except FetchError as error:
        print(error)
        return 1
    facts = where(asked.device) | {"every": asked.every}
    if asked.commit:
        facts["commit"] = asked.commit
    return run_all(asked.folder, asked.device, asked.only, facts, asked.jobs, asked.record)


def run_all(folder: Path, device: str, only: str, facts: dict, jobs: int, is_recorded: bool) -> int:
    """`facts` are of the run: the device, the day, the commit, and which cases."""
    failed = 0
    for name, suite in SUITES.items():
        there = (folder / suite.source).is_dir()
        if only not in name or suite.on not in (None, device):
            continue
        if not there:
            print(f"{name}: expected {folder / suite.source}, found nothing")
            failed += 1
            continue
        found = facts | run(name, suite, folder.resolve(), device, facts["every"], jobs)
        failures = found.pop("failures")
        for test, text in failures.items():
            print(f"FAILED {test}\n{text}")
        counts = ", ".join(f"{found[key]} {key}" for key in ("passed", "failed", "skipped"))
        refused = sum(row["cases"] for row in found["not_expressible"])
        print(f"{name}: {counts}, {refused} not expressible", flush=True)
        failed += found["failed"]
        if is_recorded:
            record(name if device == "cpu" else f"{name}, {found['device']}", found)
    return 1 if failed else 0


def run(name: str, suite: Suite, folder: Path, device: str, every: int, jobs: int = 1) -> dict:
    """The counts of one suite, with its version, and what it ran on."""
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(jobs) as pool:
        tests = prepare(suite, folder / suite.source, Path(scratch), device)
        options = [f"--peer-suite={name}", f"--peer-device={device}", f"--peer-every={every}"]

        def run_one(share: int) -> dict:
            return run_share(name, suite, folder, Path(scratch), [*options, *tests], share, jobs)

        shares = list(pool.map(run_one, range(jobs)))
    return {"version": SOURCES[suite.source].version} | sum_of(shares)


def run_share(
    name: str, suite: Suite, folder: Path, scratch: Path, arguments: list, share: int, shares: int
) -> dict:
    """The counts of one of several shares of a suite's cases."""
    output = scratch / f"counts-{share}.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "peers.plugin", "--no-header"]
    command += ["-p", "no:cacheprovider", "--tb=short", "-W", "ignore", f"--rootdir={scratch}"]
    command += [f"--peer-share={share}/{shares}", f"--peer-output={output}"]
    command += map(str, arguments)
    places = [ROOT / "tools/scripts", folder / suite.source, folder / "needed"]
    if importlib.util.find_spec("gdn") is None:
        places.append(ROOT / "python")
    # Suites run in another folder.
    known = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    path = os.pathsep.join(map(str, [*places, *(Path(place).resolve() for place in known)]))
    # FLA's suite skips shared heads of keys otherwise.
    environment = os.environ | {"PYTHONPATH": path, "FLA_DISABLE_BACKEND_DISPATCH": "1"}
    done = subprocess.run(command, cwd=scratch, env=environment, stdout=subprocess.PIPE, text=True)
    if not output.exists():
        print(done.stdout)
        raise SystemExit(f"{name}: pytest came to no end")
    found = json.loads(output.read_text())
    # 5: a share without a case
    if done.returncode not in (0, 1) and not (done.returncode == 5 and shares > 1):
        found["failures"]["pytest"] = done.stdout[-2000:]
        found["failed"] += 1
    return found


def sum_of(shares: list[dict]) -> dict:
    total = {key: sum(one[key] for one in shares) for key in ("passed", "failed", "skipped")}
    refused: Counter[tuple[str, str]] = Counter()
    for row in (row for one in shares for row in one["not_expressible"]):
        refused[row["test"], row["why"]] += row["cases"]
    rows = [{"test": t, "cases": n, "why": why} for (t, why), n in sorted(refused.items())]
    # Those that a suite asks for beside results come last.
    rows.sort(key=lambda row: row["test"] == "gradients")
    failures = {test: text for one in shares for test, text in one["failures"].items()}
    return total | {"not_expressible": rows, "failures": failures}


def prepare(suite: Suite, source: Path, scratch: Path, device: str) -> list[Path]:
    """Copies of a suite's files that run on a device, in a package of their own. Files beside them
    come along."""
    package = scratch / "peer_tests"
    package.mkdir()
    (package / "__init__.py").touch()
    for directory in {source / Path(test).parent for test in suite.tests}:
        for path in directory.glob("*.py"):
            text = path.read_text()
            for pattern, replacement in CPU_EDITS if device == "cpu" else ():
                text = re.sub(pattern, replacement, text)
            (package / path.name).write_text(text)
    return [package / Path(test).name for test in suite.tests]


def where(device: str) -> dict[str, str]:
    """The device, the day and the commit of a run."""
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(git, text=True, capture_output=True)
    name = "CPU"
    if device == "cuda":
        import torch

        name = torch.cuda.get_device_name()
    return {"device": name, "date": str(date.today()), "commit": done.stdout.strip()}


def record(name: str, found: dict) -> None:
    """The counts of a suite on a device in the record, whose others stay, in the order of the
    suites."""
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    known[name] = found
    order = [next(i for i, suite in enumerate(SUITES) if key.startswith(suite)) for key in known]
    known = dict(item for _, item in sorted(zip(order, known.items(), strict=True)))
    RECORD.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
