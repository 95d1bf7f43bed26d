# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images of earlier versions, which test/data/images keeps under the version that wrote them:
what has today's format runs, and any other is refused with both numbers and the writer.

Kept are one decode of runtime/traces/layer.json in f32 each, for x86-64-v3 and sm_90a:
    gdn-compile --config runtime/traces/layer.json --io=f32 --outputs=both --only=decode \\
      --target=x86-64-v3,sm_90a
"""

import re
import struct
from pathlib import Path

import pytest
from test_reference import check_image

from gdn import GdnError, Runtime

ROOT = Path(__file__).resolve().parents[2]
KEPT = sorted((ROOT / "test/data/images").glob("*.gdnk"))
TRAILER = (ROOT / "runtime/include/gdnrt/image_trailer.h").read_text()
FORMAT = int(re.search(r"kFormatVersion = (\d+);", TRAILER)[1])


def format_of(image: bytes) -> int:
    """The first field of the root table, 1 if it is left out."""
    (root,) = struct.unpack_from("<I", image)
    (to_table,) = struct.unpack_from("<i", image, root)
    (field,) = struct.unpack_from("<H", image, root - to_table + 4)
    return struct.unpack_from("<I", image, root + field)[0] if field else 1


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_image_runs_or_is_refused_by_name(runtime, path):
    written = format_of(path.read_bytes())
    if written == FORMAT:
        check_image(runtime, path, ("decode",))
        return
    with pytest.raises(GdnError) as refused:
        runtime.image(path)
    assert refused.value.status == "UNSUPPORTED"
    assert str(refused.value) == (
        f"image: expected format version {FORMAT}, got {written}, as written by gdn {path.stem}"
    )


def test_every_version_before_this_one_has_an_image():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (\d+\.\d+\.\d+)", text, re.MULTILINE)
    today = re.search(r"project\(gdn VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert versions[0] == today
    assert sorted(versions[1:]) == [path.stem for path in KEPT]
