"""Names in tables for people that a spreadsheet would take for formulas, and run (CSV injection).

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line end is a formula to a spreadsheet. OWASP advises to
put a single quote before it (owasp.org, "CSV Injection"). Other programs would then read another name, so it is done
where it is asked for. Numbers, and bins such as ``-5-0``, are no formulas that could do anything, and stay as they are.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["csv_of", "warning_of_formulas"]

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_FORMULA = re.compile(rf"[=+@\t\r\n]|-(?!{_NUMBER}(?:--?{_NUMBER})?\Z)")


def csv_of(frame: "pl.DataFrame", *, for_spreadsheets: bool) -> bytes:
    """Return a table as CSV, with names as a spreadsheet shows them if it is for one.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"output": ["=1+1", "-5-0", "rest"], "value": [-1.5, 0.0, 2.0]})
    >>> print(csv_of(table, for_spreadsheets=True).decode(), end="")
    output,value
    '=1+1,-1.5
    -5-0,0.0
    rest,2.0
    """
    if for_spreadsheets:
        import polars as pl

        texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
        for name in texts:
            names = frame[name].unique().drop_nulls().to_list()
            # one that begins with ' too: else two names could become one
            quoted = {each: f"'{each}" for each in names if _is_formula(each) or each.startswith("'")}
            frame = frame.with_columns(pl.col(name).replace(quoted)) if quoted else frame
        frame = frame.rename({name: f"'{name}" for name in frame.columns if _is_formula(name)})
    return frame.write_csv().encode()


def warning_of_formulas(names: Iterable[str]) -> str | None:
    """Return what to say of the names in a table that a spreadsheet takes for formulas; None if there are none.

    Examples
    --------
    >>> warning_of_formulas(["rest", "-5-0", "<0"])
    >>> warning_of_formulas(["rest", "@SUM"])
    "The name '@SUM' is a formula to a spreadsheet, which runs it: give for_spreadsheets=True to write a ' before it."
    """
    formulas = [name for name in names if _is_formula(name)]
    if not formulas:
        return None
    more = f" (and {len(formulas) - 1:,} more)" if len(formulas) > 1 else ""
    return (
        f"The name {formulas[0][:60]!r}{more} is a formula to a spreadsheet, which runs it: give for_spreadsheets=True "
        "to write a ' before it."
    )


def _is_formula(name: str) -> bool:
    return _FORMULA.match(name) is not None
