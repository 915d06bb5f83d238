"""The sample of blocks by which a table is known again (:mod:`~pufferfish.data.fingerprint`), on any engine.

A block is told by the time that it begins at, a multiple of its width. Engines digest times, which are whole numbers,
by arithmetic that all of them do alike: with the prime P = 2^31 - 1, h(x) = ((a x + c) mod P)^2 mod P. They keep the
blocks with a small h, and add up h of the times of each state in a block: a sum does not depend on the order of rows.
Names of subjects and states are digested here, where they come with the counts.

Kept are at most 128 subjects (those whose names have the smallest digests), and of each about m to 2m blocks, m being
1,024 / subjects, at least 8: less with every record and subject, so that batches can forget what is too much, and a
part of a table keeps all that the whole keeps of it.
"""

import hashlib
import math
from bisect import insort
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Any

import narwhals as nw

from pufferfish.data._chains import STATE, SUBJECT, TIME, Frame, Layout, counted
from pufferfish.data.fingerprint import MIXED, Blocks, name_digest
from pufferfish.theta.states import state_label

_RECORDS, _SUBJECTS, _BLOCKS, _EACH, _MOST = 16, 128, 1024, 8, 4096
"""Records of a block; subjects that are kept; blocks of all of them, and of each one at least; blocks at most."""

_PRIME, _FACTOR, _SHIFT = 2**31 - 1, 1_103_515_245, 907_633_385
_FINE = 2**20  # into so many parts at least the width of a block is divided, where times are no whole numbers

_BLOCK, _PLACE, _HASH, _COUNT = "__pf_block", "__pf_place", "__pf_hash", "__pf_n"


class Sample:
    """Blocks of a table, collected from batches: blocks of times if ``timed``, otherwise of the numbers of rows."""

    def __init__(self, layout: Layout, *, timed: bool) -> None:
        self._layout = layout
        self._timed = timed
        self._width: float | None = None if timed else float(_RECORDS)
        self._complete = True
        self._chosen: list[tuple[int, str]] = []
        self._records: dict[str, int] = {}
        self._left_out = False
        self._found: dict[str, dict[int, dict[Any, list[int]]]] = {}

    def fits(self, step: float | None) -> bool:
        """Whether all rows were looked at in blocks that go with a step between records."""
        width = _width(step)
        return not self._timed or width is None or (self._complete and self._width == width)

    def add(self, linked: Frame, step: float | None) -> None:
        """Look at linked rows, all of them or those of a batch, given the time between records."""
        self._width = self._width or _width(step)
        if self._width is None:
            self._complete = False
            return
        rows = self._layout.observed(linked, timed=self._timed)
        counts = counted(rows, [SUBJECT]).collect()
        here = {state_label(subject): (subject, int(n)) for subject, n in counts.iter_rows()}
        for label, (_, n) in here.items():
            self._count(label, n)
        kept = {label: subject for label, (subject, _) in here.items() if label in self._records}
        if not kept:
            return
        placed = _placed(rows, self._width).filter(self._near(kept))
        keys = [SUBJECT, _BLOCK, STATE]
        blocks = placed.group_by(keys).agg(nw.len().alias(_COUNT), nw.col(_PLACE).sum())
        for who, block, state, n, places in blocks.select(*keys, _COUNT, _PLACE).collect().iter_rows():
            held = self._found.setdefault(state_label(who), {}).setdefault(int(block), {}).setdefault(state, [0, 0])
            held[0] += int(n)
            held[1] += int(places)
        for label, found in self._found.items():  # forget the blocks that are no longer kept
            limit = self._limit(label)
            self._found[label] = {block: held for block, held in found.items() if _hashed(block) < limit}

    def blocks(self, labels: Callable[[set[Any]], Mapping[Any, str]]) -> dict[str, Blocks]:
        """Return of each kept subject the digests of its blocks, given a function that names what cells hold."""
        kept, halvings = self._found, 0
        while sum(map(len, kept.values())) > _MOST:  # of records far apart each one is a block
            halvings += 1
            kept = {
                who: {block: held for block, held in blocks.items() if _hashed(block) < self._limit(who) >> halvings}
                for who, blocks in self._found.items()
            }
        named = labels({state for blocks in kept.values() for held in blocks.values() for state in held})
        return {
            who: {block: _digest(held, named) for block, held in blocks.items()}
            for who, blocks in kept.items()
            if blocks
        }

    def _count(self, label: str, n: int) -> None:
        """Count the records of a subject, if its name is among those with the smallest digests."""
        if label not in self._records:
            entry = (name_digest(label), label)
            if len(self._chosen) == _SUBJECTS:
                self._left_out = True
                if entry > self._chosen[-1]:
                    return
                _, last = self._chosen.pop()
                del self._records[last]
                self._found.pop(last, None)
            insort(self._chosen, entry)
            self._records[label] = 0
        self._records[label] += n

    def _limit(self, label: str) -> int:
        """Return what the digest of a block of a subject is below, if the block is kept."""
        share = max(_EACH, _BLOCKS // len(self._chosen))
        return _PRIME >> max(0, (self._records[label] // (_RECORDS * share)).bit_length() - 1)

    def _near(self, here: Mapping[str, Any]) -> nw.Expr:
        """Return what the rows of blocks that are kept fulfil, given the chosen subjects that have rows."""
        by_limit: dict[int, list[Any]] = {}
        for label, subject in here.items():
            by_limit.setdefault(self._limit(label), []).append(subject)
        subject, digest = nw.col(SUBJECT), nw.col(_HASH)
        if len(by_limit) == 1 and not self._left_out:
            return digest < next(iter(by_limit))
        return reduce(or_, (subject.is_in(whose) & (digest < limit) for limit, whose in by_limit.items()))


def _width(step: float | None) -> float | None:
    """Return how long a block is: the power of two above 16 steps, which a slightly different step does not change."""
    return None if step is None or not 0 < step < math.inf else 2.0 ** math.ceil(math.log2(_RECORDS * step))


def _placed(rows: Frame, width: float) -> Frame:
    """Add to rows their block, its digest, and that of their place in it; times become whole by a power of two."""
    finer = max(1, int(_FINE / width))
    whole, time = int(width * finer), nw.col(TIME)
    if not rows.collect_schema()[TIME].is_integer():
        fine = time * float(finer)
        rows = rows.filter((fine < 2.0**62) & (fine > -(2.0**62))).with_columns(fine.alias(TIME))
        rows = rows.with_columns((time - time % 1.0).cast(nw.Int64).alias(TIME))
    elif finer > 1:
        most = 2**62 // finer
        rows = rows.filter((time < most) & (time > -most)).with_columns((time * finer).alias(TIME))
    rows = rows.with_columns((time % whole).alias(_PLACE))
    block, place = (time - nw.col(_PLACE)) % _PRIME, nw.col(_PLACE) % _PRIME
    rows = rows.with_columns(block.alias(_BLOCK), place.alias(_PLACE))
    return rows.with_columns(_hashed(nw.col(_BLOCK)).alias(_HASH), _hashed(nw.col(_PLACE)).alias(_PLACE))


def _hashed(x: Any) -> Any:
    """Return h(x), of whole numbers from 0 to P - 1; no product passes 2^62."""
    y = (x * _FACTOR + _SHIFT) % _PRIME
    return y * y % _PRIME


def _digest(held: Mapping[Any, list[int]], named: Mapping[Any, str]) -> int:
    """Return the digest of a block: of the name, the number and the times of each state in it."""
    states: dict[str, tuple[int, int]] = {}
    for state, (n, places) in held.items():
        before = states.get(named[state], (0, 0))
        states[named[state]] = before[0] + n, (before[1] + places) % _PRIME
    content = repr(sorted(states.items())).encode("utf-8", "surrogatepass")
    digest = int.from_bytes(hashlib.blake2b(content, digest_size=4).digest())
    return digest | MIXED if len(states) > 1 else digest & ~MIXED
