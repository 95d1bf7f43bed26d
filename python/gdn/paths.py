# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the libraries are, and what C and C++ are built with: in the installed package, or in
the sources after ./demo or ./check has built them.

CMake finds the package with -Dgdn_DIR="$(python -m gdn --cmake-dir)", pkg-config with
PKG_CONFIG_PATH="$(python -m gdn --pkgconfig-dir)".
"""

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_SOURCES = _FOLDER.parents[1]


def _in_package(*parts: str) -> str:
    path = _FOLDER.joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is not there: gdn is not installed, but used from sources (pip install . in"
            " them installs it)"
        )
    return str(path)


def cmake_dir() -> str:
    """The folder of gdnConfig.cmake, for gdn_DIR or CMAKE_PREFIX_PATH."""
    return _in_package("lib", "cmake", "gdn")


def pkgconfig_dir() -> str:
    """The folder of gdn.pc, for PKG_CONFIG_PATH."""
    return _in_package("lib", "pkgconfig")


def include_dir() -> str:
    """The folder with gdn-c/runtime.h and the other headers."""
    in_sources = _SOURCES / "include"
    return str(in_sources) if (in_sources / "gdn-c").exists() else _in_package("include")


def library() -> str:
    """The runtime, libgdnrt: that of the package, else the one that was built in the sources."""
    name = "libgdnrt.so.0"
    places = (_FOLDER / "lib" / name, _SOURCES / "build/release/lib" / name)
    for path in places:
        if path.exists():
            return str(path)
    raise FileNotFoundError(
        f"{name}: expected it at {places[0]} (pip install gdn) or {places[1]} (./demo in the"
        " sources builds it), found neither"
    )
