"""The small language of row filters: ``awake and steps > 0``, ``group in ["a", "b"]``, ``hour(time) == 8``.

Python's own grammar, read with :mod:`ast` and never evaluated: column names, parts of time, literals, comparisons,
``in``, ``and``, ``or``, ``not``. A filter may not refer to a column of states: which rows take part is public,
so it must not depend on the private states.

Missing values follow three-valued logic, as in SQL, polars and Spark: a comparison with one is neither true nor false,
but null, and a row is kept only where the filter is true.
"""

import ast
import operator
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import narwhals as nw

from pufferfish._base.words import did_you_mean
from pufferfish.data._columns import Column, parse_instant
from pufferfish.data.groupings import DATES, MICROS_OF_DAY, PARTS, RANGES
from pufferfish.errors import DataError, ParameterError

_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CONSTANTS = {"true": True, "false": False, "none": None, "null": None}
_HOLDS = {"number": "numbers", "text": "text", "boolean": "true or false", "instant": "times", "nothing": "nothing"}


@dataclass(frozen=True, slots=True)
class Where:
    """A parsed filter."""

    text: str  # what was given
    columns: tuple[str, ...]  # columns it reads
    timed: tuple[str, ...]  # columns of which it reads parts of time
    hours: tuple[str, ...]  # those of which it reads the hour
    _tree: ast.expr

    def refuse_unquoted(self, present: Collection[str]) -> None:
        """Refuse a value without quotes: a name that another is compared with, and that no column has."""
        for node in ast.walk(self._tree):
            for value in node.comparators if isinstance(node, ast.Compare) else ():
                if isinstance(value, ast.Name) and value.id not in _CONSTANTS and value.id not in present:
                    meant = did_you_mean(value.id, present)
                    raise DataError(
                        f"where {self.text!r}: there is no column {value.id!r}; {_quoted(value.id)}.{meant}"
                    )

    def keep(self, columns: Mapping[str, Column], local: Mapping[str, Column] | None = None) -> nw.Expr:
        """Compile to an expression, never null, that is true where a row is kept, given local times of ``timed``."""
        return _Compiler(self.text, columns, local).truth(self._tree).fill_null(False)


_LONGEST = 2000
_MOST_LINKS = 200
_DEEPEST = 50
"""What a filter may have at most: characters, comparisons with what joins them, and nesting. A record brings somebody
else's filter, and engines take minutes for many hundreds of comparisons, or Python ends where they are nested."""


def parse_where(text: Any, private: Collection[str], called: str) -> Where:
    """Parse a filter and name its columns; refuse ``private`` ones, and what they are ``called`` in messages.

    >>> parse_where('awake and col("day no") < 7', ["activity"], "state column").columns
    ('awake', 'day no')
    """
    if not isinstance(text, str):
        raise ParameterError(f"where is {text!r}, expected text such as 'awake and steps > 0'")
    if len(text) > _LONGEST:
        raise DataError(
            f"where has {len(text):,} characters, expected at most {_LONGEST:,}: make a column that marks the rows"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        hint = ""
        if re.search(r"(?<!['\"0-9])[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            hint = ": write a time in quotes, such as time >= '2024-05-01'"
        elif re.search(r"\b(AND|OR|NOT|IN)\b", text):
            hint = ": write and, or, not, in with small letters"
        elif "=" in re.sub("[=!<>]=", "", text):
            hint = ": compare with ==, not ="
        raise DataError(
            f"where {text!r} is not an expression such as 'awake and steps > 0'{hint or f' ({error.args[0]})'}"
        ) from None
    _check_size(tree, text)
    _keep_names_as_written(tree, text.strip())
    columns = tuple(dict.fromkeys(_columns(tree, text)))
    for name in columns:
        if name in private:
            raise DataError(
                f"where {text!r} refers to the {called} {name!r}: a filter is public, so it must not depend on the "
                "private states; filter on another column"
            )
    if not columns:
        raise DataError(f"where {text!r} names no column, expected a condition such as 'awake and steps > 0'")
    parts = [part for node in ast.walk(tree) if (part := _part_of_time(node)) is not None]
    timed = tuple(dict.fromkeys(column for _, column in parts))
    hours = tuple(dict.fromkeys(column for part, column in parts if part == "hour"))
    return Where(text, columns, timed, hours, tree)


def _check_size(tree: ast.expr, text: str) -> None:
    """Refuse too many comparisons, and too deep nesting, before anything goes down the tree."""
    links, level, depth = 0, [tree], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise DataError(f"where {text!r} is nested more than {_DEEPEST} deep: make a column that marks the rows")
        for node in level:
            if isinstance(node, ast.Compare):
                links += len(node.ops)
            elif isinstance(node, ast.BoolOp):
                links += len(node.values) - 1
        level = [child for node in level for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    if links > _MOST_LINKS:
        raise DataError(
            f"where {text!r} has {links:,} comparisons, with the and and or between them, expected at most "
            f"{_MOST_LINKS}: list values as in [1, 2, 3], or mark the rows in a column"
        )


def _keep_names_as_written(tree: ast.expr, text: str) -> None:
    """Give names the code points that they have in the text: Python takes the micro sign for a Greek mu."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = ast.get_source_segment(text, node) or node.id


def _columns(node: ast.expr, text: str) -> Iterator[str]:
    """Walk the tree, naming columns; refuse whatever is not in the language."""
    inner: Sequence[ast.expr] = ()
    if (name := _column_name(node)) is not None:
        yield name
    elif (part := _part_of_time(node)) is not None:
        yield part[1]
    elif isinstance(node, ast.BoolOp):
        inner = node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.UAdd):
        inner = [node.operand]
    elif isinstance(node, ast.Compare):
        inner = [node.left, *node.comparators]
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        for value in node.elts:
            if isinstance(value, ast.Name) and value.id not in _CONSTANTS:
                raise DataError(f"where {text!r}: {value.id!r} is not a value; {_quoted(value.id)}")
            if _literal(value) is _NOT_LITERAL:
                _refuse(text, value)
    elif _literal(node) is _NOT_LITERAL:
        _refuse(text, node)
    for part_of_it in inner:
        yield from _columns(part_of_it, text)


def _quoted(name: str) -> str:
    return f"put text in quotes, such as group == {name!r}"


def _column_name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) if name not in _CONSTANTS:
            return name
        case ast.Call(func=ast.Name(id="col"), args=[ast.Constant(value=str(name))], keywords=[]):
            return name
        case _:
            return None


def _part_of_time(node: ast.AST) -> tuple[str, str] | None:
    """Return the part of time and the column of ``hour(time)``; None for anything else."""
    match node:
        case ast.Call(func=ast.Name(id=part), args=[column], keywords=[]) if part in PARTS:
            name = _column_name(column)
            return None if name is None else (part, name)
        case _:
            return None


_NOT_LITERAL = object()


def _literal(node: ast.expr) -> Any:
    """Value of a literal, or ``_NOT_LITERAL``."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None):
        if not isinstance(node.value, int) or abs(node.value) < 2**63:
            return node.value
        try:
            return float(node.value)
        except OverflowError:
            raise DataError("where has a whole number of more than 308 digits, expected fewer") from None
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return _CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _literal(node.operand)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value if isinstance(node.op, ast.USub) else value
    return _NOT_LITERAL


def _refuse(text: str, node: ast.AST) -> NoReturn:
    try:
        part = ast.unparse(node)
    except (ValueError, RecursionError):
        part = type(node).__name__
    raise DataError(
        f'where {text!r}: {part!r} is not understood; use column names, col("any name"), hour(column), weekday, date, '
        'week, month, numbers, "text", true, false, none, comparisons, in [...], and, or, not'
    )


class _Compiler:
    """Turns a tree into expressions that are null where nobody knows whether they hold, given the types of columns."""

    def __init__(self, text: str, columns: Mapping[str, Column], local: Mapping[str, Column] | None) -> None:
        self._text = text
        self._columns = columns
        self._local = local or {}

    def truth(self, node: ast.expr) -> nw.Expr:
        if isinstance(node, ast.BoolOp):
            joined = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            return _folded(joined, [self.truth(value) for value in node.values])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self.truth(node.operand)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            links = zip(sides, node.ops, sides[1:], strict=False)
            return _folded(operator.and_, [self._compare(*link) for link in links])
        name = _column_name(node)
        if name is None:
            self._refuse(f"{ast.unparse(node)!r} is not a condition")
        column = self._column(name)
        if column.kind not in ("boolean", "nothing"):
            self._refuse(f"{_holds(column)}, so it is not a condition; compare it, e.g. {ast.unparse(node)} == …")
        return _known(column) if column.kind == "boolean" else _unknown(column)

    def _column(self, name: str) -> Column:
        column = self._columns[name]
        if column.kind == "other":
            self._refuse(f"column {name!r} holds neither numbers, text, times nor true or false")
        return column

    def _part(self, part: str, name: str) -> Column:
        """Return a part of the local times in a column: a number, or for dates their midnight."""
        local, shown = self._local[name], f"{part}({name})"
        if part in DATES:
            return Column(shown, "instant", PARTS[part](local.value) * MICROS_OF_DAY, local.missing)
        return Column(shown, "number", PARTS[part](local.value), local.missing)

    def _operand(self, node: ast.expr) -> Any:
        """Return a ``Column``, or the value of a literal."""
        name = _column_name(node)
        if name is not None:
            return self._column(name)
        if (part := _part_of_time(node)) is not None:
            return self._part(*part)
        value = _literal(node)
        if value is not _NOT_LITERAL:
            return value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self._operand(node.operand)
            if isinstance(inner, Column) and inner.kind == "number":
                minus = isinstance(node.op, ast.USub)
                return replace(inner, value=-inner.value if minus else inner.value)
        self._refuse(f"{ast.unparse(node)!r} cannot be compared")

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> nw.Expr:
        if isinstance(op, ast.In | ast.NotIn):
            inside = self._contains(left, right)
            return inside if isinstance(op, ast.In) else ~inside
        a, b = self._operand(left), self._operand(right)
        if not isinstance(a, Column) and not isinstance(b, Column):
            self._refuse(f"{ast.unparse(left)} and {ast.unparse(right)} are both constants")
        if isinstance(op, ast.Is | ast.IsNot) and (a is None or b is None):
            op = ast.Eq() if isinstance(op, ast.Is) else ast.NotEq()
        compare = _ORDER.get(type(op))
        if compare is None:
            self._refuse("'is' compares with none only; use ==")
        equality = isinstance(op, ast.Eq | ast.NotEq)
        if a is None or b is None:
            if not equality:
                self._refuse("none has no order; use == none or != none")
            present: Any = b if a is None else a
            return present.missing if isinstance(op, ast.Eq) else ~present.missing
        column, operand = (a, b) if isinstance(a, Column) else (b, a)
        if equality:
            self._refuse_beyond(left if column is a else right, [operand])
        if column.kind == "nothing" or (isinstance(operand, Column) and operand.kind == "nothing"):
            return _unknown(column)
        if column.kind == "text" and isinstance(operand, str) and not equality and parse_instant(operand) is not None:
            self._refuse(
                f"column {column.name!r} holds text that is not always an ISO time such as '2016-04-13 08:00', so it "
                f"has no order and cannot be compared with {operand!r}: write dates as year-month-day, and leave "
                "cells without a time empty"
                if column.untyped
                else f"column {column.name!r} holds text, which would be compared with {operand!r} letter by letter: "
                "make it a column of times first"
            )
        matched = self._match(column, operand)
        if column.kind == "boolean" and not equality:
            self._refuse(f"{_holds(column)}, which has no order; use == or !=")
        return compare(_known(column), matched) if column is a else compare(matched, _known(column))

    def _match(self, column: Column, operand: Any) -> Any:
        """Value of the other side in the column's terms; refuse what does not compare."""
        if isinstance(operand, Column):
            if operand.kind != column.kind:
                self._refuse(f"{_holds(column)} and {_holds(operand)}, which cannot be compared")
            if operand.zoned != column.zoned:
                self._refuse(f"only one of {column.name!r} and {operand.name!r} has a time zone")
            return _known(operand)
        takes = {"boolean": bool, "number": int | float, "text": str}.get(column.kind)
        if takes and isinstance(operand, takes) and isinstance(operand, bool) == (takes is bool):
            return operand
        if column.kind == "instant" and isinstance(operand, str):
            return self._instant(column, operand)
        self._refuse(f"{_holds(column)}, which cannot be compared with {_show(operand)}")

    def _instant(self, column: Column, text: str) -> int:
        parsed = parse_instant(text)
        if parsed is None:
            self._refuse(f"{_holds(column)}, and {text!r} is not an ISO time such as '2016-04-13 08:00'")
        micros, zoned = parsed
        if zoned != column.zoned:
            fix = "give the time an offset such as +00:00" if column.zoned else "leave out the offset"
            has = "has a time zone" if column.zoned else "has no time zone"
            self._refuse(f"column {column.name!r} {has}: {fix} in {text!r}")
        return micros

    def _contains(self, left: ast.expr, right: ast.expr) -> nw.Expr:
        column = self._operand(left)
        if not isinstance(column, Column) or not isinstance(right, ast.List | ast.Tuple | ast.Set):
            self._refuse("in needs a column on the left and a list such as [1, 2] on the right")
        literals = [_literal(value) for value in right.elts]
        self._refuse_beyond(left, literals)
        values = [self._match(column, value) for value in literals if value is not None and column.kind != "nothing"]
        inside = nw.when(~column.missing).then(nw.lit(False))
        # is_in would want a list of exactly the column's type
        inside = _folded(operator.or_, [inside, *(_known(column) == value for value in values)])
        return inside | column.missing if None in literals else inside

    def _refuse_beyond(self, node: ast.expr, values: Sequence[Any]) -> None:
        """Refuse hours, weekdays and months that there are not: no record has them, so another one was meant."""
        part = _part_of_time(node)
        if part is None or part[0] not in RANGES:
            return
        low, high = RANGES[part[0]]
        for value in values:
            if isinstance(value, int | float) and not low <= value <= high:
                first = " (Monday)" if part[0] == "weekday" else ""
                self._refuse(f"{ast.unparse(node)} is {low}{first} to {high}, and never {_show(value)}")

    def _refuse(self, why: str) -> NoReturn:
        raise DataError(f"where {self._text!r}: {why}")


def _folded(joined: Callable[[nw.Expr, nw.Expr], nw.Expr], parts: Sequence[nw.Expr]) -> nw.Expr:
    """Join expressions in pairs, and these in pairs: engines take much longer where one stands in another."""
    while len(parts) > 1:
        pairs = [joined(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs if len(parts) % 2 == 0 else [*pairs, parts[-1]]
    return parts[0]


def _holds(column: Column) -> str:
    return f"column {column.name!r} holds {_HOLDS[column.kind]}"


def _known(column: Column) -> nw.Expr:
    """Return the values of a column, null where they are missing."""
    return nw.when(~column.missing).then(column.value)


def _unknown(column: Column) -> nw.Expr:
    """Return a condition of which nobody knows whether it holds, in any row."""
    return nw.when(column.missing & ~column.missing).then(nw.lit(False))


def _show(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
