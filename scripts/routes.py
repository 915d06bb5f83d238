"""How far one thing walks through the files of the package, measured while it runs.

    python scripts/routes.py [--list]

Three walks, each of a small table or model in a temporary folder:

- **ε**: `pufferfish release TABLE … --epsilon ε`, from the command line to the noise that is drawn;
- **table**: `read_sequences(table.csv, …)`, from the file to the counts;
- **Θ**: `read_model(model.json)` and a calibration, from the file to the proof.

A *room* is a file of the package. A *move* is a call into another file than the last one of the package on the stack
(libraries between the two do not count), with the thing among its arguments; resuming a generator is none. The thing is
among the arguments if one of them is it, or is a dict, list, tuple, set or object of this package (its fields, slots
and attributes) that holds it one level deep. What the thing is changes its form on the way:

- ε is its text or any number equal to it; 0.8125 is used, which nothing else in the walk happens to be;
- a table is its path, any frame of polars or narwhals that its rows, or what was counted of them, stand in, an
  expression of their columns, or the type of one;
- Θ is its path, a Markov chain, a class of them, or an array equal to its transition matrix.

A *return* is a move into a file that was entered before; many a return is a second answer to one question. ``--list``
names the files with the most of them. Walks
have models of their own, so that none finds what another one has computed.
"""

import argparse
import contextlib
import io
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from pathlib import Path
from types import FrameType
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

import pufferfish as pf
from pufferfish import cli
from pufferfish.theta.chain_class import ChainClass

PACKAGE = str(Path(pf.__file__).parent) + os.sep
EPSILON = 0.8125
MATRIX, OTHER = np.array([[0.75, 0.25], [0.375, 0.625]]), np.array([[0.875, 0.125], [0.25, 0.75]])
READING = {"subject": "id", "time": "minute", "max_gap": "1min", "where": "age >= 18"}


class Arrived(BaseException):
    """The walk is over."""


@dataclass
class Walk:
    """What the hook sees of one walk.

    Parameters
    ----------
    is_thing : callable
        Whether a value is what walks.
    last : str
        Name of the function at which the walk ends, if it ends before its program does.
    """

    is_thing: Callable[[Any], bool]
    last: str = ""
    entered: set[str] = field(default_factory=set)
    moves: Counter[str] = field(default_factory=Counter)
    returns: Counter[str] = field(default_factory=Counter)
    running: set[FrameType] = field(default_factory=set)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """See a call: the hook of ``sys.setprofile``."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_flags & CO_GENERATOR:
            if frame in self.running:
                return
            self.running.add(frame)
        if code.co_name == self.last:
            raise Arrived
        before = frame.f_back
        while before is not None and not before.f_code.co_filename.startswith(PACKAGE):
            before = before.f_back
        here = code.co_filename
        if before is not None and before.f_code.co_filename == here:
            return
        if any(self.holds(value) for value in _arguments(frame)):
            room = here.removeprefix(PACKAGE)
            self.moves[room] += 1
            self.returns[room] += room in self.entered
            self.entered.add(room)

    def holds(self, value: Any) -> bool:
        """Whether a value is the thing, or holds it one level deep."""
        return self.is_thing(value) or any(self.is_thing(part) for part in _parts(value))


def _arguments(frame: FrameType) -> list[Any]:
    code = frame.f_code
    stars = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]
    found = frame.f_locals
    return [found[name] for name in names if name in found]


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    kind = type(value)
    if kind.__module__.partition(".")[0] != "pufferfish":
        return []
    slots = [name for each in kind.__mro__ for name in getattr(each, "__slots__", ()) if isinstance(name, str)]
    held = [_slot(value, name) for name in (*slots, *getattr(kind, "__struct_fields__", ()))]
    return [*held, *getattr(value, "__dict__", {}).values()]


def _slot(value: Any, name: str) -> Any:
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None


def is_epsilon(value: Any) -> bool:
    """Whether a value is ε."""
    return value == str(EPSILON) if isinstance(value, str) else isinstance(value, float) and value == EPSILON


def is_table(path: Path) -> Callable[[Any], bool]:
    """Return whether a value is the table of a file."""
    held = (
        nw.LazyFrame,
        nw.DataFrame,
        nw.Expr,
        nw.Schema,
        nw.dtypes.DType,
        pl.LazyFrame,
        pl.DataFrame,
        pl.Expr,
        pl.DataType,
    )
    return lambda value: isinstance(value, held) or (isinstance(value, str | Path) and str(value) == str(path))


def is_theta(path: Path) -> Callable[[Any], bool]:
    """Return whether a value is the Θ of a file."""

    def is_it(value: Any) -> bool:
        if isinstance(value, np.ndarray):
            return value.shape[-2:] == MATRIX.shape and bool((value == MATRIX).all())
        return isinstance(value, pf.MarkovChain | ChainClass) or (
            isinstance(value, str | Path) and str(value) == str(path)
        )

    return is_it


def write_table(folder: Path) -> Path:
    """Write minutes of three people, with some gaps and missing states."""
    rng, rows = np.random.default_rng(1), ["id,minute,age,activity"]
    for who in ("ann", "bob", "cyd"):
        state, minute = 0, 0
        for _ in range(300):
            minute += 1 if rng.random() < 0.98 else 4
            state = int(rng.random() > MATRIX[state][0])
            time = f"2026-03-01 {minute // 60:02}:{minute % 60:02}:00"
            rows.append(f"{who},{time},{30},{('rest', 'walk')[state] if rng.random() < 0.99 else ''}")
    table = folder / "table.csv"
    table.write_text("\n".join(rows) + "\n")
    return table


def write_model(matrix: NDArray[np.float64], model: Path) -> Path:
    """Write a model of one chain of minutes."""
    pf.write_model(pf.Model(theta=pf.MarkovChain(matrix, states=["rest", "walk"]), step="1min"), model)
    return model


def walks(folder: Path) -> dict[str, Walk]:
    """Make the three walks, and return what was seen of each."""
    table = write_table(folder)
    model, other = write_model(MATRIX, folder / "model.json"), write_model(OTHER, folder / "other.json")
    options = [f"--{name.replace('_', '-')}={value}" for name, value in READING.items()]
    line = ["release", str(table), "--state=activity", *options, f"--model={other}", "--query=histogram"]

    def release() -> None:
        cli.main([*line, f"--epsilon={EPSILON}", f"--output={folder / 'release.json'}"])

    def read() -> None:
        pf.read_sequences(str(table), "activity", **READING)

    def prove() -> None:
        theta = pf.read_model(str(model))
        pf.LeakagePropagation(theta, length=[300, 400]).calibrate(pf.Histogram(), 1.0)

    ways = {
        "ε: command line → noise": (release, Walk(is_epsilon, last="discrete_laplace_noise")),
        "one CSV → counts": (read, Walk(is_table(table))),
        "Θ: model.json → proof": (prove, Walk(is_theta(model))),
    }
    for run, walk in ways.values():
        sys.setprofile(walk)
        try:
            _made(run)
        except Arrived:
            pass
        finally:
            sys.setprofile(None)
    return {name: walk for name, (_, walk) in ways.items()}


def _made(run: Callable[[], None]) -> None:
    """Run a walk without what it prints; a command that fails is an error."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            run()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(said.getvalue()) from end


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How far ε, a table and Θ walk through the files of the package.")
    parser.add_argument("--list", action="store_true", help="name the files with the most returns too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen = walks(Path(folder))
    print("| walk, at run time | files | moves | returns |\n|---|---|---|---|")
    for name, walk in seen.items():
        print(f"| {name} | {len(walk.entered)} | {walk.moves.total()} | {walk.returns.total()} |")
    if asked.list:
        for name, walk in seen.items():
            print(f"\n{name}")
            for room, n in walk.returns.most_common(25):
                print(f"  {n:4} {room}")


if __name__ == "__main__":
    main()
