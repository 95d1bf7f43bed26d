# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.images.find: by facts in a catalogue of all presets, whose files are stand-ins; misses and
what they say; damaged folders. And one image of a small layer, from gdn-compile to its first
launch."""

import json
import re
import shlex
import sys

import model_configs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from image_folders import ITEMS, PRESETS, REFUSED, miss, write_folder

import catalogue
import images_wheel
from gdn import (
    Call,
    ConfigError,
    ImageIndexError,
    ImageNotFoundError,
    Runtime,
    compiler,
    image_facts,
    images,
    targets,
)
from gdn.problems import Sizes, make


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("images"), ITEMS.values())


def item_of(path):
    name, target = re.fullmatch(
        rf"(.*)-({'|'.join(map(re.escape, catalogue.TARGETS))})\.gdnk", path.name
    ).groups()
    return ITEMS[name], target


@pytest.mark.parametrize("engine", image_facts.ENGINES)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_for_every_engine(preset, engine, folder):
    per_channel = PRESETS[preset]["decay"] == "channel"
    if per_channel and image_facts.ENGINES[engine].layout == "split":
        with pytest.raises(
            ValueError, match="a decay per channel expects separate, gated or ready"
        ):
            images.find(preset, "sm_90a", engine=engine, folder=folder)
        return
    path = images.find(model_configs.PRESETS[preset], "sm_90a", engine=engine, folder=folder)
    item, target = item_of(path)
    assert target == "sm_90a" and preset in item.presets
    assert images.find(preset, "sm_90a", engine=engine, folder=folder) == path
    form = {"vllm": "slots", "c": "slots"}.get(engine, engine)
    assert item.form.name == form
    assert (item.io, item.state) == ("bf16", "f32")


@pytest.mark.parametrize("state", catalogue.DEFERRED)
def test_a_strength_up_to_2_has_pending_tokens_in_f32(state, folder):
    """gdn-compile refuses others."""
    found = images.find(
        "olmo-hybrid-7b",
        "x86-64-v3",
        state=state,
        deferred_writes=catalogue.DEFERRED[state],
        folder=folder,
    )
    assert "--pending=f16" not in item_of(found)[0].options
    assert all(len(set(item.presets)) == len(item.presets) for item in ITEMS.values())


@pytest.mark.parametrize("verify", image_facts.VERIFY)
@pytest.mark.parametrize("engine", ["vllm", "c"])
def test_every_kind_of_verify(verify, engine, folder):
    path = images.find("qwen3.5-4b", (8, 0), engine=engine, verify=verify, folder=folder)
    assert item_of(path)[0].form.name == (verify if verify != "none" else "slots")


def test_a_norm_that_no_preset_has(folder):
    """Epsilon and gate are arguments of one image, which is taken where no image has them."""
    config = model_configs.PRESETS["qwen3.5-4b"]["text_config"]
    own = images.find(config, "sm_90a", engine="vllm", folder=folder)
    shared = images.find("qwen3.8-flash-next", "sm_90a", engine="vllm", folder=folder)
    assert own != shared
    assert item_of(shared)[0].facts["norm_eps"] == image_facts.ARGUMENT
    assert "--norm-constants" in item_of(shared)[0].options
    assert "--norm-constants" not in item_of(own)[0].options
    for other in ({"rms_norm_eps": 1e-3}, {"output_gate_type": "sigmoid"}):
        assert images.find(config | other, "sm_90a", engine="vllm", folder=folder) == shared
    # Layers with another layout have no such image.
    config = model_configs.PRESETS["qwen3-next-80b-a3b"] | {"rms_norm_eps": 1e-3}
    with pytest.raises(ImageNotFoundError, match=r"no image has norm_eps 0\.001 with the rest"):
        images.find(config, "sm_90a", engine="vllm", folder=folder)


@pytest.mark.parametrize("l2norm", [False, True])
def test_the_rule_alone(l2norm, folder):
    rule = {"layout": "ready", "outputs": "core", "l2norm": l2norm}
    path = images.find("qwen3-next-80b-a3b", "sm_120a", folder=folder, **rule)
    item, _ = item_of(path)
    assert item.form.name == "rule" + "-l2norm" * l2norm
    assert images.find("qwen3.8-flash-next", "sm_120a", folder=folder, **rule) == path


@pytest.mark.parametrize(
    "target, found",
    [
        ("sm_90a", "sm_90a"),
        ("sm_90", "sm_90a"),
        ((9, 0), "sm_90a"),
        ((8, 9), "sm_86"),
        ("sm_103a", "sm_103a"),
        ((12, 0), "sm_120a"),
        ("x86-64-v4", "x86-64-v4"),
        ("x86-64-v3", "x86-64-v3"),
    ],
)
def test_the_best_code_that_runs(target, found, folder):
    assert item_of(images.find("qwen3.5-4b", target, folder=folder))[1] == found


def test_types(folder):
    found = {
        item_of(images.find("qwen3.5-4b", "sm_80", io=io, state=state, folder=folder))[0].name
        for io, states in catalogue.STATES.items()
        for state in states
    }
    assert len(found) == 4
    config = model_configs.SMALL | {"linear_num_key_heads": 3, "linear_num_value_heads": 24}
    config |= {"dtype": "float16", "mamba_ssm_dtype": "float32"}
    item, _ = item_of(images.find(config, "sm_80", folder=folder))
    assert (item.io, item.state, item.facts["layout"]) == ("f16", "f32", "interleaved")


@pytest.mark.parametrize(
    "state, pending", [(s, p) for s, all in catalogue.PENDING.items() for p in all]
)
@pytest.mark.parametrize("engine", ["vllm", "c", "pymllm"])
def test_deferred_writes(state, pending, engine, folder):
    """Of exactly so many tokens of a type, for pools have memory for them; also where nothing is
    verified."""
    writes = catalogue.DEFERRED[state]
    options = {"engine": engine, "state": state, "pending": pending, "folder": folder}
    for verify in (None, "none", "lazy"):
        path = images.find("qwen3.5-4b", "sm_90a", deferred_writes=writes, verify=verify, **options)
        item, _ = item_of(path)
        assert item.form.name == ("deferred-pymllm" if engine == "pymllm" else "deferred")
        assert item.state == state and f"--defer-writes={writes}" in item.options
        assert ("--pending=f16" in item.options) == (pending == "f16")
    error = miss("qwen3.5-4b", "sm_90a", deferred_writes=9, **options)
    assert error.missing == {"deferred_writes": 9}
    assert "--defer-writes=9 " in error.command
    assert f"options=['--pending={pending}', '--defer-writes=9']" in error.call
    assert (
        "options=['--defer-writes=9']"
        in miss("qwen3.5-4b", "sm_90a", deferred_writes=9, **options | {"pending": None}).call
    )
    other = "f32" if pending == "f16" else "f16"
    options |= {"deferred_writes": writes, "pending": other}
    if other in catalogue.PENDING[state]:
        return
    error = miss("qwen3.5-4b", "sm_90a", **options)
    # There is one that is as near, of pending tokens in f32 and other states.
    if other == "f16":
        assert error.missing == {"pending": other}
        assert f"with pending {pending} where {other} is wanted" in str(error)
    else:
        assert error.missing == {"state": state}
    assert f"--pending={other} --defer-writes={writes} " in error.command


def test_states_in_planes_that_are_written_at_each_token(folder):
    error = miss("qwen3.5-4b", "sm_90a", state="i8x2", folder=folder)
    assert error.missing == {"state": "i8x2"}


def test_no_name_decides(folder, tmp_path):
    """A model that has another name, in another file, and the same facts."""
    config = model_configs.PRESETS["qwen3.8-flash-next"] | {"output_gate_type": "silu"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    known = images.find("qwen3.5-4b", "sm_90a", folder=folder)
    assert images.find(tmp_path, "sm_90a", folder=folder) == known
    assert images.find(str(tmp_path / "config.json"), "sm_90a", folder=folder) == known


def test_a_fact_that_no_image_has(folder):
    config = model_configs.PRESETS["qwen3-next-80b-a3b"] | {"rms_norm_eps": 0.001}
    error = miss(config, "sm_90", engine="vllm", folder=folder)
    assert error.missing == {"norm_eps": 0.001}
    assert error.nearest == images.find(
        "qwen3-next-80b-a3b", "sm_90", engine="vllm", folder=folder
    ), error
    assert str(error) == (
        "images: expected one for sm_90a, engine vllm, found none of 202\n"
        "  no image has norm_eps 0.001 with the rest\n"
        f"  nearest: {error.nearest.name}, with norm_eps 1e-06 where 0.001 is wanted\n"
        "  to make one: gdn-compile --config config.json --for=vllm --io=bf16 --state=f32"
        " --target=sm_90a -o layer.gdnk\n"
        "  or in Python, which keeps it in the cache: gdn.compile(config, 'sm_90a',"
        " engine='vllm', io='bf16', state='f32')"
    )


def test_facts_that_no_image_has_together(folder):
    """Each of them is there."""
    error = miss("olmo-hybrid-7b", "sm_90a", layout="flat", folder=folder)
    assert error.missing == {"layout": "flat"}
    assert "no image has layout flat with the rest" in str(error)
    error = miss("qwen3.5-4b", "sm_90a", engine="sglang", verify="lazy", folder=folder)
    assert "verify" in error.missing
    assert error.command.startswith("gdn-compile --preset qwen3.5-4b --for=sglang --verify=lazy")


def test_targets_without_code(folder):
    error = miss("qwen3.5-4b", (7, 5), folder=folder)
    assert "gdn-compile makes no code for (7, 5) (there is sm_100a, " in str(error)
    assert "to make one" not in str(error)
    error = miss("qwen3.5-4b", "sm_86", engine="sglang", folder=folder)
    assert "gdn-compile makes none for sm_86: too many registers" in str(error)
    assert "to make one" not in str(error)


def test_a_preset_that_the_index_does_not_know(folder):
    error = miss("qwen9", "sm_90a", folder=folder)
    assert (
        "one of the presets glm-5.3-flash, kimi-k3, kimi-linear-48b-a3b, ling-3.0-flash, "
        in str(error)
    )
    assert "gdn-compile --preset qwen9 --for=c --target=sm_90a" in str(error)


def test_arguments_that_no_image_can_have(folder):
    for options, message in (
        ({"engine": "tgi"}, "engine: expected one of vllm, sglang, pymllm, c, got 'tgi'"),
        ({"io": "bfloat16"}, "io: expected one of bf16, f16, f32, got 'bfloat16'"),
        ({"verify": "yes"}, "verify: expected one of none, slots, tree, buffer, lazy, got 'yes'"),
        ({"state": "i4"}, "state: expected one of bf16, f16, f32, i8x2, i8x2_upper, i8, got 'i4'"),
        ({"deferred_writes": 1}, "deferred_writes: expected 0 or 2 to 32 tokens, got 1"),
        ({"deferred_writes": 33}, "deferred_writes: expected 0 or 2 to 32 tokens, got 33"),
        ({"pending": "bf16"}, "pending: expected one of f32, f16, got 'bf16'"),
        ({"pending": "f16"}, "pending: expected f32 without deferred writes, got 'f16'"),
        ({"state": "i8"}, "deferred_writes: expected 2 to 32 tokens with states of i8, got 0"),
        (
            {"state": "i8x2_upper"},
            "deferred_writes: expected 2 to 32 tokens with states of i8x2_upper, got 0",
        ),
        (
            {"deferred_writes": 16, "verify": "slots"},
            "verify: expected none or lazy with deferred writes, got 'slots'",
        ),
        (
            {"state": "i8x2", "verify": "tree"},
            "verify: expected none or lazy with states in planes, got 'tree'",
        ),
        ({"layout": "ready"}, "outputs: the layout ready expects core, got norm"),
        ({"l2norm": True}, "l2norm: expected the layout gated or ready, got flat"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            images.find("qwen3.5-4b", "sm_90a", folder=folder, **options)
    for writes in (2.5, "16", None):
        with pytest.raises(TypeError, match="deferred_writes: expected an integer, got "):
            images.find("qwen3.5-4b", "sm_90a", folder=folder, deferred_writes=writes)
    for target in ("sm_9", "x86-64-v2", (9,), 90, None):
        with pytest.raises(ValueError, match="target: expected"):
            images.find("qwen3.5-4b", target, folder=folder)
    kimi = {"engine": "c", "deferred_writes": 16, "folder": folder}
    with pytest.raises(images.ImageNotFoundError, match="--defer-writes=16"):
        images.find("kimi-linear-48b-a3b", "sm_90a", **kimi)
    with pytest.raises(ConfigError, match="hidden_size: expects a positive integer"):
        images.find(model_configs.SMALL | {"hidden_size": 0}, "sm_90a", folder=folder)
    with pytest.raises(FileNotFoundError):
        images.find(folder / "no.json", "sm_90a", folder=folder)


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "expected the index of a folder of images, found none"),
        ("{", "expected JSON"),
        ("[" * 200_000, "found arrays or objects that are nested too deep"),
        ('{"format": ' + '{"a":' * 200_000, "found arrays or objects that are nested too deep"),
        ("[]", "expected presets and images"),
        ('{"format": 9}', "expected format 2, found 9; gdn and the package of images"),
        ('{"format": 2, "presets": {}}', "expected presets and images"),
        ('{"format": 2, "presets": {}, "images": [{"facts": {}}]}', "expected presets and images"),
        ('{"format": 2, "presets": {"x": 3}, "images": []}', "expected presets and images"),
    ],
    ids=range(9),
)
def test_a_damaged_index(content, message, tmp_path):
    if content is not None:
        (tmp_path / images.INDEX).write_text(content)
    with pytest.raises(ImageIndexError, match=message) as caught:
        images.find("qwen3.5-4b", "sm_90a", folder=tmp_path)
    assert str(tmp_path / images.INDEX) in str(caught.value)


def test_files_that_are_not_those_of_the_index(tmp_path):
    write_folder(tmp_path, [ITEMS["slots-128x128-flat-silu-eps1e-06-bf16-f32"]])
    path = images.find("qwen3.5-4b", "sm_90a", folder=tmp_path)
    path.write_text("short")
    with pytest.raises(ImageIndexError, match=r"expected an image of \d+ bytes, found 5 bytes"):
        images.find("qwen3.5-4b", "sm_90a", folder=tmp_path)
    path.unlink()
    with pytest.raises(ImageIndexError, match=r"expected an image of \d+ bytes, found none"):
        images.find("qwen3.5-4b", "sm_90a", folder=tmp_path)
    index = json.loads((tmp_path / images.INDEX).read_text())
    for name in ("../x.gdnk", "/x.gdnk"):
        index["images"][0]["targets"]["sm_90a"]["file"] = name
        images_wheel.write_index(tmp_path, index)
        with pytest.raises(ImageIndexError, match="expected files of the folder"):
            images.find("qwen3.5-4b", "sm_90a", folder=tmp_path)


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "engine": st.sampled_from(list(image_facts.ENGINES)),
        "io": st.sampled_from(["bf16", "f16", "f32"]),
        "state": st.sampled_from(image_facts.STATES),
        "deferred_writes": st.sampled_from([0, 0, 8, 16]),
        "verify": st.sampled_from(image_facts.VERIFY),
        "layout": st.sampled_from(image_facts.LAYOUTS),
        "outputs": st.sampled_from(image_facts.OUTPUTS),
        "l2norm": st.booleans(),
    },
)


@given(
    names=st.sets(st.sampled_from(sorted(ITEMS)), max_size=12),
    preset=st.sampled_from(list(PRESETS)),
    target=st.sampled_from(["sm_80", "sm_89", "sm_90", "x86-64-v4", (10, 0), (7, 0)]),
    options=OPTIONS,
)
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_what_is_found_serves_and_what_serves_is_found(names, preset, target, options, tmp_path):
    write_folder(tmp_path, [ITEMS[name] for name in sorted(names)])
    asked = {name: value for name, value in options.items() if name != "engine"}
    try:
        request = image_facts.request(PRESETS[preset], options.get("engine", "c"), **asked)
    except ValueError:
        with pytest.raises(ValueError, match=r"expected|expects"):
            images.find(preset, target, folder=tmp_path, **options)
        return
    rows = json.loads((tmp_path / images.INDEX).read_text())["images"]
    served = {row["name"] for row in rows if not request.differences(row)}
    runs = [t for t in targets.run_by(target) if t in catalogue.TARGETS]
    there = {name for name in served if any((name, t) not in REFUSED for t in runs)} if runs else {}
    if not there:
        error = miss(preset, target, folder=tmp_path, **options)
        assert error.missing and (error.nearest is None or error.nearest.exists())
        return
    item, found = item_of(images.find(preset, target, folder=tmp_path, **options))
    assert item.name in there and found in runs


@pytest.mark.parametrize("name", ["config", "preset"])
def test_the_command_of_a_miss_is_right(name, tool, folder, tmp_path, monkeypatch):
    """It is taken by gdn-compile, and what it makes is what was asked for."""
    monkeypatch.chdir(tmp_path)
    config = model_configs.PRESETS["qwen3.5-4b"]["text_config"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    asked = {"preset": "qwen3.5-4b", "config": config}[name]
    options = {"engine": "sglang", "verify": "tree", "state": "f16"}
    error = miss(asked, "sm_90a", folder=folder, **options)
    *words, out, path = shlex.split(error.command)
    assert (words[0], out, path) == ("gdn-compile", "-o", "layer.gdnk")
    done = tool(*words, "--emit=gdn")
    assert done.returncode == 0, done.stderr
    assert '"parents"' in done.stdout and 'state = "f16"' in done.stdout
    said = []
    monkeypatch.setattr(compiler, "compile", lambda *a, **k: said.append((a, k)))
    eval(error.call, {"gdn": compiler, "config": config})
    assert said == [((asked, "sm_90a"), {**options, "io": "bf16"})]


# An image.

SMALL = model_configs.SMALL | {
    "model_type": "qwen3_5_text",
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
}


class SmallItem(catalogue.Item):
    """Of a configuration that is no preset."""

    source = ("--config", "config.json")


@pytest.fixture(scope="module")
def builder(build_dir, gdn_compile, tmp_path_factory, unsanitized):
    _, *cache = gdn_compile
    place = cache[0].partition("=")[2] if cache else tmp_path_factory.mktemp("cache")
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    folder = tmp_path_factory.mktemp("built")
    return images_wheel.Builder(build_dir / "bin/gdn-compile", folder, place, runtime)


@pytest.fixture(scope="module")
def small(builder):
    model = images.ModelConfig.from_config(SMALL).facts()
    made = catalogue.item_of(catalogue.FORMS[0], model, "f32", "f32")
    item = SmallItem(**{**vars(made), "presets": ["small"]})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(builder.folder)
        (builder.folder / "config.json").write_text(json.dumps(SMALL))
        pairs = [(item, "x86-64-v3"), (item, "sm_86")]
        lines: list[str] = []
        with pytest.MonkeyPatch.context() as stopped:
            stopped.setattr(builder, "make", refusing(builder.make, "sm_86"))
            results = images_wheel.compile_all(builder, pairs, 2, lines.append)
        assert len(lines) == 2 and any("x86-64-v3.gdnk" in line for line in lines)
        index = images_wheel.index_of(builder, pairs, results, {"small": model})
        images_wheel.write_index(builder.folder, index)
        yield item


def refusing(make, refused):
    return lambda item, target: {"refused": "a reason"} if target == refused else make(item, target)


def test_an_image_from_the_catalogue_to_a_launch(builder, small):
    runtime = builder.runtime
    device = runtime.device()
    path = images.find(SMALL, device, engine="vllm", io="f32", folder=builder.folder)
    assert images.find("small", "native", io="f32", folder=builder.folder, state="f32") == path
    image = runtime.image(path)
    assert image.entries == ["prefill", "decode", "verify", "copy_slots", "zero_slots"]
    decode = device.kernel(image, "decode")
    assert decode.params == image.params("decode")
    arrays = make(decode.params, Sizes(key_heads=1, value_heads=2, lengths=(1, 1, 1)))
    arrays["out"][:] = np.nan
    Call(decode)(**arrays)
    assert np.isfinite(arrays["out"]).all()
    error = miss(SMALL, (8, 6), io="f32", folder=builder.folder)
    assert "gdn-compile makes none for sm_86: a reason" in str(error)


def test_the_index_says_what_the_image_says(builder, small):
    (row,) = json.loads((builder.folder / images.INDEX).read_text())["images"]
    image = builder.runtime.image(builder.folder / row["targets"]["x86-64-v3"]["file"])
    found = image_facts.facts_of(image)
    assert found == {name: row[name] for name in found}
    assert found["verify_tokens"] == 8


@pytest.mark.parametrize("state", ["f32", "i8"])
def test_an_image_with_deferred_writes(state, builder, monkeypatch):
    """It says of itself what the catalogue says of it."""
    monkeypatch.chdir(builder.folder)
    model = images.ModelConfig.from_config(SMALL).facts()
    (form,) = (form for form in catalogue.FORMS if form.name == "deferred")
    item = SmallItem(**vars(catalogue.item_of(form, model, "f32", state)))
    assert "bytes" in builder.make(item, "x86-64-v3")
    found = builder.facts(item, "x86-64-v3")
    assert found["facts"]["deferred_writes"] == 16 and found["verify"] == "lazy"
    assert found["entries"] == ["prefill", "decode", "verify", "commit", "copy_slots", "zero_slots"]


def test_an_image_that_is_not_what_was_asked_for(builder, small):
    for name, value in (
        ("verify", "tree"),
        ("parameters", []),
        ("facts", small.facts | {"norm_eps": 0.5}),
    ):
        wrong = SmallItem(**{**vars(small), name: value})
        with pytest.raises(ValueError, match=f"expected {name} .*, found "):
            builder.facts(wrong, "x86-64-v3")
    with pytest.raises(ValueError, match="expected code for x86-64-v4"):
        path = builder.folder / small.file("x86-64-v4")
        path.write_bytes((builder.folder / small.file("x86-64-v3")).read_bytes())
        builder.facts(small, "x86-64-v4")


def test_what_is_there_is_not_compiled_again(builder, small, monkeypatch):
    first = builder.make(small, "x86-64-v3")
    monkeypatch.setattr(images_wheel.subprocess, "run", lambda *a, **k: pytest.fail("compiled"))
    assert builder.make(small, "x86-64-v3") == first
    monkeypatch.setattr(builder, "identity", ["another compiler"])
    with pytest.raises(pytest.fail.Exception, match="compiled"):
        builder.make(small, "x86-64-v3")


def test_a_compiler_is_known_by_its_content(builder, tmp_path):
    """Wherever it lies, and whenever it was copied there."""
    identities = []
    for place, program in (("here", b"one"), ("there", b"one"), ("here", b"two")):
        tool = tmp_path / place / "gdn-compile"
        tool.parent.mkdir(exist_ok=True)
        tool.write_bytes(program)
        made = images_wheel.Builder(tool, tmp_path, tmp_path, builder.runtime)
        identities.append(made.identity)
    assert identities[0] == identities[1] != identities[2]


def test_what_is_refused_is_remembered(builder, small, monkeypatch):
    wrong = SmallItem(**{**vars(small), "name": "wrong", "io": "f64"})
    kimi = SmallItem(**{**vars(small), "name": "kimi"})
    kimi.source = ("--preset=kimi-linear-48b-a3b", "--layout=flat")
    refused = builder.make(kimi, "x86-64-v3")
    assert (
        refused["refused"]
        == "a decay per channel expects the layout separate, gated or ready, but got flat"
    )
    failed = builder.make(wrong, "x86-64-v3")  # an option that is wrong is no refusal
    assert "f64" in failed["failed"] and "refused" not in failed
    monkeypatch.setattr(images_wheel.subprocess, "run", lambda *a, **k: pytest.fail("compiled"))
    assert builder.make(kimi, "x86-64-v3") == refused


def test_what_is_a_refusal():
    left_out = """\
olmo: remark: a state of 18432 elements does not fit in the registers of 4 warps
olmo: warning: entry 'verify' has no schedule for sm_90a and is left out
olmo: error: expects code for sm_90a of every entry that was asked for, but got none of 'verify'
"""
    why = "'verify': a state of 18432 elements does not fit in the registers of 4 warps"
    assert images_wheel.refusal_of(left_out) == why
    spills = "x: error: 'prefill' expects no spilled registers on sm_90a, but got 4 bytes"
    assert "expects no spilled registers" in images_wheel.refusal_of(spills)
    for said in ("x: error: ptxas: did not end by itself within 300 s", "", "terminate called"):
        assert images_wheel.refusal_of(said) is None


def test_parts_of_the_catalogue():
    pairs = images_wheel.chosen(
        ITEMS.values(), catalogue.TARGETS, ["bf16-f32", "slots,tree", "flat"]
    )
    assert {item.form.name for item, _ in pairs} == {"slots", "tree"}
    assert len(pairs) == 2 * 2 * len(catalogue.TARGETS)
    names = {item.name for item, _ in images_wheel.chosen(ITEMS.values(), ["sm_80"], ["rule"])}
    assert "rule-l2norm-128x128-bf16-f32" in names and "rule-128x128-bf16-f32" in names
    assert images_wheel.chosen(ITEMS.values(), ["sm_80"], ["llama"]) == []


def test_the_program_that_finds(folder, capsys, monkeypatch):
    from gdn import find_image

    arguments = ["find_image", "qwen3.5-4b", "sm_90", "--for=vllm", f"--folder={folder}"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert find_image.main() == 0
    path = images.find("qwen3.5-4b", "sm_90", engine="vllm", folder=folder)
    assert capsys.readouterr().out == f"{path}\n"
    monkeypatch.setattr(sys, "argv", [*arguments, "--io=f32"])
    assert find_image.main() == 1
    assert "gdn: images: expected one for sm_90a" in capsys.readouterr().err
