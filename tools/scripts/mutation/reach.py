# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tests execute the site of a fault: they are the first to run on it.

The clone notes it while suites run without a fault: every site that is executed adds the name
of the test to a file. Only the order of tests follows from it, since a test may depend on a
site that it does not execute itself, by an image that was made before.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

FOLDER, TEST = "GDN_MUTANT_REACHED", "GDN_MUTANT_TEST"
# C++ of the clone. pytest says in the environment which test runs, and that changes within
# a process.
SOURCE = f"""
inline void gdn_mutant_reached(const char *folder, int number) {{
  static std::atomic<bool> known[1000];
  const char *test = std::getenv("{TEST}");
  if (test && known[number].exchange(true))
    return;
  if (!test)
    test = std::getenv("PYTEST_CURRENT_TEST");
  if (!test)
    return;
  static thread_local std::string last[1000];
  if (last[number] == test)
    return;
  last[number] = test;
  std::string line = last[number] + "\\n";
  std::string path = std::string(folder) + "/" + std::to_string(number);
  if (std::FILE *file = std::fopen(path.c_str(), "a")) {{
    std::fputs(line.c_str(), file);
    std::fclose(file);
  }}
}}
"""
# lit's workers import it: the name of a test comes into its environment.
LIT_MODULE = f"""import lit.formats


class NamedTest(lit.formats.ShTest):
    def execute(self, test, lit_config):
        test.config.environment["{TEST}"] = "/".join(test.path_in_suite)
        return super().execute(test, lit_config)
"""
LIT_LINES = f"""
if "{FOLDER}" in os.environ:
    import sys

    sys.path.insert(0, os.path.dirname(os.environ["{FOLDER}"]))
    from gdn_mutant_lit import NamedTest

    config.environment["{FOLDER}"] = os.environ["{FOLDER}"]
    config.test_format = NamedTest(execute_external=False)
"""


def read(folder: Path, seconds: dict[str, float]) -> dict[str, list[str]]:
    """The tests of each fault, by its number, the shortest first."""
    found = {}
    for file in folder.glob("[0-9]*"):
        tests = {line.removesuffix(" (call)") for line in file.read_text().splitlines()}
        tests = {re.sub(r" \((setup|teardown)\)$", "", test) for test in tests}
        found[file.name] = sorted(tests, key=lambda test: (seconds.get(test, 0.0), test))
    return found


def program_of(test: str) -> str:
    """Which program a test is of, by its name."""
    if test.partition("::")[0].endswith(".py"):
        return "pytest"
    return "lit" if test.endswith((".mlir", ".test", ".td", ".ll")) else "ctest"


# How the programs that run tests are told which ones, and how long each took without a fault.


def lit_tests(command: list[str], tests: list[str]) -> list[str]:
    return [*command[:-1], *(f"{command[-1]}/{test}" for test in tests)]


def lit_seconds(build: Path, _log: Path) -> dict[str, float]:
    found = {}
    with contextlib.suppress(OSError):
        for line in (build / "test/.lit_test_times.txt").read_text().splitlines():
            seconds, _, test = line.partition(" ")
            found[test.strip()] = float(seconds)
    return found


def ctest_tests(command: list[str], tests: list[str]) -> list[str]:
    names = "|".join(re.sub(r"([][.+*?^$()|\\\\])", r"\\\1", test) for test in tests)
    return [*command, "-R", f"^({names})$"]


@dataclass(frozen=True)
class Test:
    """A test of ctest, and how it runs without ctest, which takes longer than most tests."""

    name: str
    command: list[str]
    folder: str
    environment: dict[str, str]


def ctest_tests_of(command: list[str], cwd: Path) -> list[Test]:
    command = [*command, "--show-only=json-v1"]
    listed = subprocess.run(command, cwd=cwd, text=True, capture_output=True, check=True)
    found = []
    for test in json.loads(listed.stdout)["tests"]:
        known = {each["name"]: each["value"] for each in test.get("properties", [])}
        variables = dict(each.split("=", 1) for each in known.get("ENVIRONMENT", []))
        folder = known.get("WORKING_DIRECTORY", str(cwd))
        found.append(Test(test["name"], test.get("command", []), folder, variables))
    return found


def pytest_tests(command: list[str], tests: list[str]) -> list[str]:
    return [*command[:-1], *tests]


def pytest_seconds(_build: Path, log: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for seconds, test in re.findall(
        r"^([\d.]+)s (?:setup|call|teardown) +(\S.*)$", log.read_text(), re.MULTILINE
    ):
        found[test] = found.get(test, 0.0) + float(seconds)
    return found


def environment(folder: Path) -> dict[str, str]:
    """Variables that have the clone note tests in a folder, which is made empty."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*"):
        file.unlink()
    (folder.parent / "gdn_mutant_lit.py").write_text(LIT_MODULE)
    return {FOLDER: str(folder)}
