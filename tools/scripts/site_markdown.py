# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes Python-Markdown read pages as GitHub reads them, where the two differ on our pages."""

from __future__ import annotations

import re

from markdown import Markdown
from markdown.blockprocessors import (
    CodeBlockProcessor,
    ListIndentProcessor,
    OListProcessor,
    UListProcessor,
)
from markdown.extensions import Extension


def slug(heading: str, separator: str = "-") -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


class Lists(Extension):
    """What stands three columns to the right is in the item of a list, not only four."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.tab_length = 3
        # Those who ask for it, again: they have taken over the old length.
        for kind, name, priority in (
            (ListIndentProcessor, "indent", 90),
            (CodeBlockProcessor, "code", 80),
            (OListProcessor, "olist", 40),
            (UListProcessor, "ulist", 30),
        ):
            md.parser.blockprocessors.register(kind(md.parser), name, priority)


def makeExtension(**options) -> Lists:  # noqa: N802
    return Lists(**options)
