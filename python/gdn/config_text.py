# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text of a model's configuration: JSON as gdn-compile reads it, and its error."""

from __future__ import annotations

import json
from collections.abc import Mapping

_MOST_NESTED = 64


class ConfigError(ValueError):
    """A configuration that gdn-compile refuses. The message names the file, the key, what was
    expected and what was found."""


def text_of(config: Mapping[str, object]) -> str:
    """A configuration as JSON. ConfigError for what JSON does not hold."""
    try:
        return json.dumps(dict(config), default=str, indent=1)
    except RecursionError:
        most = f"at most {_MOST_NESTED} nested arrays and objects"
        raise ConfigError(f"config.json: expects {most}, but got more") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"config.json: is not JSON: {error}") from None


def _check_nesting(text: str, name: str) -> None:
    depth, in_string, skipped = 0, False, False
    for i, character in enumerate(text):
        if skipped:
            skipped = False
        elif in_string:
            skipped, in_string = character == "\\", character != '"'
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            if depth > _MOST_NESTED:
                raise ConfigError(
                    f"{name}: byte {i}: expects at most {_MOST_NESTED} nested arrays and objects"
                )
        elif character in "]}" and depth > 0:
            depth -= 1


def _parse_integer(text: str) -> int | float:
    """What 64 bits do not hold is a floating-point number, as in the compiler."""
    value = float(text)
    return int(text) if -(2.0**63) <= value < 2.0**64 else value


def parse(text: str, name: str) -> dict[str, object]:
    """The values of a config.json; `name` stands for it in messages."""
    _check_nesting(text, name)
    try:
        # Numbers that Python writes and JSON has no words for are null.
        value = json.loads(text, parse_constant=lambda _: None, parse_int=_parse_integer)
    except ValueError as error:
        raise ConfigError(f"{name}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{name}: expects a JSON object at the top")
    return value
