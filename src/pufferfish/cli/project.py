"""``pufferfish.toml``: what every command of a folder would repeat. Options on the command line come first.

It holds defaults of options, by the names that the command line has for them, and labels of states for reports: a
command with the file does what the same command does with these options written out. Paths are those of the folder that
the file is in.
"""

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec
from click.core import ParameterSource

from pufferfish._base.reading import display_path, is_address, read_file
from pufferfish._base.words import did_you_mean
from pufferfish.errors import ParameterError

__all__ = [
    "FILE",
    "Project",
    "ProjectFile",
    "ReportKeys",
    "TableKeys",
    "enter",
    "from_project",
    "here",
    "load_project",
    "new_file",
    "project_above",
]

FILE = "pufferfish.toml"

_KEY = "pufferfish.project"


class TableKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """How the tables are read: keys are the options of that name."""

    path: str | list[str] | None = None
    state: str | None = None
    columns: list[str] | None = None
    subject: str | None = None
    time: str | None = None
    time_zone: str | None = None
    ambiguous: str | None = None
    max_gap: str | None = None
    step: str | None = None
    bins: str | list[int | float] | None = None
    missing: str | None = None
    gaps: str | None = None


class ReportKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What stands above a report: keys are the options of that name."""

    title: str | None = None
    office: str | None = None
    period: str | None = None
    contact: str | None = None
    note: str | None = None
    words: str | None = None


class ProjectFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What a ``pufferfish.toml`` holds."""

    model: str | None = None
    ledger: str | None = None
    budget: Annotated[float, msgspec.Meta(gt=0)] | None = None
    protect: str | int | None = None
    within: str | int | float | None = None
    table: TableKeys = TableKeys()
    report: ReportKeys = ReportKeys()
    labels: dict[str, str] = {}


@dataclass(frozen=True)
class Project:
    """A folder with a ``pufferfish.toml``."""

    folder: Path
    file: ProjectFile

    def path_of(self, name: str) -> str:
        """Return a file of the folder as seen from where the program runs; an address is one everywhere."""
        if is_address(name):
            where, file = name.partition(":///")[::2]
            return f"{where}:///{self.path_of(file)}" if where in ("sqlite", "duckdb") else name
        return os.path.relpath(self.folder / name)

    @property
    def tables(self) -> list[str]:
        """The tables that are read where a command names none."""
        given = self.file.table.path
        return [self.path_of(path) for path in ([] if given is None else [given] if isinstance(given, str) else given)]

    @property
    def hidden(self) -> dict[str, str]:
        """What noise hides, where no ledger says it: the options ``protect`` and ``within``."""
        asked = {"protect": self.file.protect, "within": self.file.within}
        return {name: str(value) for name, value in asked.items() if value is not None}

    def defaults(self) -> dict[str, Any]:
        """Return for each command the options that it has from here, by the names of their values."""
        file, table = self.file, msgspec.structs.asdict(self.file.table)
        table.pop("path")
        if isinstance(table["bins"], list):
            table["bins"] = ",".join(map(str, table["bins"]))
        table["columns"] = None if table["columns"] is None else ",".join(f'"{name}"' for name in table["columns"])
        reading = {name: value for name, value in table.items() if value is not None}
        model = {"model": None if file.model is None else self.path_of(file.model)}
        ledger = {"ledger": None if file.ledger is None else self.path_of(file.ledger)}
        tables = {"tables": self.tables, "table": self.tables}
        above = msgspec.structs.asdict(file.report)
        above["words"] = None if above["words"] is None else self.path_of(above["words"])
        of_command = {
            "fit": reading | {"output": model["model"]},
            "check": reading,
            "compare": reading | model | self.hidden | {"table": self.tables},
            "release": reading | tables | model | (ledger if file.ledger else self.hidden),
            "robustness": model,
            "report": ledger | above,
        }
        of_ledger = {
            "create": reading | tables | model | ledger | self.hidden | {"budget": file.budget},
            "change": model | ledger,
            "plan": ledger,
            "show": ledger,
        }
        every = {name: _given(values) for name, values in of_command.items()}
        return every | {"ledger": {name: _given(values) for name, values in of_ledger.items()}}

    def free_output(self, name: str) -> str:
        """Return where a release is written that nobody named: ``name.json``, or the first ``name-2.json`` there is."""
        stem = "".join(each if each.isalnum() else "-" for each in name).strip("-") or "release"
        number = 1
        while (self.folder / (file := f"{stem}.json" if number == 1 else f"{stem}-{number}.json")).exists():
            number += 1
        return self.path_of(file)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, [])}


def load_project(place: str | None) -> Project | None:
    """Return the project of a folder, or of the one where the program runs; None where that has none.

    Raises
    ------
    ParameterError
        If the file is named and not there, or is no such file.
    """
    path = Path(FILE) if place is None else Path(place)
    path = path / FILE if path.is_dir() else path
    if place is None and not path.exists():
        return None
    try:
        content = tomllib.loads(read_file(path).decode("utf-8-sig"))
        file = msgspec.convert(content, ProjectFile)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{display_path(path)} is no TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise ParameterError(f"{display_path(path)}: {_in_words(str(error))}") from error
    return Project(path.resolve().parent, file)


def _in_words(said: str) -> str:
    """Return what is wrong with a key as this program says it, and which key was probably meant."""
    unknown = said.split("`")
    if "unknown field" in said:
        of_table = {"$.table": TableKeys, "$.report": ReportKeys}
        fields = next((keys for name, keys in of_table.items() if name in said), ProjectFile).__struct_fields__
        return f"there is no key {unknown[1]!r}.{did_you_mean(unknown[1], fields)} Keys are {', '.join(fields)}"
    if (wrong := _WRONG.fullmatch(said)) is None:
        return said.replace("$.", "").replace("`", "'").replace(" | null", "")
    expected, above, got, key = wrong.groups()
    allowed = [kind for kind in expected.split(" | ") if kind != "null"]
    kinds = [_KINDS.get(kind, kind) for kind in allowed if not (kind == "int" and "float" in allowed)]
    rule = " or ".join(kinds) + ("" if above is None else f" above {float(above):g}")
    return f"{_key(key)} is {'out of range' if got is None else _KINDS.get(got, got)}, expected {rule}"


_WRONG = re.compile(r"Expected `([^`]+)`(?: > ([\d.]+))?(?:, got `([^`]+)`)? - at `([^`]+)`")

_KINDS = {
    "str": "a text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table of keys",
    "date": "a date",
    "datetime": "a time",
    "time": "a time",
}
"""What TOML's kinds of values are called."""


def _key(place: str) -> str:
    """Name a key of the file by its place, as it is written there.

    Examples
    --------
    >>> _key("$.budget"), _key("$.table.bins[1]"), _key("$.labels[...]")
    ('budget', 'an entry of bins of [table]', 'a value of [labels]')
    """
    table, _, key = place.removeprefix("$.").split("[")[0].partition(".")
    if key:
        return f"{'an entry of ' if place.endswith(']') else ''}{key} of [{table}]"
    return f"a value of [{table}]" if place.endswith("[...]") else table


def new_file() -> str:
    """Return where ``init`` writes: into the folder that ``--project`` names."""
    place = click.get_current_context().find_root().params["project"]
    return FILE if place is None else os.path.join(place, FILE) if os.path.isdir(place) else place


def project_above() -> str | None:
    """Return the nearest folder above the one where the program runs that has a project, which is not read there."""
    if Path(FILE).exists():
        return None
    folder = next((folder for folder in Path.cwd().parents if (folder / FILE).is_file()), None)
    return None if folder is None else os.path.relpath(folder)


def here() -> Project | None:
    """Return the project of the command that runs."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.find_root().meta.get(_KEY)


def enter(place: str | None) -> None:
    """Give the options of a project to the command that is called next."""
    context = click.get_current_context()
    project = None if context.invoked_subcommand == "init" else load_project(place)  # which writes it
    if project is not None:
        context.meta[_KEY] = project
        context.default_map = project.defaults()


def from_project(name: str) -> bool:
    """Whether the value of an option of the command that runs stands in the project's file, and was not given."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.DEFAULT_MAP
