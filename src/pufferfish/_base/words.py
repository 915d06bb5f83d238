"""What a misspelt name was probably meant to be, for every message about a name that is not known."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["composed", "did_you_mean", "names_of", "nearest", "same_name", "unseen_difference"]


def nearest(name: object, known: Iterable[object]) -> str | None:
    """Return the known name that is most like another one; None if none is near.

    Capitals, spaces, hyphens and underscores make no difference.

    Examples
    --------
    >>> nearest("activty", ["Subject", "Activity"]), nearest("MQMExact", ["mqm-approx", "mqm-exact"])
    ('Activity', 'mqm-exact')
    """
    names = {_bare(other): str(other) for other in reversed(list(known))}
    near = get_close_matches(_bare(name), names, n=1)
    return names[near[0]] if near else None


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return the question to put behind a message, with the space before it; empty if no known name is near.

    Examples
    --------
    >>> did_you_mean("Rest ", ["active", "rest"])
    " Did you mean 'rest'?"
    >>> did_you_mean("asleep", ["active", "rest"])
    ''
    """
    near = nearest(name, known)
    return f" Did you mean {near!r}?{unseen_difference(str(name), near)}" if near else ""


def unseen_difference(name: str, other: str) -> str:
    """Return the sentence to put behind a message about two names that look the same; empty if they do not.

    Examples
    --------
    >>> unseen_difference("e" + chr(0x301), chr(0xe9))
    ' Both look the same and have other code points: write both in one Unicode form (NFC).'
    >>> unseen_difference("rest", "Rest")
    ''
    """
    if name == other or composed(name) != composed(other):
        return ""
    return " Both look the same and have other code points: write both in one Unicode form (NFC)."


def composed(name: str) -> str:
    """Return a name with each accented letter as one code point, where Unicode has one (NFC).

    Names that look the same may have other code points, and are other names. This is for messages that say so: tables
    and models are never changed.

    Examples
    --------
    >>> len("e" + chr(0x301)), len(composed("e" + chr(0x301)))
    (2, 1)
    """
    return unicodedata.normalize("NFC", name)


def same_name(name: object, other: object) -> bool:
    """Whether two names differ in capitals, spaces, hyphens and underscores at most.

    Examples
    --------
    >>> same_name("intensive_care", "Intensive Care"), same_name("care", "card")
    (True, False)
    """
    return _bare(name) == _bare(other)


def names_of(names: Iterable[object], most: int = 20) -> str:
    """Return names as a list for a message, as ``--query`` takes them: those with a comma are in double quotes.

    Examples
    --------
    >>> names_of(["home", "ward, general", "rehab"]), names_of("abc", most=2)
    ('home, "ward, general", rehab', 'a, b and 1 more')
    """
    listed = [f'"{name}"' if "," in str(name) else str(name) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _bare(name: object) -> str:
    return "".join(
        character for character in composed(str(name)).casefold() if not character.isspace() and character not in "-_"
    )
