# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds gdn, runs its suites, and ends with the line "N passed, N failed".

Without options: what must hold before a change lands, in minutes. --full adds the
sanitizer build, the fuzzers and a short run of each benchmark, and records the outcome in
docs/generated/check-full.json, after each of its parts. What can be run alone is recorded
there, too: --traces plays the 10,000 traces of a scheduler; --sanitizers builds the runtime
and its tests with sanitizers, without the compiler, and runs them on the images of the
release build; --tidy runs clang-tidy over everything, which --full does not.

Runs on the CPU of kernels that have passed before, with the same kernels and the same
programs, are not repeated; --fresh repeats them, as --full does. --times shows how long
the last run took beside the record.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import check_times
import one_run
import run_once
import suites

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build/release"
RECORD = ROOT / "docs/generated/check-full.json"
SCRIPTS = ROOT / "tools/scripts"
LLVM_BIN = Path(f"/usr/lib/llvm-{(ROOT / 'LLVM_VERSION').read_text().strip()}/bin")
JOBS = str(os.cpu_count() or 1)
FUZZ_SECONDS = 30


def git(*arguments: str) -> str:
    """Output of a git command, empty if it fails."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, text=True, capture_output=True
    ).stdout.strip()


def tracked(*patterns: str) -> list[str]:
    return git("ls-files", "--cached", "--others", "--exclude-standard", *patterns).splitlines()


def build(preset: str, *targets: str) -> suites.Result:
    name = "build" if preset == "release" else f"build {preset}"
    return suites.run(name, [SCRIPTS / "build.sh", preset, *targets])


def beside(name: str, command: Sequence[str | Path], limit_s: float = 3600) -> suites.Result:
    """A step that runs beside others: what it says comes in one piece."""
    log = ROOT / f"build/beside/{name}.log"
    return suites.run(name, command, cwd=ROOT, limit_s=limit_s, log=log)


def lint_step(name: str, *command: str | Path) -> suites.Result:
    return beside(name, command)


def clang_format() -> suites.Result:
    """All C and C++ files, less the templates of new.py, which have placeholders."""
    files = tracked("*.cpp", "*.h", "*.c", ":!tools/scripts/templates")
    return lint_step("clang-format", LLVM_BIN / "clang-format", "--dry-run", "-Werror", *files)


def clang_tidy() -> suites.Result:
    """The largest of the changed files."""
    return lint_step("clang-tidy", sys.executable, SCRIPTS / "tidy.py")


def clang_tidy_of_all() -> suites.Result:
    return lint_step("clang-tidy (all)", sys.executable, SCRIPTS / "tidy.py", "--all")


def ruff() -> list[suites.Result]:
    tool = Path(sys.executable).parent / "ruff"
    return [
        lint_step("ruff check", tool, "check", "--quiet", "."),
        lint_step("ruff format", tool, "format", "--check", "--quiet", "."),
    ]


def shellcheck() -> suites.Result:
    scripts = ["check", "demo", ".ci/run", *tracked("*.sh")]
    return lint_step("shellcheck", "shellcheck", *scripts)


def docs() -> suites.Result:
    return lint_step("docs", sys.executable, SCRIPTS / "docs.py", "--check")


def requirements() -> suites.Result:
    """Every requirement names a test that exists."""
    return lint_step("requirements", sys.executable, SCRIPTS / "requirements.py", "--strict")


def abi() -> suites.Result:
    """The C interface is that of runtime/abi, with which programs were built."""
    return lint_step("abi", sys.executable, SCRIPTS / "abi.py")


def tests(*select: str, jobs: str = JOBS) -> list[suites.Result]:
    """The suites of the release build: all of them, or those that arguments of ctest select."""
    long = "|".join(one_run.LONG)
    return one_run.run(RELEASE, int(jobs), list(select) or ["-LE", f"^({long})$"])


def asan_tests() -> list[suites.Result]:
    """Those of the build with sanitizers."""
    name = " (asan)"
    results = one_run.run(ROOT / "build/asan", int(JOBS), ["-LE", "^(full|fuzz|traces|lock)$"])
    for result in results:
        result.name += name
    return results


def more_random_calls() -> suites.Result:
    """Chunks against the recurrence on other calls than those of every run."""
    seed = int(datetime.datetime.now(datetime.UTC).timestamp())
    command = [sys.executable, "-m", "pytest", "-q", "test/python/test_chunk_property.py"]
    command += ["-k", "chunks_equal", "--long", "--examples=5000", f"--hypothesis-seed={seed}"]
    return beside(f"random calls, seed {seed}", command)


def wheel() -> suites.Result:
    """The Python package builds as pip builds it."""
    folder = ROOT / "build/wheel"
    command = [sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation"]
    return beside("wheel", [*command, "--quiet", "--wheel-dir", folder])


def wheels() -> list[suites.Result]:
    """Those that others install, for both processors, and what is inside."""
    built = beside("wheels", [sys.executable, ROOT / "tools/packaging/wheels.py"], limit_s=3600)
    command = [sys.executable, "-m", "pytest", "-q", "test/python/test_wheel.py"]
    return [built, *([] if built.failed else [beside("in wheels", command)])]


def site() -> suites.Result:
    """The documentation as a site; its links lead to pages, headings and files that are there."""
    return beside("site", [sys.executable, SCRIPTS / "build_site.py"], limit_s=600)


def sanitized_runtime() -> list[suites.Result]:
    """The runtime's tests, its conformance and 200 traces of each kind, with sanitizers of
    addresses and undefined behaviour, and its pool with that of threads."""
    tests = [f"gdnrt_{name}_tests" for name in ("unit", "pool", "tier", "exchange", "cuda")]
    results = [build("release"), build("asan", *tests, "gdnrt_cts", "gdnrt_traces")]
    if any(result.failed for result in results):
        return results
    programs, images = ROOT / "build/asan/bin", ROOT / "build/release/runtime"
    runs: list[tuple[str, list[str | Path]]] = [(name, [programs / name]) for name in tests]
    for image in sorted((images / "cts").glob("*.gdnk")):
        if image.stem != "gpu":
            command = [programs / "gdnrt_cts", f"--image={image}", "--device=cpu"]
            if image.stem.startswith("mixed_"):  # has entries of mixed batches alone
                command.append("--gtest_filter=*MixedCases*")
            runs.append((f"cts.{image.stem}", command))
    for name, command in runs:
        xml = ROOT / f"build/asan/results/{name}.xml"
        command = [*command, "--gtest_brief=1", f"--gtest_output=xml:{xml}"]
        results.append(suites.run(f"{name} (asan)", command, xml))
    for image in sorted((images / "traces").glob("*.gdnk")):
        command = [programs / "gdnrt_traces", f"--image={image}", "--traces=200"]
        results.append(suites.run(f"traces.{image.stem} (asan)", command))
    return [*results, *thread_sanitizer()]


def thread_sanitizer() -> list[suites.Result]:
    """Many threads on one pool, on one host tier and in one exchange, without the compiler."""
    names = ("pool", "tier", "exchange")
    built = build("tsan", *(f"gdnrt_{name}_tests" for name in names))
    results = [built]
    for name in names if not built.failed else ():
        xml = ROOT / f"build/tsan/results/{name}.xml"
        command = [ROOT / f"build/tsan/bin/gdnrt_{name}_tests", f"--gtest_output=xml:{xml}"]
        results.append(suites.run(f"{name} (tsan)", command, xml, drop=r"^\[ +(RUN|OK)"))
    return results


def fuzz(preset: str) -> list[suites.Result]:
    """Each libFuzzer program for FUZZ_SECONDS, from its kept corpus."""
    results = []
    for program in sorted((ROOT / "build" / preset / "bin").glob("*fuzz*")):
        kept = ROOT / "test/data/fuzz" / program.name
        found = ROOT / "build" / preset / "corpus" / program.name
        found.mkdir(parents=True, exist_ok=True)
        corpus = [found, *([kept] if kept.is_dir() else [])]
        options = [f"-max_total_time={FUZZ_SECONDS}", "-verbosity=0", "-print_final_stats=1"]
        options.append(f"-artifact_prefix={found.parent}/")
        results.append(
            suites.run(
                f"fuzz {program.name}",
                [program, *options, *corpus],
                drop=r"^(INFO:|\s*NEW_FUNC|\"|#)",
            )
        )
    return results or [suites.Result("fuzz", failed=1)]


def benchmarks() -> list[suites.Result]:
    """Each benchmark once: that it runs, not how fast."""
    build_dir = ROOT / "build/release"
    overhead = [build_dir / "bin/gdnrt_host_overhead", build_dir / "test/Unit/runtime/test.gdnk"]
    cpu = [sys.executable, SCRIPTS / "bench_cpu.py", "--smoke", "--repetitions=1"]
    forms = [sys.executable, SCRIPTS / "bench_forms.py", "--smoke", "--repetitions=1"]
    forms += ["--shapes", "64x64", "--filter=sgemm|/(1|64)/"]
    return [
        beside("bench host", [*overhead, "--benchmark_min_time=0.001"], limit_s=600),
        beside("bench cpu", cpu, limit_s=1800),
        beside("bench forms", forms, limit_s=600),
    ]


def suffix(preset: str) -> str:
    return "" if preset == "release" else f" ({preset})"


def record(results: list[suites.Result], whole: bool) -> None:
    """Writes the record of a run of --full, all of it or what has ended."""
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%MZ"),
        "commit": git("rev-parse", "HEAD"),
        "whole": whole,
        "modified": git("diff", "--name-only", "HEAD").splitlines(),
        "cpu": next(
            (
                line.partition(":")[2].strip()
                for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")
            ),
            platform.machine(),
        ),
        "cores": os.cpu_count(),
        "passed": sum(r.passed for r in results),
        "failed": sum(r.failed for r in results),
        "seconds": round(sum(r.seconds for r in results)),
        "suites": [r.facts() for r in results],
    }
    RECORD.write_text(json.dumps(facts, indent=2) + "\n")
    print(f"recorded in {RECORD.relative_to(ROOT)}")


def record_parts(results: list[suites.Result]) -> None:
    """Puts suites into the record of a full run, each with a date and commit of its own."""
    facts = json.loads(RECORD.read_text())
    for result in results:
        entry = result.facts()
        entry["date"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%MZ")
        entry["commit"] = git("rev-parse", "HEAD")
        others = [each for each in facts["suites"] if each["name"] != result.name]
        facts["suites"] = [*others, entry]
    for count in ("passed", "failed"):
        facts[count] = sum(each[count] for each in facts["suites"])
    RECORD.write_text(json.dumps(facts, indent=2) + "\n")
    print(f"recorded in {RECORD.relative_to(ROOT)}")


def summary(results: list[suites.Result]) -> int:
    """Prints the table and the closing line; returns the exit code."""
    print("\n== summary")
    for r in results:
        skipped = f", {r.skipped} skipped" if r.skipped else ""
        mark = "FAILED" if r.failed else "ok"
        counts = f"{r.passed} passed, {r.failed} failed{skipped}"
        print(f"{mark:6}  {r.name:24} {counts:36} {r.seconds:7.1f} s")
    failed = sum(r.failed for r in results)
    print(f"\n{sum(r.passed for r in results)} passed, {failed} failed", flush=True)
    return 1 if failed else 0


def lint() -> list[suites.Result]:
    """What needs nothing built."""
    return [clang_format(), *ruff(), shellcheck(), docs(), requirements(), abi()]


def one_after_the_other() -> list[suites.Result]:
    """What uses one core, most of the time."""
    return [*wheels(), wheel(), site(), more_random_calls(), *benchmarks()]


def long_suites(results: list[suites.Result]) -> None:
    """Adds what --full adds, and records after each part, so that a run that is stopped has
    told of what ended."""
    results += tests("-L", "^(full|traces)$")
    record(results, whole=False)
    with ThreadPoolExecutor(1) as executor:
        other = executor.submit(one_after_the_other)
        built = build("asan")
    results += [*other.result(), built, *thread_sanitizer()]
    record(results, whole=False)
    # LLVM's libraries use memory that our half of its allocators would poison.
    os.environ["ASAN_OPTIONS"] = "allow_user_poisoning=0"
    if not built.failed:
        results += [*asan_tests(), *fuzz("asan")]
    record(results, whole=True)


def check(full: bool, fresh: bool, setup_seconds: float) -> int:
    """Lint beside the build, then all tests in one run, clang-tidy beside them. What has passed
    before is repeated if `fresh`."""
    start = time.monotonic() - setup_seconds
    with ThreadPoolExecutor(1) as executor:
        linted = executor.submit(lint)
        built = build("release")
    results = [*linted.result(), built]
    if fresh:  # the build knows the folder, so not ahead of it in a clean clone
        run_once.forget(RELEASE)
    if not built.failed:
        with ThreadPoolExecutor(1) as executor:
            tidied = executor.submit(clang_tidy)
            tested = tests()
        results += [tidied.result(), *tested]
        if full:
            long_suites(results)
    timed = [suites.Result("setup", seconds=setup_seconds), *results]
    facts = check_times.facts_of(timed, time.monotonic() - start, git("rev-parse", "HEAD"))
    check_times.write(facts)
    print("\n== the slowest tests", *check_times.slowest(facts), sep="\n")
    return summary(results)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="add the long suites")
    parser.add_argument("--traces", action="store_true", help="the 10,000 traces alone")
    parser.add_argument("--sanitizers", action="store_true", help="the runtime with sanitizers")
    parser.add_argument("--tidy", action="store_true", help="clang-tidy over everything")
    parser.add_argument("--times", action="store_true", help="how long the last run took")
    parser.add_argument("--setup-seconds", type=float, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--fresh", action="store_true", help="repeat what has passed before")
    options = parser.parse_args()
    if options.times:
        return check_times.show()
    if options.tidy:
        built = build("release")
        if built.failed:
            return summary([built])
        tidied = clang_tidy_of_all()
        record_parts([tidied])
        return summary([built, tidied])
    if options.sanitizers:
        results = sanitized_runtime()
        record_parts([result for result in results if not result.name.startswith("build")])
        return summary(results)
    if options.traces:
        programs = ["gdnrt_traces", "runtime/traces/all"]
        results = [build("release", *programs), *tests("-L", "^traces$")]
        record_parts(results[-1:])
        return summary(results)
    return check(options.full, options.fresh or options.full, options.setup_seconds)


if __name__ == "__main__":
    sys.exit(main())
