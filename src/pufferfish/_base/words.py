"""Words and numbers for people: what a misspelt name was probably meant to be, and numbers in few digits.

What may leak is rounded up and what is left is rounded down, so that no text says less than is true.
"""

import math
import re
import unicodedata
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from difflib import get_close_matches

# -- How numbers are written for people ------------------------------------------------------------------------------

WEAK = "○"  # the sign beside a value that is no larger than its own error

_NO_DIFFERENCE = 1e-6
"""What rounding may lose against the side it is meant for, as a share: sums of doubles are off by less."""


def number(value: float, digits: int = 4) -> str:
    """Write a number to so many digits; the script of the reports writes numbers alike.

    >>> number(0.00123456), number(12345.6), number(2.0), number(0.0), number(3.2e-9)
    ('0.001235', '12,350', '2', '0', '3.2e-9')
    """
    return _written(value, digits, ROUND_HALF_EVEN)


def at_most(value: float, digits: int = 4) -> str:
    """Write a number that bounds something from above: it is rounded up, but for what sums of doubles are off.

    >>> at_most(1.23412), at_most(1.2000000000000002), at_most(0.0), at_most(50)
    ('1.235', '1.2', '0', '50')
    """
    return _written(value, digits, ROUND_CEILING)


def at_least(value: float, digits: int = 4) -> str:
    """Write a number that bounds something from below: it is rounded down.

    >>> at_least(0.800098), at_least(0.7999999999999998), at_least(2.0)
    ('0.8', '0.8', '2')
    """
    return _written(value, digits, ROUND_FLOOR)


def change_of_odds(epsilon: float) -> str:
    """Return by which factor odds can change where ε nats leak, rounded up; beyond 1,000 nobody can use its digits.

    >>> change_of_odds(0.015), change_of_odds(1.0), change_of_odds(3.5), change_of_odds(6.0), change_of_odds(100.0)
    ('1.02', '2.72', '34', '410', 'more than 1,000')
    """
    if epsilon > math.log(1000):
        return "more than 1,000"
    factor = math.exp(epsilon)
    return at_most(factor, 3 if factor < 10 else 2)


def _written(value: float, digits: int, rounding: str) -> str:
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "∞" if value > 0 else "−∞" if value < 0 else "?"
    exact = Decimal(repr(float(value)))
    kept = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(exact)
    if abs(kept - exact) > Decimal(_NO_DIFFERENCE) * abs(exact):
        kept = Context(prec=digits, rounding=rounding).create_decimal(exact)
    if not 1e-6 <= abs(kept) < 1e15:
        mantissa, power = f"{kept:.{digits - 1}e}".split("e")
        return f"{float(mantissa):g}e{int(power)}"
    text = f"{kept:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def to_the_noise(value: float, scale: float, *, digits: int = 3, whole: bool = False) -> str:
    """Write a value to so many digits of its noise, more of them would be noise; whole numbers without decimals.

    >>> to_the_noise(0.5243187, 0.0217), to_the_noise(0.5243187, 0.0217, digits=2), to_the_noise(1234.5, 37.5)
    ('0.5243', '0.524', '1,234.5')
    >>> to_the_noise(1234.0, 37.5, whole=True), to_the_noise(-0.00031, 0.217)
    ('1,234', '0.000')
    """
    decimals = 0 if whole else max(0, digits - 1 - math.floor(math.log10(scale)))
    return f"{value:z,.{decimals}f}" if decimals <= 9 and abs(value) < 1e15 else f"{value:.6g}"


def with_error(value: float, error: float, *, percent: bool = False, whole: bool = False) -> tuple[str, str]:
    """Write a value and its error to the digits that the error leaves: one, or two where one would say far more.

    The error is rounded up. In percent the sign is left to whoever puts both together.

    >>> with_error(0.65712, 0.00098), with_error(0.65712, 0.0011), with_error(0.65712, 0.00098, percent=True)
    (('0.657', '0.001'), ('0.6571', '0.0011'), ('65.7', '0.1'))
    >>> with_error(1234.0, 276.0, whole=True), with_error(0.5, 0.0), with_error(-0.0004, 0.02)
    (('1,234', '276'), ('0.5', '0'), ('0.00', '0.02'))
    """
    value, error = (100 * value, 100 * error) if percent else (value, error)
    if not (math.isfinite(value) and 0 < error < 1e15):
        return number(value), number(error)
    decimals = 0
    if not whole:
        first = -math.floor(math.log10(error))
        digits = next(d for d in (-1, 0, 1) if d == 1 or _up(error, first + d) <= 1.15 * error)
        decimals = max(0, first + digits)
    if decimals > 9 or abs(value) >= 1e15:
        return number(value), at_most(error)
    return f"{value:z,.{decimals}f}", f"{_up(error, decimals):,.{decimals}f}"


def _up(value: float, decimals: int) -> float:
    """Round a number up, but for what sums of doubles are off."""
    power = 10.0**decimals
    return math.ceil(value * power * (1 - _NO_DIFFERENCE)) / power


def nearest(name: object, known: Iterable[object]) -> str | None:
    """Return the known name that is most like another one; None if none is near.

    Capitals, spaces, hyphens and underscores make no difference.

    >>> nearest("activty", ["Subject", "Activity"]), nearest("MQMExact", ["mqm-approx", "mqm-exact"])
    ('Activity', 'mqm-exact')
    """
    names = {_bare(candidate): str(candidate) for candidate in reversed(list(known))}
    near = get_close_matches(_bare(name), names, n=1)
    return names[near[0]] if near else None


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return the question to put behind a message, with the space before it; empty if no known name is near.

    >>> did_you_mean("Rest ", ["active", "rest"])
    " Did you mean 'rest'?"
    >>> did_you_mean("asleep", ["active", "rest"])
    ''
    """
    near = nearest(name, known)
    return f" Did you mean {near!r}?{unseen_difference(str(name), near)}" if near else ""


def unseen_difference(first: str, second: str) -> str:
    """Return the sentence to put behind a message about two names that look the same; empty if they do not.

    >>> unseen_difference("e" + chr(0x301), chr(0xe9))
    ' The two look the same but have different code points: write both in one Unicode form (NFC).'
    >>> unseen_difference("rest", "Rest")
    ''
    """
    if first == second or composed(first) != composed(second):
        return ""
    return " The two look the same but have different code points: write both in one Unicode form (NFC)."


def composed(name: str) -> str:
    """Return a name with each accented letter as one code point, where Unicode has one (NFC), to compare it by.

    Names that look the same may have other code points, and are other names: tables and models are never changed.

    >>> len("e" + chr(0x301)), len(composed("e" + chr(0x301)))
    (2, 1)
    """
    return unicodedata.normalize("NFC", name)


def same_name(first: object, second: object) -> bool:
    """Whether two names differ in capitals, spaces, hyphens and underscores at most.

    >>> same_name("intensive_care", "Intensive Care"), same_name("care", "card")
    (True, False)
    """
    return _bare(first) == _bare(second)


def names_of(names: Iterable[object], most: int = 20) -> str:
    """Return names as a list for a message, as ``--query`` takes them: those with a comma are in double quotes.

    >>> names_of(["home", "ward, general", "rehab"]), names_of("abc", most=2)
    ('home, "ward, general", rehab', 'a, b and 1 more')
    """
    listed = [f'"{name}"' if "," in str(name) else str(name) for name in names]
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _bare(name: object) -> str:
    return re.sub(r"[\s_-]", "", composed(str(name)).casefold())
