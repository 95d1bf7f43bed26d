# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes and reads safetensors files with the standard library alone."""

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path

SIZES = {"F32": 4, "BF16": 2, "F16": 2, "I32": 4, "I64": 8}


def zeros(dtype: str, *shape: int) -> tuple[str, list[int], bytes]:
    return dtype, list(shape), bytes(SIZES[dtype] * math.prod(shape))


def ints(*values: int) -> tuple[str, list[int], bytes]:
    return "I32", [len(values)], struct.pack(f"<{len(values)}i", *values)


def write(
    path: Path,
    tensors: Mapping[str, tuple[str, list[int], bytes]],
    metadata: Mapping[str, str] | None = None,
) -> Path:
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    data = b""
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def read(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    content = path.read_bytes()
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    start = 8 + size
    return {
        name: (
            entry["dtype"],
            entry["shape"],
            content[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]],
        )
        for name, entry in header.items()
    }
