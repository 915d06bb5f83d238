"""Networks in BIF, the Interchange Format for Bayesian Networks (version 0.15): a text becomes tables, or is refused.

The reader is this package's own because what it must not do is guess: a row that is missing, given twice, too long, or
no distribution, and a number that a double would turn into an impossible 0, are each refused with their line. The
format's ``default`` rows are taken, and whole tables, in which the node's own state changes slowest and that of its
last parent fastest.

The decimals of a file are rounded, so its rows sum to 1 only nearly. A row is accepted if rounding explains its sum,
and is then divided by it, but never by a sum that is 0.05 or more away from 1. An exact 0 stays an exact 0.
"""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import product

import numpy as np

from pufferfish._base.words import did_you_mean
from pufferfish.theta.bif import Block, Syntax, Token
from pufferfish.theta.cpt import CPT, TOLERANCE

__all__ = ["parse_bif"]

_NUMBER = re.compile(r"(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][-+]?\d{1,4})?", re.ASCII)
_DUST = Decimal(TOLERANCE)
_MOST_OFF = Decimal("0.05")
"""Rows that are farther from 1 are refused: so few digits do not say what the probabilities are."""

_MOST_ENTRIES = 5_000_000
_MOST_PARENTS = 31  # numpy has had room for 32 axes


def parse_bif(text: str, source: str) -> dict[str, CPT]:
    """Return the table of every node of a BIF text, in the order of its variables.

    Raises
    ------
    RecordError
        If it is no BIF, or describes no network of discrete variables; the message names the source and the line.
    """
    syntax = Syntax(text, source)
    for node, block in syntax.blocks.items():
        for name in (node, *block.parents):
            if name not in syntax.variables:
                hint = did_you_mean(name, syntax.variables)
                syntax.fail(f"{name!r} is no variable of this file.{hint}", block.line)
    return {node: _cpt(syntax, node) for node in syntax.variables}


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
        what = f"the table of node {node!r}" + (f" where {values}" if values else "")
        rows.append(_law(syntax, _numbers(syntax, block, key, i, entries // len(states), what), states, what))
    return CPT(states, np.array(rows).reshape((*map(len, above), len(states))), block.parents)


def _numbers(syntax: Syntax, block: Block, key: tuple[str, ...], place: int, rows: int, what: str) -> list[Token]:
    """Return the numbers of one row as they stand in the text."""
    if "table" in block.whole:
        return block.whole["table"][place::rows]
    found = block.rows.get(key, block.whole.get("default"))
    if found is None:
        syntax.fail(f"{what} is missing: the block that begins here has no such row, and no default", block.line)
    return found


def _law(syntax: Syntax, tokens: Sequence[Token], states: Sequence[str], what: str) -> list[float]:
    """Return a row as a distribution."""
    if len(tokens) != len(states):
        syntax.fail(f"{what} has {len(tokens)} numbers, expected {len(states)}: {', '.join(states)}", tokens[0].line)
    row: list[Decimal] = []
    for token, state in zip(tokens, states, strict=True):
        number = Decimal(token.text) if token.kind == "word" and _NUMBER.fullmatch(token.text) else None
        if number is None or number > 1:
            syntax.fail(f"{what} gives {state!r} {token}, expected a number between 0 and 1", token.line)
        if number and not float(number):
            syntax.fail(f"{what} gives {state!r} {token}, less than any double: write 0 if impossible", token.line)
        row.append(number)
    off, slack = abs(sum(row) - 1), min(_slack(row), _MOST_OFF)
    # What is off by exactly the slack would need every number to have been half-way between two printed ones.
    if off >= slack and off > _DUST:
        syntax.fail(
            f"{what} sums to {float(sum(row)):.12g}, expected 1: rounding to the digits printed explains a difference "
            f"below {slack:.2g}. Rows run over {', '.join(states)}; correct a digit, or write more of them.",
            tokens[0].line,
        )
    total = math.fsum(map(float, row))
    return [float(number) / total for number in row]


def _slack(row: Sequence[Decimal]) -> Decimal:
    """Return how far a row may be from summing to 1 if its numbers were rounded as they are printed.

    Either all were rounded to as many decimals as the longest has, or all to as many significant digits; the shorter
    ones lost zeros at their ends. Then each may be off by half a unit of its last digit, but for 0, which is meant.
    One digit explains nothing: 0.5 and 0.6 is a slip. 1 can only be rounded up, so it counts as the digits below it.
    """
    given = [number for number in row if number]
    decimals = max(2, *(-int(number.as_tuple().exponent) for number in row))
    digits = max(2, *(len(number.as_tuple().digits) for number in row))
    fixed = len(given) * Decimal(5).scaleb(-decimals - 1)
    significant = sum(Decimal(5).scaleb(min(number.adjusted(), -1) - digits) for number in given)
    return max(fixed, Decimal(significant))
