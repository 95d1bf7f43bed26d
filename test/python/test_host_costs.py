# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a host pays, against what it may: compiling a whole image for one target within 60 s and
one of decode within 30, on two cores, and loading one within 20 ms. Launches on a GPU are asserted
on a GPU."""

import ctypes as c
import json
import subprocess

import pytest

from gdn.bench import __main__ as bench
from gdn.bench import costs

TARGETS = ["sm_90a", "sm_100a", "x86-64-v3"]
DEFAULT = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--state=f32,bf16"]


@pytest.mark.long
@pytest.mark.alone  # times of compilations mean something where nothing runs beside them
@pytest.mark.parametrize("target", TARGETS)
def test_compile(build_dir, tmp_path, target):
    arguments = [*DEFAULT, f"--target={target}", "-o", str(tmp_path / "image.gdnk")]
    times = costs.compile_times(build_dir / "bin/gdn-compile", arguments, repeats=1)
    assert times["us"] <= costs.LIMITS_US["compile"]
    times = costs.compile_times(
        build_dir / "bin/gdn-compile", [*arguments, "--only=decode"], repeats=1
    )
    assert times["us"] <= costs.LIMITS_US["compile of decode"]


def test_compile_that_fails(build_dir):
    with pytest.raises(RuntimeError, match="gdn-compile: "):
        costs.compile_times(build_dir / "bin/gdn-compile", ["--preset=none"])


def test_load_and_report(build_dir, tool, tmp_path, capsys):
    image, output = tmp_path / "image.gdnk", tmp_path / "host.json"
    done = tool("gdn-compile", *DEFAULT, "--target=native", "-o", image)
    assert done.returncode == 0, done.stderr
    library = ["--library", str(build_dir / "lib/libgdnrt.so"), "--device=cpu"]
    assert bench.main(["host", str(image), *library, f"--output={output}", "--repeats=5"]) == 0
    rows = {row["config"]["variant"]: row for row in json.loads(output.read_text())["rows"]}
    (load,) = (row for what, row in rows.items() if what.startswith("load of image.gdnk"))
    assert load["us_min"] <= load["limit_us"] == 20e3
    (launch,) = (row for what, row in rows.items() if "decode_bf16_f32" in what)
    assert launch["us"] > 0
    assert "| load of image.gdnk" in capsys.readouterr().out


def test_launches_are_counted_in_c():
    """A function of three pointers that gives what it should not ends the loop."""
    calls = []

    @c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p)
    def count(first, second, third):
        calls.append((first, second, third))
        return len(calls) == 3

    loop = costs.native_loop()
    assert loop(c.cast(count, c.c_void_p), 1, None, 2, 2) == 0
    assert calls == [(1, None, 2)] * 2
    assert loop(c.cast(count, c.c_void_p), 1, None, 2, 5) == 1
    assert len(calls) == 3


def test_a_step_asks_little_of_the_driver(build_dir, tool, tmp_path):
    """Whether the stream is captured, twice, and the metadata's copy if it has changed; over the
    stand-in."""
    program = build_dir / "bin/gdnrt_step_time"
    if not program.exists():
        pytest.skip("a build with sanitizers has no benchmarks")
    image = tmp_path / "image.gdnk"
    options = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--only=decode", "--target=sm_90a"]
    done = tool("gdn-compile", *options, "-o", image)
    assert done.returncode == 0, done.stderr
    driver = build_dir / "lib/libgdnrt_fake_cuda.so"
    options = ["--device=cuda", f"--driver={driver}", "--rounds=20", "--json", "--check"]
    done = subprocess.run([program, image, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)
    assert [row["config"]["N"] for row in rows] == [1] * 4 + [256] * 4
    for row in rows:
        copies = int("changes" in row["config"]["variant"])
        assert row["calls"].get("cuMemcpyHtoDAsync_v2", 0) == copies
        assert (row["launches"], row["calls"]["cuStreamIsCapturing"]) == (1, 2)
        assert (row["driver_calls"], row["synchronisations"]) == (2 + copies, 0)
        assert row["allocations"] == 0


def test_what_takes_too_long_fails():
    row = costs.row("launch", "slow", {"us": 5.0, "us_min": 4.5, "us_max": 6.0}, limited=True)
    assert costs.failures({"rows": [row]}) == ["slow: 4.50 us of at most 4"]
    fast = row | {"us_min": 3.9}
    assert costs.failures({"rows": [fast, {k: v for k, v in row.items() if k != "limit_us"}]}) == []
