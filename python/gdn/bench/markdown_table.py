# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of cells as a table of Markdown."""


def lines_of(header: list[str], rows: list[list[str]], left: int = 0) -> list[str]:
    """Nothing where there are no rows. The first `left` columns are words, the others numbers."""
    if not rows:
        return []
    line = "|" + "---|" * left + "---:|" * (len(header) - left)
    return [f"| {' | '.join(header)} |", line, *(f"| {' | '.join(row)} |" for row in rows)]
