# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Folders as packages of prebuilt images have them, of all presets, whose files are stand-ins; and
what is said where no image is found."""

import model_configs
import pytest

import catalogue
import images_wheel
from gdn import ImageNotFoundError, images

PRESETS = {
    name: images.ModelConfig.from_config(config).facts()
    for name, config in model_configs.PRESETS.items()
}
ITEMS = {item.name: item for item in catalogue.items(PRESETS)}
# As on these GPUs: kernels that spill registers.
REFUSED = {(name, "sm_86"): "too many registers" for name in ITEMS if name.startswith("sglang-128")}


def write_folder(folder, items, presets=PRESETS):
    """A folder with stand-ins for images."""
    rows = []
    for item in items:
        row = {"facts": item.facts, "verify": item.verify, "parameters": item.parameters}
        row |= {"name": item.name, "targets": {}, "refused": {}}
        for target in catalogue.TARGETS:
            if why := REFUSED.get((item.name, target)):
                row["refused"][target] = why
                continue
            file = item.file(target)
            (folder / file).write_text(file)
            row["targets"][target] = {"file": file, "bytes": len(file)}
        rows.append(row)
    index = {"format": images.INDEX_FORMAT, "presets": dict(presets), "images": rows}
    images_wheel.write_index(folder, index)
    return folder


def miss(*arguments, **options) -> ImageNotFoundError:
    with pytest.raises(ImageNotFoundError) as caught:
        images.find(*arguments, **options)
    return caught.value
