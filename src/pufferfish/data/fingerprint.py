"""By what a model knows the table that it was fitted to: a few digests of what was read, in no order.

A model that was fitted to the table it shall protect promises nothing, so a release of that table is refused, and of a
sorted copy, a part or one subject's series of it. So a model keeps a *sample* of what was read
(:mod:`~pufferfish.data._sampling` takes it): the time of a subject, or without times the numbers of its records, is cut
into **blocks** of some 16 records. Which are kept follows from subject and time alone, never from states: a part of a
table keeps what the whole keeps of that part, and more. Of each stands here a digest of its times and states.

Two tables are **one** if at least 4 kept blocks have the same times and states, and these are two thirds of those that
both kept. Only blocks with two or more states are counted, because in a table of mostly one state most look alike.
Different people with the same names at the same minutes share blocks, not states: two blocks with a change of state
agree with a probability of about 1/15 (the change has 15 places), and rarely more than 1/8, so that two thirds of N do
with at most one in 4,000 for N = 4, and less for more.

Two tables that are alike in all that was counted are one too, as where subjects were renamed or times shifted; where
states change fewer than 100 times this may be chance, so there the samples have to agree as well. Two tables of
independent rows are one if of all columns that both have the same number of rows is in each state.

docs/known_limits.md says what is not recognised.
"""

import base64
import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from pufferfish.errors import ParameterError, shortened

MIXED = 1 << 31  # the bit of a block's digest that says that the block has two or more states
_LEAST = 4  # blocks that must agree
_SHARE = 2 / 3  # of the blocks that both tables kept, so many must agree
_FEW = 100  # changes of state below which two tables may be counted alike by chance

_OF_ROWS = "rows"
_HEAD, _BLOCK = struct.Struct(">IH"), struct.Struct(">II")

Blocks = dict[int, int]  # the digests of the blocks of one subject, by what tells a block from the others of a subject


def name_digest(subject: str) -> int:
    """Return the digest of a subject's name; 0 where there are no subjects.

    >>> name_digest(""), name_digest("ann") == name_digest("bob")
    (0, False)
    """
    return zlib.crc32(subject.encode("utf-8", "surrogatepass"))


def fingerprint_of(counted: Any, changes: int, sample: Mapping[str, Blocks]) -> str:
    """Return a table's fingerprint, of plain values that do not depend on its order, changes of state, and blocks."""
    kept = {name_digest(subject): blocks for subject, blocks in sample.items()}
    packed = b"".join(
        _HEAD.pack(subject, len(blocks)) + b"".join(_BLOCK.pack(*block) for block in sorted(blocks.items()))
        for subject, blocks in sorted(kept.items())
    )
    few = packed if changes < _FEW else b""
    whole = hashlib.sha256(repr(counted).encode("utf-8", "surrogatepass") + few).hexdigest()
    return f"{whole}:{base64.b64encode(packed).decode()}"


def fingerprint_of_rows(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return the fingerprint of a table of independent rows, given of each column the number of rows in each state.

    >>> patients = {"smoke": {"no": 60, "yes": 40}, "lung": {"no": 98, "yes": 2}}
    >>> whole, part = fingerprint_of_rows(patients), fingerprint_of_rows({"lung": {"yes": 2, "no": 98}})
    >>> same_table(whole, part), same_table(whole, fingerprint_of_rows({"lung": {"yes": 3, "no": 97}}))
    (True, False)
    """
    seen = {label: sorted((state, n) for state, n in by_state.items() if n) for label, by_state in counts.items()}
    columns = sorted((name_digest(label), name_digest(repr(pairs))) for label, pairs in seen.items())
    return f"{_OF_ROWS}:{base64.b64encode(b''.join(_BLOCK.pack(*column) for column in columns)).decode()}"


def check_fingerprint(fingerprint: Any) -> None:
    """Refuse what is no fingerprint of a table, nor several with spaces between them."""
    try:
        for one in fingerprint.split(" "):
            _parts(one)
    except (AttributeError, TypeError, ValueError, struct.error):  # it is no text; binascii.Error is a ValueError
        raise ParameterError(
            f"fitted_on is {shortened(repr(fingerprint))}, expected the fingerprint of a table, such as "
            "data.fingerprint"
        ) from None


def same_table(one: str, other: str) -> bool:
    """Whether two tables are one by their fingerprints, or one of them has a part of the other.

    The first may be several, with spaces between them: whether one of them is.

    >>> hours = {"": {hour: MIXED + hour for hour in range(20)}}
    >>> morning = {"": {hour: MIXED + hour for hour in range(6, 12)}}
    >>> elsewhere = {"": {hour: MIXED + hour + 1 for hour in range(20)}}
    >>> whole, *others = [fingerprint_of(x, 320, x) for x in (hours, morning, elsewhere)]
    >>> [same_table(whole, fingerprint) for fingerprint in others]
    [True, False]
    """
    return any(_same(each, other) for each in one.split(" "))


def _same(one: str, other: str) -> bool:
    (whole, mine), (theirs_whole, theirs) = _parts(one), _parts(other)
    if whole == theirs_whole == _OF_ROWS:
        both = mine[0].keys() & theirs[0].keys()
        return bool(both) and all(mine[0][column] == theirs[0][column] for column in both)
    if whole == theirs_whole:
        return True
    nobody = name_digest("")
    if (nobody in mine) == (nobody in theirs):
        return _agree((mine[who], theirs[who]) for who in mine.keys() & theirs.keys())
    # one of them was read as a single series: it may be that of any subject of the other
    return any(_agree([(a, b)]) for a in mine.values() for b in theirs.values())


def _agree(pairs: Iterable[tuple[Blocks, Blocks]]) -> bool:
    """Whether enough of the blocks that both have are the same."""
    same = both = 0
    for mine, theirs in pairs:
        for block in mine.keys() & theirs.keys():
            if (mine[block] | theirs[block]) & MIXED:
                both += 1
                same += mine[block] == theirs[block]
    return same >= max(_LEAST, _SHARE * both)


def _parts(text: str) -> tuple[str, dict[int, Blocks]]:
    """Return the digest of all that was counted, and of each kept subject its blocks; of rows all columns as one."""
    whole, colon, packed = text.partition(":")
    if not colon or re.fullmatch(rf"{_OF_ROWS}|[0-9a-f]{{64}}", whole) is None:
        raise ValueError("no digest")
    content, place, by_subject = base64.b64decode(packed, validate=True), 0, dict[int, Blocks]()
    if whole == _OF_ROWS:
        return whole, {0: dict(_BLOCK.iter_unpack(content))}
    while place < len(content):
        subject, number = _HEAD.unpack_from(content, place)
        place += _HEAD.size
        by_subject[subject] = dict(_BLOCK.unpack_from(content, place + i * _BLOCK.size) for i in range(number))
        place += number * _BLOCK.size
    return whole, by_subject
