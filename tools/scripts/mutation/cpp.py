# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C++ text as tokens: brackets, operands, calls and statements, as far as text says it.

Nothing here knows types. What clang-format guarantees helps: there is space on both
sides of a binary operator, and none between a pointer's or a reference's sign and what
it stands before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

TOKEN = re.compile(
    r"""
    (?P<skip>\s+ | //[^\n]* | /\*.*?\*/)
  | (?P<directive>\#(?:\\\n|[^\n])*)
  | (?P<string>R"(?P<mark>\w*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*")
  | (?P<char>'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<punct><<=|>>=|->\*|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
PAIRS = {"(": ")", "[": "]", "{": "}"}
# Binary operators by how tightly they bind; what is not here ends an operand.
PRECEDENCE = {
    **dict.fromkeys(["*", "/", "%"], 10),
    **dict.fromkeys(["+", "-"], 9),
    **dict.fromkeys(["<<", ">>"], 8),
    **dict.fromkeys(["<", "<=", ">", ">="], 7),
    **dict.fromkeys(["==", "!="], 6),
    "&": 5,
    "^": 4,
    "|": 3,
    "&&": 2,
    "||": 1,
}
ENDS = {",", ";", "?", ":", "=", "*=", "/=", "%=", "+=", "-=", "&=", "|=", "^=", "<<=", ">>="}
KEYWORDS = {"return", "case", "else", "throw", "do", "if", "while", "for", "switch"}
KEYWORDS |= {"new", "delete"}
# Calls whose arguments are not code of a release build, or are text.
NOT_CODE = {"assert", "static_assert", "llvm_unreachable", "LLVM_DEBUG", "formatv", "Twine"}
DIAGNOSTICS = {"emitError", "emitOpError", "emitRemark", "emitWarning", "attachNote"}
MESSAGES = DIAGNOSTICS | {"invalid", "failure", "unsupported", "notifyMatchFailure"}
# Functions that make text for people.
TEXT = re.compile(r"^(toString|bracketed|inOneLine|joinNames|nameOf|print\w*|dump|\w*Message)$")


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


class Source:
    """One file, and questions about its tokens, which are known by number."""

    def __init__(self, path: str, text: str):
        self.path = path
        self.text = text
        self.tokens = [
            Token(found.lastgroup or "", found.group(), found.start(), found.end())
            for found in TOKEN.finditer(text)
            if found.lastgroup not in ("skip", "directive")
        ]
        self.partner = self._brackets()
        self._angles()

    def _brackets(self) -> dict[int, int]:
        """Where each bracket's other one is; those without are not there."""
        partner, open_ = {}, []
        for i, token in enumerate(self.tokens):
            if token.kind != "punct":
                continue
            if token.text in PAIRS:
                open_.append(i)
            elif token.text in PAIRS.values() and open_:
                if PAIRS[self.tokens[open_[-1]].text] == token.text:
                    partner[i] = open_.pop()
                    partner[partner[i]] = i
                else:
                    open_.pop()
        return partner

    def _angles(self) -> None:
        """Adds the brackets of templates' arguments to `partner`."""
        open_: list[int] = []
        for i, token in enumerate(self.tokens):
            if token.kind != "punct":
                continue
            before = self[i - 1] if i else ""
            if token.text == "<" and (before == "template" or not self._has_space(i)):
                if before != "operator":
                    open_.append(i)
            elif token.text in (">", ">>") and not self._has_space(i):
                for _ in token.text:
                    if open_:
                        first = open_.pop()
                        self.partner[first] = i
                        self.partner[i] = first  # of the outer one, if there are two
            elif token.text in (";", "{", "}"):
                open_.clear()

    def _has_space(self, i: int) -> bool:
        start = self.tokens[i].start
        return start > 0 and self.text[start - 1].isspace()

    def __getitem__(self, i: int) -> str:
        """The text of token `i`, empty beyond the ends."""
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def kind(self, i: int) -> str:
        return self.tokens[i].kind if 0 <= i < len(self.tokens) else ""

    def line(self, i: int) -> int:
        return self.text.count("\n", 0, self.tokens[i].start) + 1

    def flat(self, first: int, last: int) -> str:
        """Tokens `first` to `last` on one line, without comments."""
        parts = [self[first]] if first <= last else []
        for i in range(first + 1, last + 1):
            if self.tokens[i].start > self.tokens[i - 1].end:
                parts.append(" ")
            parts.append(self[i])
        return "".join(parts)

    def names(self, first: int, last: int) -> set[str]:
        return {self[i] for i in range(first, last + 1) if self.kind(i) == "name"}

    # What holds where.

    @cached_property
    def code(self) -> list[bool]:
        """Whether a token is in the body of a function, and neither constant nor text."""
        is_code = [False] * len(self.tokens)
        for i in range(len(self.tokens)):
            if self[i] == "{" and i in self.partner and self.is_body(i):
                is_code[i + 1 : self.partner[i]] = [True] * (self.partner[i] - i - 1)
        for first, last in self._not_code():
            is_code[first : last + 1] = [False] * (last + 1 - first)
        return is_code

    def is_body(self, i: int) -> bool:
        """Whether the brace at `i` opens statements: of a function, a branch or a loop."""
        before = self[i - 1]
        if before in (")", "const", "override", "noexcept", "mutable", "else", "do", "try"):
            return True
        if before == "]":  # a lambda without parameters
            start = self.partner.get(i - 1, 0)
            return self.kind(start - 1) != "name" and self[start - 1] not in (")", "]")
        # A lambda that says what it returns.
        start = i - 1
        while start > 0 and self[start] not in (";", "{", "}", "(", ")", "="):
            start -= 1
        return self[start] == ")" and "->" in (self[k] for k in range(start, i))

    def is_lambda(self, i: int) -> bool:
        """Whether the brace at `i` opens the body of a lambda."""
        end = i - 1
        while end > 0 and self[end] not in (")", "]", ";", "{", "}"):
            end -= 1
        if self[end] == ")":
            end = self.partner.get(end, 0) - 1
        return self[end] == "]"

    def block(self, i: int) -> int:
        """The brace that opens the block that token `i` is in, or -1."""
        while i > 0:
            i -= 1
            if self[i] in (")", "]", "}"):
                i = self.partner.get(i, i)
            elif self[i] == "{":
                return i
        return -1

    def _not_code(self) -> Iterator[tuple[int, int]]:
        for i in range(len(self.tokens)):
            text, follows = self[i], self[i + 1]
            is_asked = text == "constexpr" and self[i - 1] == "if"
            if (text in NOT_CODE or is_asked) and follows == "(" and i + 1 in self.partner:
                yield i, self.partner[i + 1]
            elif text == "constexpr":
                yield i, self._end_of_declaration(i)
            elif text in DIAGNOSTICS or (text in MESSAGES and follows == "("):
                first, last = self.statement(i)
                if text in DIAGNOSTICS or self[first] == "return":
                    yield first, last
            elif text == "{" and self[i - 1] in (")", "const", "override"):
                end = i - 1
                while self[end] != ")":
                    end -= 1
                if TEXT.match(self[self.partner.get(end, 0) - 1]):
                    yield i, self.partner.get(i, i)

    def _end_of_declaration(self, i: int) -> int:
        while i < len(self.tokens) and self[i] != ";":
            if self[i] == "{" and i in self.partner:
                if self.is_body(i):
                    return self.partner[i]
                i = self.partner[i]
            elif self[i] in ("(", "["):
                i = self.partner.get(i, i)
            i += 1
        return i

    # Statements.

    def statement(self, i: int) -> tuple[int, int]:
        """The first token and the semicolon of the statement around token `i`, which may be
        the body of a branch or a loop; of what a bracket holds, all up to its end."""
        first = i
        while first > 0 and not self.starts_statement(first) and self[first - 1] not in ("(", "["):
            first -= 1
            if self[first] in (")", "]", "}"):
                first = self.partner.get(first, first)
        last = i
        while last + 1 < len(self.tokens) and self[last] not in (";", ")", "}"):
            if self[last] in PAIRS:
                last = self.partner.get(last, last)
            last += 1
        return first, last

    def starts_statement(self, i: int) -> bool:
        before = self[i - 1]
        if i == 0 or before in (";", "{", "else", "do"):
            return True
        if before == "}":  # of a block, not of a value
            return self.is_block(self.partner.get(i - 1, 0))
        if before == ")":  # of a condition
            start = self.partner.get(i - 1, 0)
            return self[start - 1] in ("if", "for", "while", "switch")
        return False

    def is_block(self, i: int) -> bool:
        """Whether the brace at `i` opens statements or members, not a value."""
        if self.is_body(i):
            return True
        start = i
        while start > 0 and self[start - 1] not in (";", "{", "}"):
            start -= 1
        return start == i or self[start] in ("class", "struct", "namespace", "enum", "extern")

    # Expressions.

    def is_binary(self, i: int) -> bool:
        token = self.tokens[i]
        after = self.text[token.end : token.end + 1]
        return (
            token.kind == "punct"
            and token.text in PRECEDENCE
            and self._has_space(i)
            and after.isspace()
            and self[i - 1] not in ENDS | {"(", "template", "operator"}
            and i not in self.partner
        )

    def left(self, i: int) -> int:
        """The first token of the left operand of the binary operator at `i`."""
        first = i
        while first > 0:
            at = first - 1
            text = self[at]
            if text in (")", "]") or (text in (">", ">>") and at in self.partner):
                at = self.partner.get(at, at)
            elif text == "}":
                at = self.partner.get(at, at)
                if self.kind(at - 1) != "name" or self[at - 1] in KEYWORDS:
                    break
            elif text in PAIRS or text in ENDS or (text in KEYWORDS and text != "new"):
                break
            if self.is_binary(at) and PRECEDENCE[text] < PRECEDENCE[self[i]]:
                break
            first = at
        return first

    def right(self, i: int) -> int:
        """The last token of the right operand of the binary operator at `i`."""
        last = i
        while last + 1 < len(self.tokens):
            at = last + 1
            text = self[at]
            if text in ("(", "[") or (text == "<" and at in self.partner):
                at = self.partner.get(at, at)
            elif text == "{":
                if self.kind(last) != "name" and self[last] not in (")", ">"):
                    break
                at = self.partner.get(at, at)
            elif text in PAIRS.values() or text in ENDS:
                break
            if self.is_binary(at) and PRECEDENCE[text] <= PRECEDENCE[self[i]]:
                break
            last = at
        return last

    def outside(self, first: int, last: int) -> Iterator[int]:
        """The tokens from `first` to `last` that are in no bracket between them."""
        i = first
        while i <= last:
            if self[i] in PAIRS or (self[i] == "<" and i in self.partner):
                i = self.partner.get(i, i)
            else:
                yield i
            i += 1

    def operators(self, first: int, last: int) -> list[int]:
        """The binary operators between two tokens that are in no bracket between them."""
        return [i for i in self.outside(first, last) if self.is_binary(i)]

    def arguments(self, i: int) -> list[tuple[int, int]]:
        """First and last tokens of what commas part between the bracket at `i` and its
        partner."""
        end = self.partner.get(i, i)
        found, first, at = [], i + 1, i + 1
        while at < end:
            if self[at] in PAIRS or (self[at] == "<" and at in self.partner):
                at = self.partner.get(at, at)
            elif self[at] == ",":
                found.append((first, at - 1))
                first = at + 1
            at += 1
        return [*found, (first, end - 1)] if first < end else found

    def start_of(self, last: int) -> int:
        """The first token of the names, members, calls and subscripts that end at `last`."""
        at = last
        while at > 0:
            if self[at] in (")", "]", "}") or (self[at] in (">", ">>") and at in self.partner):
                at = self.partner.get(at, at)
                before = self[at - 1]
                is_name = self.kind(at - 1) == "name" and before not in KEYWORDS
                if is_name or before in (")", "]") or (before == ">" and at - 1 in self.partner):
                    at -= 1
                    continue
                return at
            if self[at - 1] in (".", "->"):
                at -= 2
            elif self[at - 1] == "::":
                if self.kind(at - 2) != "name" and self[at - 2] != ">":
                    return at - 1
                at -= 2
            else:
                return at
        return at

    def end_of(self, last: int) -> int:
        """The last token of the members, calls and subscripts that follow on `last`."""
        while True:
            if self[last + 1] in (".", "->"):
                last += 2
            elif self[last + 1] in ("(", "["):
                last = self.partner.get(last + 1, last + 1)
            else:
                return last

    def calls(self) -> Iterator[tuple[int, int, int]]:
        """Name, opening and closing bracket of each call in code; a template's arguments
        may stand before the bracket."""
        for i in range(len(self.tokens)):
            if self.kind(i) != "name" or self[i] in KEYWORDS or not self.code[i]:
                continue
            at = i + 1
            if self[at] == "<" and at in self.partner:
                at = self.partner[at] + 1
            if self[at] == "(" and at in self.partner:
                yield i, at, self.partner[at]
