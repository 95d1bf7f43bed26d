# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the installed package has what C and C++ are built with.

CMake finds it with -Dgdn_DIR="$(python -m gdn --cmake-dir)", pkg-config with
PKG_CONFIG_PATH="$(python -m gdn --pkgconfig-dir)".
"""

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


def _in_package(*parts: str) -> str:
    path = _FOLDER.joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: gdn is not installed, but used from sources")
    return str(path)


def cmake_dir() -> str:
    """The folder of gdnConfig.cmake, for gdn_DIR or CMAKE_PREFIX_PATH."""
    return _in_package("lib", "cmake", "gdn")


def pkgconfig_dir() -> str:
    """The folder of gdn.pc, for PKG_CONFIG_PATH."""
    return _in_package("lib", "pkgconfig")


def include_dir() -> str:
    """The folder with gdn-c/runtime.h and the other headers."""
    return _in_package("include")


def library() -> str:
    """The runtime, libgdnrt."""
    return _in_package("lib", "libgdnrt.so.0")
