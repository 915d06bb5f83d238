"""Networks in BIF, the Interchange Format for Bayesian Networks (version 0.15): a text becomes tables, or is refused.

Comments (``//`` and ``/* */``), quoted names, properties (skipped), commas or blanks between the items of a list,
``default`` rows and whole tables (the node's own state changes slowest, that of its last parent fastest) are taken.
The reader is this package's own because it must not guess: a text that two readings are possible of, a row that is
missing, given twice, too long, or no distribution, and a number that a double would turn into an impossible 0, are each
refused with their line.

The decimals of a file are rounded, so its rows sum to 1 only nearly. A row is accepted if rounding explains its sum,
and is then divided by it, but never by a sum that is 0.05 or more away from 1. An exact 0 stays an exact 0.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice, product
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.checked import probabilities
from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish._base.view import MOST_COLUMNS, MOST_ROWS, Grid, Shown, View
from pufferfish._base.words import did_you_mean
from pufferfish.errors import ModelError, RecordError, printable
from pufferfish.theta.states import listed_labels, listed_names, state_label

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
    whole: dict[str, list[Token]] = field(default_factory=dict[str, list[Token]])  # behind ``table`` and ``default``
    rows: dict[tuple[str, ...], list[Token]] = field(default_factory=dict[tuple[str, ...], list[Token]])


class Syntax:
    """A BIF text, read into ``variables`` and ``blocks`` by the names of nodes."""

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
        line, position = 1, 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                self.fail("a quotation mark is not closed on its line", line)
            kind = match.lastgroup or ""
            if kind == "word" and match[0].startswith("/*"):
                self.fail("a comment that begins with /* never ends", line)
            if kind != "skip":
                yield Token(kind, match[kind], line)
            line += match[0].count("\n")
            position = match.end()
        yield Token("end", "the end of the file", line)

    # Single tokens

    def _take(self) -> Token:
        token = self._next
        self._next = next(self._tokens, token)
        return token

    def _taken(self, text: str, kind: str = "mark") -> bool:
        matches = (self._next.kind, self._next.text) == (kind, text)
        if matches:
            self._take()
        return matches

    def _expect(self, text: str, kind: str = "mark") -> None:
        if not self._taken(text, kind):
            self.fail(f"found {self._next}, expected {text!r}; is something missing before it?", self._next.line)

    def _name(self, expected: str) -> Token:
        token = self._next
        if token.kind not in ("word", "quoted") or not token.text:
            self.fail(f"found {token}, expected {expected}", token.line)
        if token.kind == "word" and re.search(r"//|/\*|\*/", token.text):
            self.fail(f"{token} may be a name or hold a comment; put a blank before a comment", token.line)
        return self._take()

    def _list(self, close: str, expected: str) -> list[Token]:
        """Return the items up to a closing mark."""
        items: list[Token] = []
        commas = 0
        while not items or not self._taken(close):
            commas += bool(items) and self._taken(",")
            items.append(self._name(expected))
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
                self.fail(f"variable {name} names the state {state!r} twice: give each its own name", name.line)
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


# -- Conditional probability tables ----------------------------------------------------------------------------------

TOLERANCE = 1e-9  # how far a row may be from summing to 1; rows are then divided by their sum


@dataclass(frozen=True, slots=True, eq=False, init=False)
class CPT(Shown, ReadOnly):
    """Conditional probability table of one node; the network checks the rows and divides each by its sum.

    Parameters
    ----------
    states : sequence
        Distinct names of the node's k states.
    table : array_like, shape (k_parent1, …, k_parentm, k)
        ``table[y1, …, ym, x]`` = P(node = x | parents = y1 … ym): one axis for every parent, in the order of
        ``parents``, and the node's own states last. A node without parents has one row. Another shape is a
        :class:`ModelError`.
    parents : sequence, optional
        Names of the parent nodes.

    Examples
    --------
    >>> CPT(["no", "yes"], [[0.9, 0.1], [0.2, 0.8]], parents=["rain"])
    CPT(no, yes | rain)
    """

    states: tuple[str, ...]
    table: NDArray[np.float64]
    parents: tuple[Any, ...]

    def __init__(self, states: Sequence[Any], table: ArrayLike, parents: Sequence[Any] = ()) -> None:
        names = listed_labels(states, "states", '["no", "yes"]')
        if not names:
            raise ModelError("states is empty: a node has at least one state")
        above = listed_names(parents, "parents", '["rain"]')
        values = probabilities(table, "table")
        if values.ndim != len(above) + 1 or values.shape[-1] != len(names):
            axes = "".join(f"number of states of {name}, " for name in above)
            raise ModelError(
                f"table has shape {values.shape}, expected ({axes}{len(names)}): one axis for every parent and the "
                f"node's own {len(names)} states last"
            )
        self._keep(states=names, table=read_only(values), parents=above)

    def __repr__(self) -> str:
        condition = f" | {', '.join(str(p) for p in self.parents)}" if self.parents else ""
        return printable(f"CPT({', '.join(self.states)}{condition})")

    def _view(self) -> View:
        if not self.parents:
            rows = [[state, float(p)] for state, p in zip(self.states, self.table, strict=True)]
            return View("Law of a node without parents", None, [Grid("Probabilities", ["state", "probability"], rows)])
        places = list(islice(product(*map(range, self.table.shape[:-1])), MOST_ROWS))
        rows = [[*place, *(float(p) for p in self.table[place][:MOST_COLUMNS])] for place in places]
        names = [*map(state_label, self.parents), *self.states[:MOST_COLUMNS]]
        size = self.table.size // len(self.states)
        caption = "Probability of each state (column); of the parents the numbers of their states are given, from 0"
        grid = Grid(caption, names, rows, heads=len(self.parents), wide=len(self.states), long=size)
        return View(f"Law of a node given {', '.join(map(state_label, self.parents))}", None, [grid])


# -- Networks in BIF, the Interchange Format for Bayesian Networks (version 0.15) ------------------------------------

_NUMBER = re.compile(r"(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][-+]?\d{1,4})?", re.ASCII)
_DUST = Decimal(TOLERANCE)
_MOST_OFF = Decimal("0.05")  # rows farther from 1 are refused: so few digits do not say what the probabilities are

_MOST_ENTRIES = 5_000_000
_MOST_PARENTS = 31  # numpy has had room for 32 axes


def parse_bif(text: str, source: str) -> dict[str, CPT]:
    """Return the table of every node of a BIF text, in the order of its variables."""
    syntax = Syntax(text, source)
    for node, block in syntax.blocks.items():
        for name in (node, *block.parents):
            if name not in syntax.variables:
                hint = did_you_mean(name, syntax.variables)
                syntax.fail(f"{name!r} is not a variable of this file.{hint}", block.line)
    return {node: _cpt(syntax, node) for node in syntax.variables}


BIF_MARK = "// written by pufferfish"  # how the text of a network begins that was written here


def bif_text(cpts: Mapping[str, CPT], comment: str = "") -> str:
    """Return networks' tables as a BIF text, all digits written; :func:`parse_bif` reads the same tables.

    >>> print(bif_text({"rain": CPT(["no", "yes"], [0.75, 0.25])}, "days"))
    // written by pufferfish: days
    network pufferfish {
    }
    variable rain {
      type discrete [ 2 ] { no, yes };
    }
    probability ( rain ) {
      table 0.75, 0.25;
    }
    <BLANKLINE>
    """
    head = f"{BIF_MARK}: {' '.join(comment.split())}" if comment else BIF_MARK
    lines = [head, "network pufferfish {", "}"]
    for node, cpt in cpts.items():
        states = ", ".join(map(_quoted, cpt.states))
        lines += [f"variable {_quoted(node)} {{", f"  type discrete [ {len(cpt.states)} ] {{ {states} }};", "}"]
    for node, cpt in cpts.items():
        given = f" | {', '.join(map(_quoted, cpt.parents))}" if cpt.parents else ""
        lines.append(f"probability ( {_quoted(node)}{given} ) {{")
        above = [cpts[parent].states for parent in cpt.parents]
        for key, row in zip(product(*above), cpt.table.reshape(-1, len(cpt.states)).tolist(), strict=True):
            where = f"({', '.join(map(_quoted, key))})" if key else "table"
            lines.append(f"  {where} {', '.join(map(repr, row))};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    """Return a name as BIF has it; what is one word to :class:`Syntax` stands bare, since few programs read quotes."""
    if '"' in name or "\n" in name or not name:
        raise RecordError(
            f"{name!r} cannot be written as BIF, whose names have no quotation marks and line breaks: use .json"
        )
    bare = re.fullmatch(r'[^\s{}()\[\],;|"]+', name) and not re.search(r"//|/\*|\*/", name)
    return name if bare else f'"{name}"'


def _cpt(syntax: Syntax, node: str) -> CPT:
    if node not in syntax.blocks:
        syntax.fail(f"variable {node!r} has no probability block", syntax.variables[node].line)
    block = syntax.blocks[node]
    states = syntax.variables[node].states
    above = [syntax.variables[parent].states for parent in block.parents]
    entries = math.prod((len(states), *map(len, above)))
    if entries > _MOST_ENTRIES or len(above) > _MOST_PARENTS:
        syntax.fail(
            f"the table of node {node!r} has {len(above)} parents and {entries} entries; at most {_MOST_PARENTS} and "
            f"{_MOST_ENTRIES} are read",
            block.line,
        )
    for key, row in block.rows.items():
        if len(key) != len(above):
            syntax.fail(
                f"({', '.join(key)}) are {len(key)} states, node {node!r} has {len(above)} parents", row[0].line
            )
        for parent, known, state in zip(block.parents, above, key, strict=True):
            if state not in known:
                hint = did_you_mean(state, known)
                syntax.fail(f"{state!r} is no state of {parent!r}.{hint} Its states: {', '.join(known)}", row[0].line)
    table = block.whole.get("table")
    if table is not None and len(table) != entries:
        syntax.fail(f"the table of node {node!r} has {len(table)} numbers, expected {entries}", table[0].line)
    rows: list[list[float]] = []
    for i, key in enumerate(product(*above)):
        values = ", ".join(f"{parent} = {state}" for parent, state in zip(block.parents, key, strict=True))
        row_name = f"the table of node {node!r}" + (f" where {values}" if values else "")
        rows.append(_law(syntax, _numbers(syntax, block, key, i, entries // len(states), row_name), states, row_name))
    return CPT(states, np.array(rows).reshape((*map(len, above), len(states))), block.parents)


def _numbers(syntax: Syntax, block: Block, key: tuple[str, ...], place: int, rows: int, row_name: str) -> list[Token]:
    if "table" in block.whole:
        return block.whole["table"][place::rows]
    tokens = block.rows.get(key, block.whole.get("default"))
    if tokens is None:
        syntax.fail(f"{row_name} is missing: the block that begins here has no such row, and no default", block.line)
    return tokens


def _law(syntax: Syntax, tokens: Sequence[Token], states: Sequence[str], row_name: str) -> list[float]:
    if len(tokens) != len(states):
        syntax.fail(
            f"{row_name} has {len(tokens)} numbers, expected {len(states)}: {', '.join(states)}", tokens[0].line
        )
    row: list[Decimal] = []
    for token, state in zip(tokens, states, strict=True):
        number = Decimal(token.text) if token.kind == "word" and _NUMBER.fullmatch(token.text) else None
        if number is None or number > 1:
            syntax.fail(f"{row_name} gives {state!r} {token}, expected a number between 0 and 1", token.line)
        if number and not float(number):
            syntax.fail(
                f"{row_name} gives {state!r} {token}, too small for a floating-point number: write 0 if it is "
                "impossible",
                token.line,
            )
        row.append(number)
    off, slack = abs(sum(row) - 1), min(_slack(row), _MOST_OFF)
    # What is off by exactly the slack would need every number to have been half-way between two printed ones.
    if off >= slack and off > _DUST:
        syntax.fail(
            f"{row_name} sums to {float(sum(row)):.12g}, expected 1: rounding to the digits printed explains a "
            f"difference below {slack:.2g}. Rows run over {', '.join(states)}; correct a digit, or write more of them.",
            tokens[0].line,
        )
    total = math.fsum(map(float, row))
    return [float(number) / total for number in row]


def _slack(row: Sequence[Decimal]) -> Decimal:
    """Return how far a row may be from summing to 1 if its numbers were rounded as they are printed.

    Either all were rounded to as many decimals as the longest has, or all to as many significant digits, and shorter
    ones lost zeros at their ends: each may be off by half a unit of its last digit, but for 0, which is meant. One
    digit explains nothing: 0.5 and 0.6 is a slip. 1 can only be rounded up, so it counts as the digits below it.
    """
    nonzero = [number for number in row if number]
    decimals = max(2, *(-int(number.as_tuple().exponent) for number in row))
    digits = max(2, *(len(number.as_tuple().digits) for number in row))
    fixed = len(nonzero) * Decimal(5).scaleb(-decimals - 1)
    significant = sum(Decimal(5).scaleb(min(number.adjusted(), -1) - digits) for number in nonzero)
    return max(fixed, Decimal(significant))
