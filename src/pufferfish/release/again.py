"""What makes a release again, as its record says: commands for a shell, or a notebook.

The notebook is plain JSON (nbformat 4.5), written without any library. Whoever wrote the record may want to run code of
theirs on the reader's machine: so queries and settings are made from the record first, by constructors that refuse what
they do not know, and their code is written from the objects; all else are literals of Python.
"""

import html
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from pufferfish._base.words import at_most
from pufferfish._base.writing import Kind
from pufferfish.data.rows import RowsBase
from pufferfish.data.sequences import Base
from pufferfish.errors import NotApplicableError, ParameterError, PufferfishError, RecordError, printable, shortened
from pufferfish.mechanisms import MECHANISMS, LeakagePropagation, ParticipantDP
from pufferfish.queries import KINDS, Joint, Marginals, Mean, Quantiles, Query, Subset, Sum, Weighted, Window
from pufferfish.release.check import BROKEN
from pufferfish.release.facts import decode, encode
from pufferfish.release.record import MeasurementFields, ReleaseFields, calibration_again, mechanism_again, query_again
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.record import ThetaRecord

# -- Commands --------------------------------------------------------------------------------------------------------

_FITTED = re.compile(r"fitted to public data on \S+: (?P<source>.+?)(, column |, [\d,]+ rows?\b)")


def commands_of(record: ReleaseFields | MeasurementFields, output: str | None = None) -> list[str]:
    """Return the commands that make a release again: the fit of its model, its ledger, and the release itself.

    Files have the names that the record knows, without their folders, and else ``model.json`` and ``book.json``. A
    record does not know how its model was fitted: the command that fits one plain chain stands there where it is one,
    and for any other class ``model.json`` is the model that was released under. Running them spends anew.

    ``output`` is the file of the release, by default the one that ``release`` would write. There are no commands for a
    release that none makes: of a measurement, of a function of yours, or of data that are no table.

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
    protect = settings.get("protect")  # a number of steps, a word, or columns
    protect = "+".join(protect) if isinstance(protect, list) else None if protect is None else str(protect)
    hidden = {"protect": protect, "within": _within(settings.get("within"))}
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


# -- A notebook ------------------------------------------------------------------------------------------------------

_MARK = "pufferfish-notebook"

_NAME_LEDGER = [
    "if not LEDGER:",  # no assert, which python -O leaves out
    "    raise ValueError('this release was charged to a ledger: set LEDGER in the first cell to its file')",
]

NOTEBOOK = Kind(
    "notebook of a release",
    lambda content: f'"{_MARK}"'.encode() in content and b'"nbformat"' in content,
    "you may have worked in it; name another file, or --overwrite",
    (".ipynb",),
)
"""Notebooks say in their metadata who wrote them."""


def notebook_of(
    record: ReleaseFields, record_path: str, table_path: str | None = None, ledger_path: str | None = None
) -> bytes:
    """Return a notebook that makes a release again, but for its noise.

    The paths are those of the record, its table and its ledger, as seen from the notebook's folder: by default the file
    that the record names, and a ledger that the reader has to fill in.
    """
    refusal = "a notebook repeats the release of a table from its record, but "
    if record.subjects is not None:
        raise NotApplicableError(refusal + "this is a release for each subject: use release_each")
    stated, base = record.calibration, record.data.reading
    if base is None:
        raise NotApplicableError(refusal + "this one is of a database that was given by hand, not of a table")
    kinds = {kind.name: kind for kind in (*MECHANISMS, ParticipantDP)}
    if record.mechanism.name not in kinds:
        by = f"this one is by {shortened(record.mechanism.title)}, which it cannot set up"
        raise NotApplicableError(refusal + by)
    if stated.query is None or stated.settings is None or record.theta.any_theta() is None:
        raise NotApplicableError(refusal + "this one has a function of yours, which a record cannot hold")
    try:
        query = calibration_again(record).query
        settings = {name: encode(decode(value)) for name, value in stated.settings.items() if value is not None}
    except BROKEN as error:
        raise RecordError(f"the noise cannot be set up as the record says: {shortened(str(error))}") from None
    source = table_path or (base.source if "." in base.source else "table.csv")
    kind, options = kinds[record.mechanism.name].__name__, "".join(f", {k}={_code(v)}" for k, v in settings.items())
    best = "" if record.noise.measurements is None else ', noise="best"'
    valid = "" if record.postprocessing is None else ', postprocess="valid"'
    charged = record.ledger is not None
    runs = "Every run is charged to the ledger `LEDGER`, which counts what all of them leak together."
    ledger = f"LEDGER = {ledger_path!r}  # the ledger that it was charged to"
    if ledger_path is None:
        runs = "In the next cell set `LEDGER` to the ledger of the table: then it counts what all runs leak together. "
        runs += "Without a ledger publish only one run."
        ledger = "LEDGER = None  # the ledger of the table, such as 'ledger.json', if there is one"
        if charged:
            ledger = "LEDGER = None  # the ledger that it was charged to, such as 'ledger.json'"
    same = "data.records == record.data.records" if isinstance(base, Base) else "data.length == record.data.subjects"
    cells = [
        _text(
            f"# {_plain(record.query.kind)}, ε = {at_most(record.epsilon)}",
            f"This notebook makes a release again: {_plain(record.query.description)}. It reads the table in the same "
            "way, under the same model, and calibrates the same noise. The noise itself is drawn anew.",
            "**Each run is another release of the same records.** What is published of several runs leaks more than "
            f"one release does. {runs}",
        ),
        _lines(
            "import pufferfish as pf",
            "",
            f"TABLE = {source!r}  # the private table: change this to where it is",
            f"RECORD = {record_path!r}  # the record of the release",
            ledger,
        ),
        _text("## The record", "What was released, and what was promised."),
        _lines("record = pf.Release.from_json(RECORD)", "record"),
        _text("## The model", f"The class Θ stands in the record. Its origin: {_plain(record.theta.origin)}."),
        _lines("theta = record.theta.theta()", "theta"),
        _text("## The table", "It is read as it was then: the same columns, gaps, filter, bins and groups."),
        _lines(*_reading_code(base, query), f"assert {same}, 'this is another table'", "data"),
        _text("## The noise", "Calibration needs public things only: Θ, the query, the lengths, and ε."),
        _lines(
            f"query = {_code(encode(query))}",
            f"mechanism = pf.{kind}.of(theta, data.length{options})",
            f"calibration = mechanism.calibrate(query, epsilon={record.epsilon!r}{best})",
            f"assert abs(calibration.unit_scale / {stated.unit_scale!r} - 1) < 1e-3, 'this is other noise'",
            "calibration",
        ),
        _text("## The release", "This step draws the noise, and spends the ledger's budget if one is named."),
        _lines(
            *(_NAME_LEDGER if charged else []),
            "ledger = None if LEDGER is None else pf.Ledger.open(LEDGER)",
            f"release = pf.release(data, query, calibration, ledger=ledger{valid})",
            "release",
        ),
        _lines("release.plot()"),
        _lines("release.to_frame()"),
        _text("## The proof", "The proof of the noise is computed again from the record of the new release."),
        _lines("verification = release.verify()", "assert verification.holds", "verification"),
    ]
    metadata: dict[str, Any] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        _MARK: 1,
    }
    numbered = [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells)]
    notebook = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


def _reading_code(base: Base | RowsBase, query: Any = None) -> list[str]:
    """Return the code that reads the table; options that are as by default are left out."""
    options: dict[str, Any] = {"subject": base.subject, "where": base.where, "by": base.by, "missing": base.missing}
    if isinstance(base, Base):
        opening = ["data = pf.read_sequences(", "    TABLE,", f"    state={base.state!r},", "    states=theta.states,"]
        options |= {"time": base.time, "max_gap": base.max_gap, "step": base.step, "bins": base.bins}
        options |= {"time_zone": base.time_zone, "ambiguous": base.ambiguous}
        options |= {"gaps": None if base.gaps == "unobserved" else base.gaps}
    else:
        opening = ["data = pf.read_rows(", "    TABLE,", "    theta,", "    columns=dict(record.data.rows.columns),"]
        options["joint"] = list(query.records) if isinstance(query, Joint) else None
    lines = [f"    {name}={value!r}," for name, value in options.items() if value is not None]
    return [*opening, *lines, ")"]


def _code(value: Any) -> str:
    """Return the Python code of a query, a secret or a setting that a record holds as plain values.

    Examples
    --------
    >>> _code({"is": "Window", "query": {"is": "Count", "states": ["walk"]}, "start": 3, "stop": 9})
    "pf.Window(query=pf.Count(states=['walk']), start=3, stop=9)"
    """
    if isinstance(value, list):
        return f"[{', '.join(map(_code, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    entries: dict[str, Any] = {**value}
    if entries.keys() == {"map"}:
        return f"{{{', '.join(f'{key!r}: {_code(part)}' for key, part in entries['map'].items())}}}"
    name = entries.pop("is")
    if name == "all of":
        return " & ".join(map(_code, entries["secrets"]))
    return f"pf.{name}({', '.join(f'{key}={_code(part)}' for key, part in entries.items())})"


def _text(*paragraphs: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": "\n\n".join(paragraphs).splitlines(keepends=True)}


def _lines(*lines: str) -> dict[str, Any]:
    source = "\n".join(lines).splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def _plain(text: str) -> str:
    """Return text for a paragraph in Markdown in which no name is a link, a heading or HTML."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~$<>])", r"\\\1", html.escape(printable(shortened(text)), quote=False))
