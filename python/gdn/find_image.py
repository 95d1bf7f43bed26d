# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m gdn.find_image: prints the path of a prebuilt image; see gdn.images."""

import argparse
import sys

from . import image_facts, images
from .model_config import ConfigError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gdn.find_image", description=__doc__)
    parser.add_argument("config", help="a config.json, its folder, or the name of a preset")
    parser.add_argument("target", help="a name as gdn-compile takes it, or native")
    parser.add_argument("--for", dest="engine", default="c", choices=image_facts.ENGINES)
    parser.add_argument("--io", choices=image_facts.TYPES)
    parser.add_argument("--state", choices=image_facts.STATES)
    parser.add_argument("--verify", choices=image_facts.VERIFY)
    parser.add_argument("--layout", choices=image_facts.LAYOUTS)
    parser.add_argument("--outputs", choices=image_facts.OUTPUTS)
    parser.add_argument("--pending", choices=image_facts.PENDING)
    parser.add_argument("--l2norm", action="store_true")
    parser.add_argument(
        "--defer-writes", dest="deferred_writes", type=int, default=0, help="tokens kept pending"
    )
    parser.add_argument("--folder", help="of images, in place of the installed packages")
    options = vars(parser.parse_args())
    try:
        print(images.find(options.pop("config"), options.pop("target"), **options))
    except (LookupError, images.ImageIndexError, ConfigError, ValueError, OSError) as error:
        print(f"gdn: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
