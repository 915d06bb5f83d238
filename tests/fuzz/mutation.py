"""Changes of an input that know its structure, so that most of them get past the first check.

Each takes the input, a source of chance, and other inputs of the same kind, of which it may take parts.
"""

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["Mutate", "extremes", "leaves", "of_bytes", "of_json", "of_text", "same_path"]

Mutate = Callable[[bytes, random.Random, Sequence[bytes]], bytes]

_BYTES = [
    b"",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\n",
    b"\r\n",
    b'"',
    b",",
    b"{",
    b"[",
    b"-0.0",
    b"1e999",
    b"NaN",
    b"\xed\xa0\x80",
]
_WORDS = [
    "",
    " ",
    "null",
    "any",
    "stationary",
    "magic",
    "a\nb",
    "\x1b[2J",
    "\ud800",
    "x" * 3000,
    "1",
    "-1",
    "1e999",
    "NaN",
]
_NUMBERS = [
    0,
    -0.0,
    1,
    -1,
    2,
    0.5,
    5e-324,
    1e-320,
    1e-300,
    1e300,
    -1e300,
    1e308,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
]
_NOT_FINITE = [float("nan"), float("inf"), float("-inf")]
_OTHERS: list[Any] = [None, True, False, [], {}, [[]], [None], {"": 0}]
_FACTORS = [0.0, -1.0, 0.5, 0.9, 0.999, 1.001, 1.1, 2.0, 10.0, 1e6, 1e-6]


def of_bytes(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Change a few bytes, whatever they mean."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        at = rng.randrange(len(found) + 1)
        upto = min(len(found), at + rng.choice([0, 1, 1, 2, 8, 64]))
        way = rng.randrange(5)
        if way == 0 and found:
            found[min(at, len(found) - 1)] ^= 1 << rng.randrange(8)
        elif way == 1:
            found[at:upto] = rng.randbytes(upto - at)
        elif way == 2:
            found[at:upto] = rng.choice(_BYTES)
        elif way == 3:
            found[at:at] = found[at:upto] * rng.choice([1, 2, 30])
        elif others:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            found[at:upto] = other[start : start + rng.choice([1, 8, 64])]
    return bytes(found)


def of_text(words: Sequence[str]) -> Mutate:
    """Return what changes text by the words of its language."""

    def mutate(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
        text = data.decode("utf-8", "replace")
        for _ in range(rng.choice([1, 1, 2, 3, 5])):
            at = rng.randrange(len(text) + 1)
            upto = min(len(text), at + rng.choice([0, 0, 1, 2, 5, 20]))
            way = rng.randrange(6)
            if way <= 2:
                text = text[:at] + rng.choice(words) + text[upto:]
            elif way == 3:
                text = text[:at] + text[upto:]
            elif way == 4:
                text = text[:at] + text[at:upto] * rng.choice([2, 3, 100]) + text[upto:]
            else:
                return of_bytes(text.encode("utf-8", "replace"), rng, others)
        return text.encode("utf-8", "replace")

    return mutate


def leaves(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every place of nested lists and dicts, with what stands there."""
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        yield (*path, key), value
        yield from leaves(value, (*path, key))


def extremes(data: bytes) -> Iterator[bytes]:
    """Yield a JSON record with one thing in it replaced: every number, text, list and dict by all that is extreme.

    Of a list only the first place is taken, and the last.
    """
    record = json.loads(data)
    for path, value in leaves(record):
        inside: list[Any] = [same_path(record, path[:i]) for i in range(len(path))]
        if any(isinstance(at, list) and 0 < key < len(at) - 1 for at, key in zip(inside, path, strict=True)):
            continue
        others = [*_OTHERS, "", "nan", 0, 5e-324, *([value[:1], value * 2] if isinstance(value, list) else [])]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        for other in [*_NUMBERS, *_NOT_FINITE, *others] if number else others:
            inside[-1][path[-1]] = other
            yield json.dumps(record).encode()
        inside[-1][path[-1]] = value


def same_path(record: Any, path: tuple[Any, ...]) -> Any:
    """Return what stands at a place; raises LookupError or TypeError where there is none."""
    for key in path:
        record = record[key]
    return record


def of_json(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Change a JSON record in one to three places; now and then its bytes."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return of_bytes(data, rng, others)
    if rng.random() < 0.1 or not isinstance(record, dict | list) or not record:
        return of_bytes(data, rng, others)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = [path for path, _ in leaves(record)]
        if not places:
            break
        # the top is chosen first: a long matrix is one field of many
        top = rng.choice(sorted({path[0] for path in places}, key=str))
        _change(record, rng.choice([path for path in places if path[0] == top]), rng, others)
    try:
        text = json.dumps(record, indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5)
    except RecursionError:
        return data
    if rng.random() < 0.05:  # what no decoder returns: numbers beyond a double, deep nesting, keys given twice
        text = text.replace(" 0.", rng.choice([" 1e400", " 0." + "3" * 999, " " + "9" * 5000, " " + "[" * 5000]), 1)
    if rng.random() < 0.03:
        text = text.replace("{", rng.choice(['{"epsilon": 1,', '{"format": "x",', '{"a":' * 3000]), 1)
    return text.encode("utf-8", "surrogatepass")


def _times(value: float, factor: float) -> float:
    try:
        return value * factor
    except OverflowError:  # a whole number beyond floats
        return -value


def _change(record: Any, path: tuple[Any, ...], rng: random.Random, others: Sequence[bytes]) -> None:
    inside, key = same_path(record, path[:-1]), path[-1]
    value = inside[key]
    way = rng.randrange(8)
    if way <= 2 and isinstance(value, int | float) and not isinstance(value, bool):
        inside[key] = value + rng.choice([1, -1]) if rng.random() < 0.3 else _times(value, rng.choice(_FACTORS))
    elif way <= 2 and isinstance(value, str):
        inside[key] = rng.choice([value + "x", value[:-1], value[::-1], value.upper(), rng.choice(_WORDS)])
    elif way <= 2 and isinstance(value, list) and value:
        at, kind = rng.randrange(len(value)), rng.randrange(5)
        if kind == 0:
            value.append(copy.deepcopy(value[at]))
        elif kind == 1:
            value.pop(at)
        elif kind == 2:
            value.reverse()
        elif kind == 3:
            rng.shuffle(value)
        else:
            inside[key] = value * 2
    elif way == 3 and isinstance(inside, dict):
        del inside[key]
    elif way == 4 and others:
        try:  # the same place of another record
            inside[key] = copy.deepcopy(same_path(json.loads(rng.choice(others)), path))
        except (ValueError, LookupError, TypeError, RecursionError):
            inside[key] = None
    elif way == 5:
        spot, found = rng.choice(list(leaves(record)))
        if spot != path[: len(spot)]:
            inside[key] = copy.deepcopy(found)
    elif way == 6 and isinstance(inside, dict):
        inside[str(key) + rng.choice(["", "s", " ", "\0"])] = inside.pop(key)
    else:
        inside[key] = copy.deepcopy(rng.choice([*_NUMBERS, *_NOT_FINITE, *_WORDS, *_OTHERS]))
