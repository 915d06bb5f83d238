"""Messages of the library in the words of the command line: ``--max-gap``, where Python says ``max_gap=``.

The library names its arguments, and the command line has an option of the same name for each. So messages are turned
here, in one place, as they are printed. What stands in quotes is a name of the user's, and stays.

Marks around the arguments, put there where a message is written, would be lost or printed on the way: messages are put
together from parts, and warnings go into records, which are for both kinds of readers.
"""

import re

__all__ = ["as_options"]

_NAMES = (
    *(
        "state",
        "subject",
        "time",
        "time_zone",
        "ambiguous",
        "max_gap",
        "step",
        "bins",
        "where",
        "missing",
        "gaps",
        "by",
    ),
    "columns",
    *("epsilon", "accuracy", "alpha", "noise", "clock", "order", "smoothing", "pooling", "secrets", "initial"),
)
_VALID = "postprocess"
"""In Python ``postprocess="valid"``, here ``--valid``."""
_FLAGS = {
    "public": "--i-know-this-is-public",
    "overwrite": "--overwrite",
    "for_spreadsheets": "--for-spreadsheets",
}
"""In Python ``public=True``."""

_ARGUMENT = re.compile(
    r"(?P<kept>(?<![\w=])'[^']*'|(?<![\w=])\"[^\"]*\")|ledger\.calibrate\(query, up_to=(?P<level>[\d.e-]+)\)"
    r"|(?P<call>\w\([^()]*\))"  # in Python
    rf"|(?<![\w./-])(?P<flag>{'|'.join(_FLAGS)})=True"
    rf"|(?<![\w./-])(?P<name>{'|'.join(_NAMES)}|{_VALID})=(?:(?P<quote>['\"])(?P<value>.*?)(?P=quote)|(?=[\s,;:)]|$))"
    r"|\A(?P<first>epsilon|accuracy|alpha|smoothing|pooling)(?= is (?:[-+]?[\d.]+(?:e[-+]?\d+)?|-?inf|nan),)"
    rf"|(?<![\w./-])(?P<alone>max_gap|time_zone|up_to|{_VALID})(?![\w./=-])"  # what is no English word
)


def as_options(text: str) -> str:
    """Return a message that names options and not arguments of Python.

    Examples
    --------
    >>> as_options("the length of a step is unknown: give step=, or a longer max_gap")
    'the length of a step is unknown: give --step, or a longer --max-gap'
    >>> as_options("missing='refuse'; leave such rows out by where='sex != none'")
    "--missing refuse; leave such rows out by --where 'sex != none'"
    >>> as_options("if everybody may see this table, give public=True")
    'if everybody may see this table, give --i-know-this-is-public'
    >>> as_options("for all that is left: ledger.calibrate(query, up_to=1.5)")
    'for all that is left: --up-to 1.5'
    >>> as_options("epsilon is -1.0, expected a positive finite number such as 1.0")
    '--epsilon is -1.0, expected a positive finite number such as 1.0'
    >>> as_options("epsilon is no model")  # a file
    'epsilon is no model'
    >>> as_options("column 'max_gap' not found. Columns: max_gap, step.")
    "column 'max_gap' not found. Columns: max_gap, step."
    """
    said, columns, rest = text.partition(" Columns: ")
    return _ARGUMENT.sub(_option, said) + columns + rest


def _option(found: re.Match[str]) -> str:
    if found["kept"] is not None or found["call"] is not None:
        return found[0]
    if found["level"] is not None:
        return f"--up-to {found['level']}"
    if found["flag"] is not None:
        return _FLAGS[found["flag"]]
    name, value, quote = found["name"] or found["alone"] or found["first"], found["value"], found["quote"]
    if name == _VALID:
        return "--valid"
    option = f"--{name.replace('_', '-')}"
    if value is None:
        return option
    return f"{option} {value}" if re.fullmatch(r"[\w.:+-]+", value) else f"{option} {quote}{value}{quote}"
