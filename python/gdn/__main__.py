# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m gdn: prints where the installed package has what C and C++ are built with."""

import argparse
import sys

from . import paths


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gdn", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    for function in (paths.cmake_dir, paths.pkgconfig_dir, paths.include_dir, paths.library):
        option = "--" + function.__name__.replace("_", "-")
        which.add_argument(
            option, dest="print", action="store_const", const=function, help=function.__doc__
        )
    try:
        print(parser.parse_args().print())
    except FileNotFoundError as error:
        print(f"gdn: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
