"""``pufferfish.toml``: what every command of a folder would repeat. Options on the command line come first.

It holds defaults of options, by the names that the command line has for them, and labels of states for reports: a
command with the file does what the same command does with these options written out. Paths are those of the folder that
the file is in.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pufferfish._base.reading import display_path, is_address, read_file
from pufferfish._base.words import did_you_mean
from pufferfish.errors import ParameterError

FILE = "pufferfish.toml"

_KEY = "pufferfish.project"


@dataclass(frozen=True)
class Project:
    """A folder with a ``pufferfish.toml``, and the keys that stand there."""

    folder: Path
    keys: Mapping[str, Any]

    def path_of(self, name: str) -> str:
        """Return a file of the folder as seen from where the program runs; an address is one everywhere."""
        if is_address(name):
            where, file = name.partition(":///")[::2]
            return f"{where}:///{self.path_of(file)}" if where in ("sqlite", "duckdb") else name
        return os.path.relpath(self.folder / name)

    @property
    def hidden(self) -> dict[str, str]:
        """What noise hides, where no ledger says it: the options ``protect`` and ``within``."""
        return {name: str(self.keys[name]) for name in ("protect", "within") if name in self.keys}

    def defaults(self) -> dict[str, Any]:
        """Return for each command the options that it has from here, by the names of their values."""
        paths = {name: self.path_of(self.keys[name]) for name in ("model", "ledger") if name in self.keys}
        model, ledger = ({name: paths[name]} if name in paths else {} for name in ("model", "ledger"))
        reading = dict(self.keys.get("table", {}))
        given = reading.pop("path", [])
        files = [self.path_of(path) for path in ([given] if isinstance(given, str) else given)]
        tables = {"tables": files, "table": files} if files else {}
        if isinstance(reading.get("bins"), list):
            reading["bins"] = ",".join(map(str, reading["bins"]))
        if "columns" in reading:
            reading["columns"] = ",".join(f'"{name}"' for name in reading["columns"])
        above = dict(self.keys.get("report", {}))
        if "words" in above:
            above["words"] = self.path_of(above["words"])
        budget = {name: value for name, value in self.keys.items() if name == "budget"}
        return {
            "fit": reading | ({"output": model["model"]} if model else {}),
            "check": reading,
            "compare": reading | model | self.hidden | tables,
            "release": reading | tables | model | (ledger or self.hidden),
            "robustness": model,
            "report": ledger | above,
            "ledger": {
                "create": reading | tables | model | ledger | self.hidden | budget,
                "change": model | ledger,
                "plan": ledger,
                "show": ledger,
            },
        }

    def free_output(self, name: str) -> str:
        """Return where a release is written that nobody named: ``name.json``, or the first ``name-2.json`` there is."""
        stem = "".join(each if each.isalnum() else "-" for each in name).strip("-") or "release"
        number = 1
        while (self.folder / (file := f"{stem}.json" if number == 1 else f"{stem}-{number}.json")).exists():
            number += 1
        return self.path_of(file)


def load_project(place: str | None) -> Project | None:
    """Return the project of a folder, or of the one where the program runs if any; a named one has to be there."""
    path = Path(FILE) if place is None else Path(place)
    path = path / FILE if path.is_dir() else path
    if place is None and not path.exists():
        return None
    try:
        keys = tomllib.loads(read_file(path).decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{display_path(path)} is no TOML: {error}") from error
    try:
        _check_keys(keys)
    except ParameterError as error:
        raise ParameterError(f"{display_path(path)}: {error}") from error
    return Project(path.resolve().parent, keys)


# -- What may stand in the file: options, by their names -------------------------------------------------------------

_WORDS = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table of keys",
    date: "a date",
    datetime: "a time",
    time: "a time",
}
"""What TOML's kinds of values are called."""


def _check_keys(keys: Mapping[str, Any]) -> None:
    """Refuse keys that are no options, and values of another kind than these take."""
    from pufferfish.cli._tables import Reading  # here: commands that have no file load less
    from pufferfish.cli.options import CoverOptions

    text: list[Any] = [str]  # the kinds that a value may have; of a list, those of an entry
    table = {each.name: text for each in fields(Reading) if each.name not in ("where", "spark", "by")}
    table |= {"path": [str, [str]], "columns": [[str]], "bins": [str, [float]]}
    top = {"model": text, "ledger": text, "budget": [float], "protect": [int, str], "within": [float, str]}
    tables = {"table": table, "report": {each.name: text for each in fields(CoverOptions)}, "labels": None}
    _check_known(keys, [*top, *tables])
    for name, value in keys.items():
        if name in top:
            _check_kind(value, top[name], name)
            continue
        _check_kind(value, [dict], name)
        known = tables[name]
        if known is not None:
            _check_known(value, known)
        for key, inside in value.items():
            _check_kind(inside, text if known is None else known[key], f"{key if known else 'a value'} of [{name}]")
    paths = {name: keys[name] for name in ("model", "ledger") if name in keys} | {
        "path": keys.get("table", {}).get("path", [])
    }
    for name, path in paths.items():
        if "" in ([path] if isinstance(path, str) else path):
            raise ParameterError(f"{name} is empty, expected the name of a file: write one, or leave the line out")
    if not keys.get("budget", 1) > 0:
        raise ParameterError("budget is out of range, expected a number above 0")


def _check_known(keys: Mapping[str, Any], known: Mapping[str, Any] | list[str]) -> None:
    for key in keys:
        if key not in known:
            raise ParameterError(f"there is no key {key!r}.{did_you_mean(key, known)} Keys: {', '.join(known)}")


def _check_kind(value: Any, kinds: list[Any], name: str) -> None:
    entries = next((kind for kind in kinds if isinstance(kind, list)), None)
    if entries is not None and isinstance(value, list):
        for entry in value:
            _check_kind(entry, entries, f"an entry of {name}")
    elif type(value) not in kinds and not (float in kinds and type(value) is int):
        rule = " or ".join(_WORDS[list if isinstance(kind, list) else kind] for kind in kinds)
        raise ParameterError(f"{name} is {_WORDS[type(value)]}, expected {rule}")


# -- The project of the command that runs ----------------------------------------------------------------------------


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
