"""Who is in a ledger's base: a digest of each subject, and which of them a release reads.

Subjects are independent of each other under every θ. So a subject pays for the releases that read its records, and for
no others: releases about different subjects cost the largest of their losses, not the sum.

The book holds no name. It holds for each chain of the base 16 bytes of HMAC-SHA256 of its subject's name, under a key
of 32 random bytes that stands in the book too. The digests of two ledgers cannot be compared, and none can be looked up
in a list made before. But whoever has the book can try names: keep it as you keep the list of who is in the table.
"""

import base64
import hmac
import secrets
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import FrozenRecord
from pufferfish.data.sequences import TimeGrid
from pufferfish.errors import ParameterError, ReleaseRefused, shortened
from pufferfish.mechanisms.influence_bound import InfluenceBound

_BYTES = 16
_KEY = 32


class Subjects(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The subjects of a base."""

    salt: str
    """The key, 64 hexadecimal digits."""
    digests: str
    """16 bytes for each chain of the base, in its order, in base 64."""

    @classmethod
    def of(cls, names: Iterable[str]) -> "Subjects":
        """Return the subjects of these names, one for each chain, under a new key."""
        key = secrets.token_bytes(_KEY)
        digests = b"".join(_digest(key, name) for name in names)
        return cls(key.hex(), base64.b64encode(digests).decode())

    def check(self, places: int | None) -> None:
        """Refuse what is no list of so many digests, or of any number."""
        try:
            size = len(self._content)
            many = size // _BYTES if places is None else places
            fits = len(bytes.fromhex(self.salt)) == _KEY and size == _BYTES * many
        except ValueError:
            fits = False
        if not fits:
            many = "" if places is None else f"{places} "
            raise ParameterError(f"subjects are no {many}digests of subjects, and a key of {_KEY} bytes")

    @property
    def count(self) -> int:
        """How many there are; of a hundred thousand nothing is unpacked for it."""
        text = self.digests
        return (3 * len(text) // 4 - text.count("=", max(len(text) - 2, 0))) // _BYTES

    def with_more(self, names: Sequence[str]) -> tuple["Subjects", NDArray[np.int64]]:
        """Return the subjects with those who are new after the others, and each name's number, by which it came."""
        key, content = bytes.fromhex(self.salt), self._content
        known = {content[place : place + _BYTES]: place // _BYTES for place in range(0, len(content), _BYTES)}
        numbers = [known.setdefault(digest, len(known)) for digest in (_digest(key, name) for name in names)]
        if len(known) == self.count:
            return self, np.array(numbers, dtype=np.int64)
        content = b"".join(known)
        return Subjects(self.salt, base64.b64encode(content).decode()), np.array(numbers, dtype=np.int64)

    def without(self, known: "Subjects | None") -> "Subjects":
        """Return those who came after some known ones, who stand before them."""
        first = 0 if known is None else _BYTES * known.count
        return Subjects(self.salt, base64.b64encode(self._content[first:]).decode())

    def with_those(self, new: "Subjects") -> "Subjects":
        """Return the subjects with others after them, as :meth:`without` returns these."""
        return Subjects(self.salt, base64.b64encode(self._content + new._content).decode())

    def places_of(self, names: Iterable[str], *, by: str = "the data have") -> dict[str, list[int]]:
        """Return the places of each subject's chains; who is not in the base is refused; ``by`` says who named them."""
        key, content = bytes.fromhex(self.salt), self._content
        known: dict[bytes, list[int]] = {}
        for place in range(len(content) // _BYTES):
            known.setdefault(content[_BYTES * place : _BYTES * (place + 1)], []).append(place)
        by_name: dict[str, list[int]] = {}
        for name in names:
            places = known.get(_digest(key, name))
            if places is None:
                raise ReleaseRefused(
                    f"{by} the subject {shortened(repr(name))}, who is not in the ledger's base: a ledger knows "
                    "people by their names, so use the same names in every table"
                )
            by_name[name] = places
        return by_name

    @property
    def _content(self) -> bytes:
        return base64.b64decode(self.digests, validate=True)


def names_in(bound: InfluenceBound, data: Any) -> Sequence[str] | None:
    """Return whose each chain of a ledger's bound is, if known; all may be planned for as many records more."""
    here: Sequence[str] | None = getattr(data, "names", None)
    if here is None or tuple(chain.without_positions for chain in data.length) == bound.length:
        return here
    alike = len(here) == len(bound.length) and len(set(bound.length)) == 1
    if not alike or not all(bound.length[0].covers(chain.without_positions) for chain in data.length):
        raise ParameterError(
            f"base has {len(here)} chains, but the mechanism was made for {len(bound.length)} chains of other "
            "lengths: make the mechanism with length=data.length of the whole table; for a growing table make the "
            "ledger with grows=True"
        )
    return here


def grid_of(data: Any, names: Sequence[str] | None, bound: InfluenceBound) -> TimeGrid | None:
    """Return the ends in time of a base's chains, None for one planned for more records, whose times nobody knows."""
    grid: TimeGrid | None = getattr(data, "grid", None)
    if grid is None or (names is None and not len(grid.ends) == len(bound.length) == 1):
        return None
    spans = list(zip(grid.ends, data.length, strict=True))
    ends = tuple(
        span if here is not None and here.steps == there.steps else None
        for (span, here), there in zip(spans, bound.length, strict=True)
    )
    return replace(grid, ends=ends) if any(ends) else None


def packed(marks: NDArray[np.bool_]) -> str:
    """Return marks as text: a bit for each, compressed, in base 64."""
    return base64.b64encode(zlib.compress(np.packbits(marks).tobytes(), 9)).decode()


def unpacked_bits(text: str, most: int) -> NDArray[np.uint8]:
    """Return what :func:`packed` was given, or nothing; not far beyond ``most``, for a short text may be very long."""
    try:
        bits = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), -(-most // 8) + 1)
    except (ValueError, zlib.error):
        bits = b""
    return np.unpackbits(np.frombuffer(bits, dtype=np.uint8))


def unpacked(text: str, places: int, entry: str) -> bytes:
    """Return which of so many chains an entry says that are read, a byte each; refused where that is none."""
    marks = unpacked_bits(text, places)
    if len(marks) != 8 * -(-places // 8) or marks[places:].any() or not marks.any():
        raise ParameterError(f"{entry} lacks the list of the {places} subjects that it reads")
    return marks[:places].tobytes()


def _digest(key: bytes, name: str) -> bytes:
    return hmac.digest(key, name.encode("utf-8", "surrogatepass"), "sha256")[:_BYTES]
