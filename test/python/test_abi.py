# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C interface: what tools/scripts/abi.py tells apart, shown on headers that were changed;
and that ctypes has the structs and functions of the headers."""

import ctypes
import shutil
from functools import cache
from pathlib import Path

import pytest

import abi
from gdn import (
    _abi,
    _attention_abi,
    _exchange_abi,
    _host_tier_abi,
    _serving_abi,
    _state_cache_abi,
    _state_pool_abi,
)

ROOT = Path(__file__).resolve().parents[2]

MODULES = (
    _abi,
    _serving_abi,
    _attention_abi,
    _state_pool_abi,
    _state_cache_abi,
    _host_tier_abi,
    _exchange_abi,
)
# Mirrors whose names are not those of the header in another spelling.
NAMES = {
    "Kernels": "gdnrt_gdn_kernels",
    "Metadata": "gdnrt_gdn_metadata",
    "GDNForwardMetadata": "gdnrt_gdn_forward_metadata",
}


@cache
def headers() -> str:
    return abi.dump()


def changed(folder: Path, header: str, before: str, after: str) -> str:
    """The interface with one place of a header replaced."""
    include = folder / "include"
    shutil.copytree(ROOT / "include/gdn-c", include / "gdn-c")
    path = include / "gdn-c" / header
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))
    return abi.dump(include)


def breaks(new: str) -> list[str]:
    return abi.breaks(headers(), new)


def test_the_baseline_is_that_of_the_headers():
    assert not abi.abidiff(abi.BASELINE.read_text(), headers())


@pytest.mark.parametrize(
    "header, before, after",
    [
        # A member at the end of a struct that carries its size.
        ("image.h", "  const char *bits;\n", "  const char *bits;\n  int64_t more;\n"),
        # Also of one that is filled and given back, and of one of callbacks.
        ("state_pool.h", "  uint64_t bytes;\n}", "  uint64_t bytes;\n  void *more;\n}"),
        (
            "attention.h",
            "  void (*destroy)(void *context);\n",
            "  void (*destroy)(void *);\n  void *m;\n",
        ),
        # A name for a member that had to be 0.
        ("batch_planner.h", "  int32_t reserved;\n", "  int32_t more;\n"),
        # A value of an enum, and a function.
        ("state_pool.h", "GDNRT_CONV_SD = 1", "GDNRT_CONV_SD = 1, GDNRT_MORE = 2"),
        (
            "status.h",
            "GDNRT_API uint32_t gdnrt_version(void);",
            "GDNRT_API uint32_t gdnrt_version(void);\nGDNRT_API void gdnrt_more(void);",
        ),
    ],
)
def test_what_may_grow(tmp_path, header, before, after):
    new = changed(tmp_path, header, before, after)
    assert abi.abidiff(headers(), new)  # it is noticed,
    assert not breaks(new)  # and harmless


@pytest.mark.parametrize(
    "header, before, after, named",
    [
        # A member in the middle, another type, another order.
        ("image.h", "  const char *bits;\n", "", "gdnrt_variant_info"),
        (
            "image.h",
            "  size_t stage_count;\n",
            "  size_t stage_count;\n  size_t more;\n",
            "gdnrt_variant_info",
        ),
        (
            "metadata.h",
            "  int64_t max_num_seqs;\n",
            "  int32_t max_num_seqs;\n",
            "gdnrt_metadata_options",
        ),
        (
            "batch_planner.h",
            "  int32_t reserved;\n",
            "  float more;\n",
            "gdnrt_batch_planner_options",
        ),
        # Structs that never change.
        (
            "runtime.h",
            "  int64_t null_slot;\n",
            "  int64_t null_slot;\n  void *more;\n",
            "gdnrt_arg",
        ),
        (
            "metadata.h",
            "  int64_t num_rows;\n",
            "  int64_t num_rows;\n  int64_t more;\n",
            "gdnrt_run",
        ),
        # Functions that are gone, or take other arguments.
        ("status.h", "GDNRT_API uint32_t gdnrt_version(void);", "", "gdnrt_version"),
        (
            "image.h",
            "gdnrt_entry_symbol_count(const gdnrt_entry *entry);",
            "gdnrt_entry_symbol_count(const gdnrt_entry *entry, int more);",
            "gdnrt_entry_symbol_count",
        ),
        # A value that functions take as a number.
        ("state_pool.h", "GDNRT_CONV_SD = 1", "GDNRT_CONV_SD = 2", "gdnrt_conv_layout"),
    ],
)
def test_what_breaks_callers(tmp_path, header, before, after, named):
    new = changed(tmp_path, header, before, after)
    assert abi.abidiff(headers(), new)
    assert any(line.startswith(named) for line in breaks(new)), breaks(new)


class Types(abi.Interface):
    """What ctypes can say of types as well."""

    def shape(self, of: str) -> tuple[str, int]:
        """What ctypes can say of a type: its kind, and its size in bytes."""
        e = self.by_id[of]
        if e.tag in ("typedef-decl", "qualified-type-def"):
            return self.shape(e.get("type-id"))
        if e.tag == "pointer-type-def":
            return "pointer", 8
        if e.tag == "enum-decl":
            return "int", 4
        if e.tag == "array-type-def":
            return "array", int(e.get("size-in-bits")) // 8
        if e.tag == "class-decl":
            return e.get("name"), int(e.get("size-in-bits")) // 8
        size = int(e.get("size-in-bits") or 0) // 8
        kind = "float" if e.get("name") in ("float", "double") else "int"
        return ("void", 0) if e.get("name") == "void" else (kind, size)


# Of functions, too.
POINTERS = (ctypes._Pointer, ctypes._CFuncPtr)


def shape(of: type | None) -> tuple[str, int]:
    """The same of a type of ctypes."""
    if of is None:
        return "void", 0
    size = ctypes.sizeof(of)
    if of in (ctypes.c_void_p, ctypes.c_char_p) or issubclass(of, POINTERS):
        return "pointer", size
    if issubclass(of, ctypes.Array):
        return "array", size
    if issubclass(of, ctypes.Structure):
        return name_of(of), size
    return ("float" if of in (ctypes.c_float, ctypes.c_double) else "int"), size


def name_of(mirror: type) -> str:
    words = "".join("_" + c.lower() if c.isupper() else c for c in mirror.__name__)
    return NAMES.get(mirror.__name__, "gdnrt" + words)


def mirrors() -> list[type]:
    found = {
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, ctypes.Structure)
    }
    return sorted(found - {ctypes.Structure}, key=lambda mirror: mirror.__name__)


@pytest.mark.parametrize("mirror", mirrors(), ids=lambda mirror: mirror.__name__)
def test_structs_of_ctypes(mirror):
    types = Types(headers())
    struct = next(
        e
        for e in types.by_id.values()
        if e.tag == "class-decl"
        and e.get("name") == name_of(mirror)
        and e.get("is-declaration-only") != "yes"
    )
    wanted = [
        (
            member.find("var-decl").get("name"),
            int(member.get("layout-offset-in-bits")) // 8,
            types.shape(member.find("var-decl").get("type-id")),
        )
        for member in struct.iter("data-member")
    ]
    got = [(name, getattr(mirror, name).offset, shape(kind)) for name, kind in mirror._fields_]
    assert got == wanted
    assert ctypes.sizeof(mirror) == int(struct.get("size-in-bits")) // 8
    if wanted[0][0] == "struct_size":
        assert mirror().struct_size == ctypes.sizeof(mirror)


def functions() -> dict[str, tuple]:
    named: dict[str, tuple] = {}
    for module in MODULES:
        named |= getattr(module, "FUNCTIONS", None) or module._FUNCTIONS
    return named


def test_functions_of_ctypes():
    types = Types(headers())
    assert len(functions()) > 80
    for name, (result, arguments) in functions().items():
        returned, *parameters = map(types.shape, types.functions[name])
        # An array as a parameter is a pointer.
        given = [("pointer", 8) if shape(a)[0] == "array" else shape(a) for a in arguments]
        assert (name, given) == (name, parameters)
        assert (name, shape(result)) == (name, returned)


def test_constants_of_ctypes():
    headers = ("status.h", "image.h", "layer_shape.h")
    text = "".join((ROOT / "include/gdn-c" / name).read_text() for name in headers)
    for name, value in (
        ("MAX_RANK", _abi.MAX_RANK),
        ("MESSAGE_SIZE", _abi.MESSAGE_SIZE),
        ("MAX_SLICES", _serving_abi.MAX_SLICES),
    ):
        assert f"#define GDNRT_{name} {value}\n" in text
