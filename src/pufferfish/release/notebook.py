"""A notebook that makes a release again: everything but the noise follows from its record.

The notebook is plain JSON (nbformat 4.5), written without any library. Whoever wrote the record may want to run code of
theirs on the reader's machine: so queries and settings are made from the record first, by constructors that refuse what
they do not know, and their code is written from the objects; all else are literals of Python.
"""

import html
import json
import re
from typing import Any

from pufferfish._base.words import at_most
from pufferfish._base.writing import Kind
from pufferfish.data.rows import RowsBase
from pufferfish.data.sequences import Base
from pufferfish.errors import NotApplicableError, RecordError, printable, shortened
from pufferfish.mechanisms import MECHANISMS, ParticipantDP
from pufferfish.queries import Joint
from pufferfish.release.check import BROKEN
from pufferfish.release.facts import decode, encode
from pufferfish.release.record import ReleaseFields, calibration_again

__all__ = ["NOTEBOOK", "notebook_of"]

_MARK = "pufferfish-notebook"

_NAME_LEDGER = [
    "if not LEDGER:",  # no assert, which python -O leaves out
    "    raise ValueError('this release was charged to a ledger: set LEDGER in the first cell to its file')",
]


def _is_notebook(content: bytes) -> bool:
    return f'"{_MARK}"'.encode() in content and b'"nbformat"' in content


NOTEBOOK = Kind(
    "notebook of a release",
    _is_notebook,
    "you may have worked in it; name another file, or --overwrite",
    (".ipynb",),
)
"""Notebooks say in their metadata who wrote them."""


def notebook_of(
    record: ReleaseFields, record_path: str, table_path: str | None = None, ledger_path: str | None = None
) -> bytes:
    """Return a notebook that makes a release again, but for its noise.

    Parameters
    ----------
    record : Release
        The release.
    record_path : str
        Where its record is, as seen from the notebook's folder.
    table_path : str, optional
        The same of its table; by default the file that the record names.
    ledger_path : str, optional
        The same of the ledger that it was charged to; by default the reader has to fill it in.
    """
    refusal = "a notebook repeats the release of a table from its record, but "
    if record.subjects is not None:
        raise NotApplicableError(refusal + "this is a release for each subject: use release_each")
    stated, base = record.calibration, record.data.reading
    if base is None:
        raise NotApplicableError(refusal + "this one is of a database that was given by hand, not of a table")
    kinds = {kind.name: kind for kind in (*MECHANISMS, ParticipantDP)}
    if record.mechanism.name not in kinds:
        raise NotApplicableError(
            refusal + f"this one is by {shortened(record.mechanism.title)}, which it cannot set up"
        )
    if stated.query is None or stated.settings is None or record.theta.any_theta() is None:
        raise NotApplicableError(refusal + "this one has a function of yours, which a record cannot hold")
    source = table_path or (base.source if "." in base.source else "table.csv")
    try:
        query = calibration_again(record).query
        settings = {name: encode(decode(value)) for name, value in stated.settings.items() if value is not None}
    except BROKEN as error:
        raise RecordError(f"the noise cannot be set up as the record says: {shortened(str(error))}") from None
    settings_code = "".join(f", {name}={_code(value)}" for name, value in settings.items())
    noise_code = ', noise="best"' if record.noise.measurements is not None else ""
    valid_code = ', postprocess="valid"' if record.postprocessing is not None else ""
    charged = record.ledger is not None
    cells = [
        _text(
            f"# {_plain(record.query.kind)}, ε = {at_most(record.epsilon)}",
            f"This notebook makes a release again: {_plain(record.query.description)}. It reads the table in the same "
            "way, under the same model, and calibrates the same noise. The noise itself is drawn anew.",
            "**Each run is another release of the same records.** What is published of several runs leaks more than "
            "one release does. "
            + (
                "Every run is charged to the ledger `LEDGER`, which counts what all of them leak together."
                if ledger_path is not None
                else "In the next cell set `LEDGER` to the ledger of the table: then it counts what all runs leak "
                "together. Without a ledger publish only one run."
            ),
        ),
        _lines(
            "import pufferfish as pf",
            "",
            f"TABLE = {source!r}  # the private table: change this to where it is",
            f"RECORD = {record_path!r}  # the record of the release",
            f"LEDGER = {ledger_path!r}  # the ledger that it was charged to"
            if ledger_path is not None
            else f"LEDGER = None  # the ledger {'that it was charged to' if charged else 'of the table'}, such as "
            f"'ledger.json'{'' if charged else ', if there is one'}",
        ),
        _text("## The record", "What was released, and what was promised."),
        _lines("record = pf.Release.from_json(RECORD)", "record"),
        _text("## The model", f"The class Θ stands in the record. Its origin: {_plain(record.theta.origin)}."),
        _lines("theta = record.theta.theta()", "theta"),
        _text("## The table", "It is read as it was then: the same columns, gaps, filter, bins and groups."),
        _lines(*_reading(base), "assert data.records == record.data.records, 'this is another table'", "data")
        if isinstance(base, Base)
        else _lines(
            *_reading(base, query), "assert data.length == record.data.subjects, 'this is another table'", "data"
        ),
        _text("## The noise", "Calibration needs public things only: Θ, the query, the lengths, and ε."),
        _lines(
            f"query = {_code(encode(query))}",
            f"mechanism = pf.{kinds[record.mechanism.name].__name__}.of(theta, data.length{settings_code})",
            f"calibration = mechanism.calibrate(query, epsilon={record.epsilon!r}{noise_code})",
            f"assert abs(calibration.unit_scale / {stated.unit_scale!r} - 1) < 1e-3, 'this is other noise'",
            "calibration",
        ),
        _text("## The release", "This step draws the noise, and spends the ledger's budget if one is named."),
        _lines(
            *(_NAME_LEDGER if charged else []),
            "ledger = None if LEDGER is None else pf.Ledger.open(LEDGER)",
            f"release = pf.release(data, query, calibration, ledger=ledger{valid_code})",
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
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


def _reading(base: Base | RowsBase, query: Any = None) -> list[str]:
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
