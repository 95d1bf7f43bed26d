# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.images.find in installed packages: which one, none, and those of two versions."""

import importlib
import json
import re

import model_configs
import pytest
from image_folders import ITEMS, PRESETS, miss, write_folder

from gdn import ImageIndexError, images


@pytest.mark.parametrize(
    "io, writes, package",
    [(None, 0, "gdn-images"), ("f16", 0, "gdn-images-f16"), (None, 16, "gdn-images-deferred")],
)
def test_without_the_package(io, writes, package):
    error = miss("qwen3.5-4b", "sm_90a", io=io, deferred_writes=writes)
    assert f"expected the package {package} (pip install {package}), found none" in str(error)
    assert "gdn-compile --preset qwen3.5-4b" in str(error)


def test_an_installed_package(tmp_path, monkeypatch):
    package = tmp_path / images.package_of("bf16", 0)
    package.mkdir()
    (package / "__init__.py").write_text("")
    plain = [item for item in ITEMS.values() if not item.form.deferred]
    write_folder(package, [item for item in plain if (item.io, item.state) == ("bf16", "f32")])
    monkeypatch.syspath_prepend(tmp_path)
    found = images.find(model_configs.PRESETS["qwen3.5-4b"], "sm_90a")
    assert found.parent == package
    assert images.find("qwen3.5-4b", "sm_90a") == found
    error = miss("qwen3.5-4b", "sm_90a", io="f32")
    assert error.missing == {"io": "f32"}


def test_a_decay_per_channel_has_a_package(tmp_path, monkeypatch):
    """Found by a configuration and by a name, whichever packages are there."""
    name = "kimi-linear-48b-a3b"
    error = miss(name, "sm_90a")
    assert "expected the package gdn-images (pip install gdn-images), found none" in str(error)
    error = miss(model_configs.PRESETS[name], "sm_90a")
    assert "expected the package gdn-images-kda" in str(error)
    monkeypatch.syspath_prepend(tmp_path)
    rows = [i for i in ITEMS.values() if (i.io, i.state) == ("bf16", "f32") and not i.form.deferred]
    for decay in ("channel", "head"):
        package = tmp_path / images.package_of("bf16", 0, decay)
        package.mkdir()
        (package / "__init__.py").write_text("")
        write_folder(package, [item for item in rows if item.facts["decay"] == decay])
        importlib.invalidate_caches()
        kda = tmp_path / "gdn_images_kda"
        assert images.find(name, "sm_90a").parent == kda
        assert images.find(model_configs.PRESETS[name], "sm_90a").parent == kda
        if decay == "channel":
            missing = "expected the package gdn-images (pip install gdn-images), found none"
            assert missing in str(miss(model_configs.PRESETS["qwen3.5-4b"], "sm_90a"))
    assert images.find("qwen3.5-4b", "sm_90a").parent == package


def test_packages_of_two_versions(tmp_path, monkeypatch):
    """A name is found in the one that knows it, and an older one beside it does not matter."""
    name = "kimi-linear-48b-a3b"
    rows = [i for i in ITEMS.values() if (i.io, i.state) == ("bf16", "f32") and not i.form.deferred]
    for decay in ("head", "channel"):
        package = tmp_path / images.package_of("bf16", 0, decay)
        package.mkdir()
        (package / "__init__.py").write_text("")
        mine = [item for item in rows if item.facts["decay"] == decay]
        known = {n: x for n, x in PRESETS.items() if decay == "channel" or n != name}
        write_folder(package, mine, known)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    found = images.find(name, "sm_90a")
    assert found.parent == package
    assert "one of the presets glm-5.3-flash, " in str(miss("qwen9", "sm_90a"))
    older = tmp_path / "gdn_images/index.json"
    older.write_text(json.dumps(json.loads(older.read_text()) | {"format": 1}))
    assert images.find(name, "sm_90a") == found
    for asked in ("qwen3.5-4b", "qwen9"):
        with pytest.raises(
            ImageIndexError, match=r"gdn_images/index.json: expected format 2, found 1"
        ):
            images.find(asked, "sm_90a")


def test_arguments_come_before_packages():
    config = model_configs.PRESETS["qwen3.5-4b"]
    with pytest.raises(ValueError, match=r"engine: expected one of .*, got 'tgi'"):
        images.find(config, "sm_90a", engine="tgi")
    with pytest.raises(ValueError, match="deferred_writes: expected 0 or 2 to 32 tokens, got 1"):
        images.find(config, "sm_90a", deferred_writes=1)


@pytest.mark.parametrize("name", ["missing.json", "missing.mlir"])
def test_a_file_that_is_missing_is_no_preset(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=re.escape(name)):
        images.find(name, "sm_90a")
