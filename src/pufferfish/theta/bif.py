"""The syntax of BIF, the Interchange Format for Bayesian Networks (version 0.15): from a text to its blocks.

Taken as the format has them: comments (``//`` and ``/* */``), quoted names, properties (skipped), commas or blanks
between the items of a list. A text that two readings are possible of is refused with the number of the line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from pufferfish.errors import RecordError

__all__ = ["Block", "Syntax", "Token", "Variable"]

_TOKEN = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|"(?P<quoted>[^"\n]*)"|(?P<mark>[{}()\[\],;|])|(?P<word>[^\s{}()\[\],;|"]+)', re.S
)


class Token(NamedTuple):
    """A mark, a word, a quoted name, or the end of the file."""

    kind: str
    text: str
    line: int

    def __str__(self) -> str:
        text = self.text if len(self.text) <= 40 else self.text[:40] + "…"
        return text if self.kind == "end" else repr(text)


class Variable(NamedTuple):
    """A node and its states."""

    line: int
    states: list[str]


@dataclass(slots=True)
class Block:
    """What stands in the probability block of a node: a whole table, or rows by the states of its parents."""

    line: int
    parents: list[str]
    whole: dict[str, list[Token]] = field(default_factory=dict[str, list[Token]])
    """The numbers behind ``table`` and ``default``, where they stand."""
    rows: dict[tuple[str, ...], list[Token]] = field(default_factory=dict[tuple[str, ...], list[Token]])


class Syntax:
    """A BIF text, read into ``variables`` and ``blocks`` by the names of nodes.

    Raises
    ------
    RecordError
        If it is no BIF; the line names the source and its line.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.variables: dict[str, Variable] = {}
        self.blocks: dict[str, Block] = {}
        self._tokens = self._split(text)
        self._next = next(self._tokens)
        self._network()

    def fail(self, message: str, line: int) -> NoReturn:
        """Refuse the text for what stands in a line."""
        raise RecordError(f"{self.source}, line {line}: {message}")

    def _split(self, text: str) -> Iterator[Token]:
        line, at = 1, 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                self.fail("a quotation mark is not closed on its line", line)
            kind = found.lastgroup or ""
            if kind == "word" and found[0].startswith("/*"):
                self.fail("a comment that begins with /* never ends", line)
            if kind != "skip":
                yield Token(kind, found[kind], line)
            line += found[0].count("\n")
            at = found.end()
        yield Token("end", "the end of the file", line)

    # Single tokens

    def _take(self) -> Token:
        token = self._next
        self._next = next(self._tokens, token)
        return token

    def _taken(self, text: str, kind: str = "mark") -> bool:
        found = (self._next.kind, self._next.text) == (kind, text)
        if found:
            self._take()
        return found

    def _expect(self, text: str, kind: str = "mark") -> None:
        if not self._taken(text, kind):
            self.fail(f"found {self._next}, expected {text!r}; is something missing before it?", self._next.line)

    def _name(self, what: str) -> Token:
        token = self._next
        if token.kind not in ("word", "quoted") or not token.text:
            self.fail(f"found {token}, expected {what}", token.line)
        if token.kind == "word" and re.search(r"//|/\*|\*/", token.text):
            self.fail(f"{token} may be a name or hold a comment; put a blank before a comment", token.line)
        return self._take()

    def _list(self, close: str, what: str) -> list[Token]:
        """Return the items up to a closing mark."""
        items: list[Token] = []
        commas = 0
        while not items or not self._taken(close):
            commas += bool(items) and self._taken(",")
            items.append(self._name(what))
        # "very low, high" would otherwise be three names.
        if commas not in (0, len(items) - 1):
            self.fail(
                f"a list of {len(items)} items with {commas} commas; separate all of them by commas or none, and put "
                "names with blanks in quotation marks",
                items[0].line,
            )
        return items

    # The grammar

    def _network(self) -> None:
        self._expect("network", "word")
        if self._next.kind != "mark":
            self._name("the network's name")
        self._expect("{")
        while not self._taken("}"):
            self._property()
        while self._next.kind != "end":
            token = self._take()
            if (token.kind, token.text) == ("word", "variable"):
                self._variable()
            elif (token.kind, token.text) == ("word", "probability"):
                self._probability(token.line)
            else:
                self.fail(f'found {token}, expected "variable" or "probability"', token.line)
        if not self.variables:
            self.fail("the file ends without a variable", self._next.line)

    def _property(self) -> None:
        line = self._next.line
        if not self._taken("property", "word"):
            self.fail(f"found {self._next}, expected '}}' or what belongs before it", line)
        while not self._taken(";"):
            # Without its semicolon a property would swallow the statement below it.
            if self._next.line != line or self._next.kind == "end":
                self.fail("the property is not closed by ';' on its line", line)
            self._take()

    def _variable(self) -> None:
        name = self._name("a variable's name")
        if name.text in self.variables:
            first = self.variables[name.text].line
            self.fail(f"variable {name} is declared again (first in line {first})", name.line)
        self._expect("{")
        states: list[str] = []
        while not self._taken("}"):
            if not self._taken("type", "word"):
                self._property()
            elif states:
                self.fail(f"variable {name} has two types", name.line)
            else:
                states = self._states(name)
        if not states:
            self.fail(f'variable {name} has no "type discrete [k] {{ … }};"', name.line)
        self.variables[name.text] = Variable(name.line, states)

    def _states(self, name: Token) -> list[str]:
        if not self._taken("discrete", "word"):
            self.fail(f"variable {name} is {self._next}; only discrete variables can be read", self._next.line)
        self._expect("[")
        count = self._name("the number of states").text
        self._expect("]")
        self._expect("{")
        states = [state.text for state in self._list("}", "the name of a state")]
        self._expect(";")
        if count != str(len(states)):
            self.fail(f"variable {name} is declared with {count} states and names {len(states)}", name.line)
        for i, state in enumerate(states):
            if state in states[:i]:
                self.fail(f"variable {name} names the state {state!r} twice; names are distinct", name.line)
        return states

    def _probability(self, line: int) -> None:
        self._expect("(")
        name = self._name("a variable's name")
        parents: list[str] = []
        if self._taken("|"):
            parents = [parent.text for parent in self._list(")", "the name of a parent")]
        elif not self._taken(")"):
            self.fail(f"found {self._next} behind {name}, expected '|' and its parents, or ')'", self._next.line)
        if name.text in self.blocks:
            self.fail(f"a second table of node {name} (the first is in line {self.blocks[name.text].line})", line)
        for i, parent in enumerate(parents):
            if parent in parents[:i]:
                self.fail(f"node {name} has the parent {parent!r} twice", line)
        block = self.blocks[name.text] = Block(line, parents)
        self._expect("{")
        while not self._taken("}"):
            token = self._next
            if self._taken("("):
                key = tuple(state.text for state in self._list(")", "the state of a parent"))
                if key in block.rows:
                    self.fail(f"a second row of node {name} for ({', '.join(key)})", token.line)
                block.rows[key] = self._list(";", "a probability")
            elif self._taken("table", "word") or self._taken("default", "word"):
                if token.text in block.whole:
                    self.fail(f'node {name} has "{token.text}" twice', token.line)
                block.whole[token.text] = self._list(";", "a probability")
            else:
                self._property()
        if "table" in block.whole and (block.rows or "default" in block.whole):
            self.fail(f'node {name} has a "table" and rows of its own; give one or the other', line)
