# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The lit suite: every .mlir and .test file below test/, run as a shell test
# with gdn's tools and LLVM's in front of the path. gtest, C and Python tests
# live in the excluded directories and have their own runners.
import os
import platform
from pathlib import Path

import lit.formats

config.name = "gdn"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Unit", "CAPI", "data", "python", "lib", "Inputs"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(config.gdn_binary_dir) / "test")
if shard := lit_config.params.get("shard"):
    # Shards run at the same time; each keeps the times of its tests.
    config.test_exec_root += f"/shard-{shard}"

tool_dirs = [str(Path(config.gdn_binary_dir) / "bin"), config.llvm_tools_dir]
config.environment["PATH"] = os.pathsep.join([*tool_dirs, config.environment["PATH"]])
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --allow-unused-prefixes=false"

config.substitutions.append(("%gdn_data", str(Path(config.test_source_root) / "data")))

if config.gdn_image_cache:
    # In RUN lines gdn-compile takes what it has made before.
    config.substitutions.append(
        (r"\bgdn-compile(?= )", f"gdn-compile --cache={config.gdn_image_cache}")
    )

if "long" in lit_config.params:
    # Tests of ./check --full.
    config.available_features.add("long")

if platform.machine() == "x86_64":
    config.available_features.add("x86")
    cpu_flags = Path("/proc/cpuinfo").read_text().split() if os.name == "posix" else []
    if "avx2" in cpu_flags and "fma" in cpu_flags:
        config.available_features.add("x86-64-v3")
if Path("/dev/nvidia0").exists():
    config.available_features.add("cuda-device")
for sanitizer in filter(None, config.gdn_sanitize.split(",")):
    config.available_features.add(sanitizer)
if "address" in config.available_features:
    # LLVM frees some of what it allocates only at exit, by not freeing it. Its libraries are
    # not instrumented: they use memory that our half of its allocators would poison.
    config.environment["ASAN_OPTIONS"] = "detect_leaks=0:allow_user_poisoning=0"
