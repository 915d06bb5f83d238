"""The commands that make a release again, as its record says: fit, ledger and release, for a shell."""

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from pufferfish.data.rows import RowsBase
from pufferfish.data.sequences import Base
from pufferfish.errors import ParameterError, PufferfishError
from pufferfish.mechanisms import MECHANISMS, LeakagePropagation
from pufferfish.queries import KINDS, Joint, Marginals, Mean, Quantiles, Query, Subset, Sum, Weighted, Window
from pufferfish.release.record import MeasurementFields, ReleaseFields, mechanism_again, query_again
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.record import ThetaRecord

__all__ = ["commands_of", "shell_line"]

_FITTED = re.compile(r"fitted to public data on \S+: (?P<source>.+?)(, column |, [\d,]+ rows?\b)")


def commands_of(record: ReleaseFields | MeasurementFields, output: str | None = None) -> list[str]:
    """Return the commands that make a release again: the fit of its model, its ledger, and the release itself.

    Files have the names that the record knows, without their folders, and else ``model.json`` and ``book.json``. A
    record does not know how its model was fitted: the command that fits one plain chain stands there where it is one,
    and for any other class ``model.json`` is the model that was released under. Running them spends anew.

    Parameters
    ----------
    record : Release, EachRelease or MeasurementRelease
        The release.
    output : str, optional
        The file of the release; by default the one that ``release`` would write.

    Returns
    -------
    list of str
        Commands for a shell; none of a release that no command makes: of a measurement, of a function of yours, or of
        data that are no table.

    Raises
    ------
    ParameterError
        If it is no release, or the file has no name.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> data = pf.read_sequences(pl.DataFrame({"s": ["rest", "active"] * 50}), "s")
    >>> noise = pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"]), data.length)
    >>> found = pf.release(data, pf.Count("active"), noise.calibrate(pf.Count("active"), 1.0))
    >>> print(*pf.commands_of(found), sep="\\n")
    pufferfish release TABLE --state s --model model.json --query count:active --epsilon 1.0
    """
    if isinstance(record, MeasurementFields):
        return []
    if not isinstance(record, ReleaseFields):
        raise ParameterError(f"record is {type(record).__name__}, expected a release")
    if output is not None and not isinstance(output, str):
        raise ParameterError(f"output is {output!r}, expected the name of a file")
    base, known = record.data.reading, {kind.name for kind in MECHANISMS}
    try:
        query = query_again(record)
        columns, asked = _asked(record, query)
    except PufferfishError:
        return []
    settings = record.calibration.settings
    if base is None or asked is None or settings is None or record.mechanism.name not in known:
        return []
    secrets: Any = settings.get("secrets")
    if secrets is not None and not (isinstance(secrets, list) and all(isinstance(node, str) for node in secrets)):
        return []  # pairs, which no option names
    reading = _reading(base, record.data.usual_step) | ({"columns": _listed(columns)} if columns else {})
    table = base.source if "." in base.source and not base.source.startswith("table ") else "TABLE"
    hidden = {"protect": _protect(settings.get("protect")), "within": _within(settings.get("within"))}
    by = None if base.by is None else ",".join(base.by)
    lines: list[str] = []
    fitted = _FITTED.match(record.theta.origin)
    if fitted is not None and _fits_by_default(record.theta, base):
        lines.append(shell_line(["fit", fitted["source"]], reading | {"where": None, "output": "model.json"}))
    booked = record.ledger
    if booked is not None:
        create = {"model": "model.json", "table": table, "budget": f"{booked.budget:.15g}"}
        lines.append(shell_line(["ledger", "create", "book.json"], create | reading | {"where": None} | hidden))
    each = record.subjects
    options: dict[str, Any] = {"by": by, "model": "model.json", "query": asked, "epsilon": repr(record.epsilon)}
    options |= {"secrets": None if secrets is None else _listed(secrets), **(hidden if booked is None else {})}
    options |= {"mechanism": record.mechanism.name if record.mechanism.name != LeakagePropagation.name else None}
    one_scale = each is None and record.noise.measurements is None and len(record.query.labels) > 1
    options |= {
        "noise": "equal" if one_scale and mechanism_again(record).shapes(query) else None,
        "valid": record.postprocessing is not None,
    }
    options |= {"each-subject": each is not None, "ledger": None if booked is None else "book.json"}
    file = output if each is None or each.table is None else each.table.name
    return [*lines, shell_line(["release", table], reading | options | {"output": file})]


def _fits_by_default(theta: ThetaRecord, base: Base | RowsBase) -> bool:
    """Whether a class is one that ``fit`` makes of a table without further options: one stationary chain."""
    if theta.kind != MarkovChain.kind or len(theta.chains) != 1 or theta.names:
        return False
    in_order = list(theta.states) == sorted(theta.states) or (isinstance(base, Base) and base.bins is not None)
    return in_order and theta.chains[0].initial_distribution == "stationary"


def shell_line(words: Iterable[str], options: Mapping[str, str | bool | None]) -> str:
    """Return a command of this program for a shell; options that are None or False are left out."""
    parts = ["pufferfish", *map(shlex.quote, words)]
    for name, value in options.items():
        if value is True:
            parts.append(f"--{name}")
        elif value is not None and value is not False:
            parts.append(f"--{name} {shlex.quote(value)}")
    return " ".join(parts)


def _reading(base: Base | RowsBase, usual_step: str | None) -> dict[str, str | None]:
    """Return the options that say how a table was read; what is as by default is left out."""
    if isinstance(base, RowsBase):
        usual = base.missing == "refuse"
        return {"subject": base.subject, "where": base.where, "missing": None if usual else base.missing}
    return {
        "state": base.state,
        "subject": base.subject,
        "time": base.time,
        "time-zone": base.time_zone,
        "ambiguous": base.ambiguous,
        "max-gap": base.max_gap,
        "step": None if base.step == usual_step else base.step,
        "bins": None if base.bins is None else ",".join(f"{edge:.15g}" for edge in base.bins),
        "where": base.where,
        "missing": None if base.missing == "unobserved" else base.missing,
        "gaps": None if base.gaps == "unobserved" else base.gaps,
    }


def _asked(record: ReleaseFields, query: Query) -> tuple[list[str], str | None]:
    """Return the columns of a network that a query takes, and the query as ``--query`` takes it; None for any other."""
    columns = list(record.data.rows.columns) if record.data.rows is not None else []
    if isinstance(query, Subset):
        columns, query = [str(node) for node in query.records], query.query
    match query:
        case Marginals():
            return columns, query.kind
        case Joint():
            return [], f"{query.kind}:{_listed(map(str, query.records))}"
        case Quantiles(shares=shares):
            return columns, f"{query.kind}:{','.join(map(repr, shares))}"
        case Sum(values=values) | Mean(values=values):
            if not isinstance(values, Mapping) and len(values) != len(record.theta.states):  # of a network's columns
                return columns, f"{query.kind}:{','.join(f'{value:.15g}' for value in values)}"
            valued = values if isinstance(values, Mapping) else dict(zip(record.theta.states, values, strict=True))
            pairs = (f"{_quoted(state)}={value:.15g}" for state, value in valued.items())
            return columns, f"{query.kind}:{','.join(pairs)}"
    states: Any = getattr(query, "states", None)
    if query.kind not in KINDS or isinstance(query, Window | Weighted):
        return columns, None
    return columns, query.kind if states is None else f"{query.kind}:{_listed(states)}"


def _protect(asked: Any) -> str | None:
    """Return what is hidden together as ``--protect`` takes it: a number of steps, a word, or columns."""
    return None if asked is None else "+".join(asked) if isinstance(asked, list) else str(asked)


def _within(asked: Any) -> str | None:
    """Return which values are near as ``--within`` takes it."""
    if isinstance(asked, list):
        return ",".join(f"{a}:{b}" for a, b in asked)
    return None if asked is None else f"{asked:.15g}"


def _listed(names: Iterable[str]) -> str:
    return ",".join(map(_quoted, names))


def _quoted(name: str) -> str:
    """Return a name in a list with commas: in double quotes where it has one."""
    return f'"{name.replace(chr(34), chr(34) * 2)}"' if "," in name or '"' in name else name
