# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared fixtures: where the sources and the built tools are."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--build-dir",
        type=Path,
        default=ROOT / "build/release",
        help="build tree whose tools are tested (default: build/release)",
    )
    group = parser.getgroup("chunk form", "random calls in test_chunk_property.py")
    group.addoption("--examples", type=int, default=1000, help="how many (default: 1000)")
    group.addoption("--case", default="", help="a call that it printed, to run it again")


@pytest.fixture(scope="session")
def build_dir(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.getoption("--build-dir").resolve()


@pytest.fixture(scope="session")
def tool(build_dir: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a built tool: tool("gdn-opt", args..., stdin=text)."""

    def run(name: str, *arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(build_dir / "bin" / name), *map(str, arguments)]
        return subprocess.run(command, input=stdin, text=True, capture_output=True, timeout=300)

    return run
