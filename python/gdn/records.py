# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records of what ran on a device: how they are written, and when a tool of compute-sanitizer
counts as clean."""

import json


def is_clean(row: dict) -> bool:
    """Whether a row of `sanitizers` of a report has nothing to complain about: the tool came to
    its end and counted no error, and neither had the check that ran under it."""
    return row["errors"] == 0 and not row["failures"]


def text_of(record: dict) -> str:
    """A record as JSON, with a line for each of its `rows`."""
    head = json.dumps({key: record[key] for key in record if key != "rows"}, indent=1)
    rows = ",\n  ".join(json.dumps(row) for row in record["rows"])
    return f'{head[:-2]},\n "rows": [\n  {rows}\n ]\n}}\n'
