"""What a check of a model found: the verdict, numbers that stand in its file, and what noise leaks if it is wrong."""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.view import Shown
from pufferfish._base.writing import record_kind, write_whole
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.fit.left_out import Gain
from pufferfish.fit.model_file import Model
from pufferfish.mechanisms import LeakagePropagation
from pufferfish.queries import Query
from pufferfish.theta.record import CONDEMNED, Checking
from pufferfish.theta.states import state_label

if TYPE_CHECKING:
    from pufferfish.data.rows import Rows
    from pufferfish.data.sequences import Sequences

FORMAT, VERSION = "pufferfish-check", 2

CHECK = record_kind("check", FORMAT, "name another file, or give --overwrite")


class Remedy(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to do about a model that a check doubts.

    ``kind`` is what the new model knows, as in :class:`RicherModel`, or "arrow" or "tables" of networks; ``command``
    fits it. ``noise_multiplier`` is about as much noise as it needs, at the same ε.
    """

    kind: str
    command: str
    noise_multiplier: float | None = None

    @property
    def arguments(self) -> list[str]:
        """The command in its parts, for a program that runs it without a shell."""
        return shlex.split(self.command)


class Verdict(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether to go on with a model, why, and what to do if not; prints as a list.

    *Do not go on* if data contradict the model and its noise leaks too much for that; *in doubt* if too little is
    known to tell. ``reasons`` say what decides first, then what is in doubt; ``remedies`` what to do next.

    Examples
    --------
    >>> print(Verdict(word="in doubt", reasons=("12 transitions tell little",)))
    In doubt.
      - 12 transitions tell little
    """

    word: Literal["go on", "in doubt", "do not go on"]
    reasons: tuple[str, ...]
    remedies: tuple[Remedy, ...] = ()

    def __str__(self) -> str:
        head = "if an adversary may know more:" if self.word == "go on" else "next:"
        commands = [head, *(f"  {remedy.command}" for remedy in self.remedies)] if self.remedies else []
        return "\n".join([self.sentence, *(f"  - {reason}" for reason in self.reasons), *commands])

    @property
    def sentence(self) -> str:
        """The word as a sentence."""
        return f"{self.word.capitalize()}."


class Checked(Shown):
    """What all checks are: a verdict, numbers, and a file."""

    __slots__ = ()
    verdict: Verdict

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.verdict.sentence!r})"

    def to_json(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the numbers into a file; infinite ones are null there.

        Raises
        ------
        RecordError
            If the file cannot be written, or something else stands there.
        """
        write_whole(path, msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n", CHECK, overwrite=overwrite)


class SubjectCheck(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether the model fits one subject; ``subject`` is "" where the table is one chain.

    ``member`` is the number of the member of Θ that makes its transitions likeliest, ``nats`` by how much the
    subject's own chain makes left-out days likelier than that, ``error`` the standard error; ``differs`` whether that
    is clear, of so many subjects. ``leakage`` is what the noise leaks to somebody who knows that chain, in nats.
    """

    subject: str
    transitions: int
    member: int | None = None
    nats: float | None = None
    error: float | None = None
    differs: bool = False
    leakage: float | None = None


class StateStays(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How many records a state lasts: mean and 95% quantile.

    ``observed`` is in the data, by Kaplan and Meier's estimate, None where no stay was seen to end; ``least`` and
    ``most`` are under the members of Θ with the shortest and the longest stays, None where no member says it.
    """

    state: str
    observed: tuple[float, float] | None
    least: tuple[float, float] | None = None
    most: tuple[float, float] | None = None


class OverlapAfter(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How much is forgotten this many steps later or earlier: the smallest overlap of the laws given two states.

    ``worst`` is that of ``subject``, who forgets least, ``pooled`` that of all taken as one, ``model`` the least of the
    members of Θ; None for chains that have no stationary law.
    """

    steps: int
    worst: float
    subject: str
    pooled: float
    model: float | None


class RicherModel(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A richer model, whether the data demand it, and what the checked model's noise leaks to somebody who knows it."""

    kind: str
    """What it knows: one chain of these data ("pooled"), everybody's ("own"), a matrix for each "hour", "order2", kinds
    of stay ("stays"), everybody's own of these ("own order2", "own stays"), or how soon the least forgetful subject
    "forgets"; of networks "tables" or "arrow".
    """
    nats: float | None = None
    error: float | None = None
    """By how much it makes left-out days likelier than Θ, and the standard error; None where that is not asked."""
    leakage: float | None = None
    """In nats; infinite where nothing is proved."""
    noise_multiplier: float | None = None
    least: float | None = None
    """The noise that it needs at the same ε, and, where Θ says no likelihoods, the 10% quantile by resampled days."""
    by_chance: float | None = None
    """The largest multiplier at ε = 1 that own chains need by chance in a long series: of 20 draws from one chain."""
    decided_by: str | None = None
    """The member that decides, where there are several."""
    reason: str | None = None
    """Why there are no numbers."""

    @property
    def demanded(self) -> bool:
        """Whether left-out days demand it."""
        return self.nats is not None and self.error is not None and Gain(self.nats, self.error).demanded


class Found(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every check found, as its file holds it.

    ``origin`` and ``source`` say where Θ came from, and what it was held against. ``noise_multiplier`` is that of the
    noise that is spoken of at ``epsilon``, by :class:`LeakagePropagation`: for a histogram of these records, or the
    marginals of all columns.
    """

    format: str = FORMAT
    version: int = VERSION
    verdict: Verdict
    origin: str
    source: str
    epsilon: float
    noise_multiplier: float | None


class CheckFields(Found, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a check of a model of chains found besides.

    Observed records and transitions; whether left-out days demand richer models, and what the noise leaks under these;
    who lives by the model; what could not be asked, and why; of how many people the noise covers the own chains, and
    what that rests on ("" where nothing can be said); how long states last; how soon the present is forgotten; records
    by hour (rows) and state; and for every state the least and the largest share under the members of Θ, empty without
    stationary laws.
    """

    records: int
    transitions: int
    richer: tuple[RicherModel, ...]
    subjects: tuple[SubjectCheck, ...]
    not_asked: tuple[str, ...]
    coverage: str
    stays: tuple[StateStays, ...]
    overlaps: tuple[OverlapAfter, ...]
    states: tuple[str, ...]
    occupancy: tuple[tuple[int, ...], ...] | None
    stationary: tuple[tuple[float, float], ...]


# -- What the noise for a model leaks to somebody who knows another one -------------------------------------------


class NoiseFor:
    """Noise for a class Θ, of one query at one ε; or why there is none."""

    def __init__(self, theta: Any, length: Any, query: Query, epsilon: float) -> None:
        self._length, self._query, self._epsilon = length, query, epsilon
        self.multiplier: float | None = None
        """The noise multiplier."""
        self._loss: Any = None
        self._reason = ""
        try:
            bound = LeakagePropagation(theta, length)
            if bound.theta.networks:
                noise = bound.calibrate(query, epsilon)
                self.multiplier, self._loss = noise.noise_multiplier, noise.node_loss
            else:
                self.multiplier = bound.noise_to_compare(query, epsilon)
                self._loss = 1 / self.multiplier
        except (NotApplicableError, ModelError) as error:
            self._reason = f"there is no noise for the model itself: {error}"

    def leakage(self, model: Any) -> float:
        """Return what it leaks under a model."""
        return LeakagePropagation(model, self._length).prove(self._loss)[0]

    def under(self, asked: RicherModel, make: Callable[[], Any]) -> RicherModel:
        """Return a richer model with what the noise leaks under it, and the noise that it needs."""
        if self.multiplier is None:
            return msgspec.structs.replace(asked, reason=self._reason)
        try:
            bound = LeakagePropagation(theta := make(), self._length)
            leaks, witness = bound.prove(self._loss)
            needs = bound.noise_to_compare(self._query, self._epsilon)
        except (ModelError, ParameterError, NotApplicableError) as error:
            return msgspec.structs.replace(asked, reason=str(error))
        names, node, who = getattr(theta, "names", ()), getattr(witness, "node", None), None
        if bound.theta.networks and node is not None:
            who = state_label(node)
        elif len(names) > 1 and witness is not None:
            who = names[witness.theta]
        return msgspec.structs.replace(asked, leakage=leaks, noise_multiplier=needs, decided_by=who)


# -- A verdict kept in the file of the model: the word, the day, and which public table it was ------------------------
# Never of a table that is protected: word and fingerprint would be exact functions of its rows, in a file that is
# public. So no verdict is kept of a table that a ledger or a release in sight is about, by its name; and a release
# refuses a model whose verdict is of the table that it reads, by its fingerprint.

_PROTECTING = ("pufferfish-release", "pufferfish-ledger", "pufferfish-measurement")

_LARGEST = 2**25  # bytes of a file that may be a record: ledgers grow


def with_verdict(model: Model, check: Checked, data: "Sequences | Rows") -> Model:
    """Return a model that says what its check found; one that another table condemned stays condemned."""
    before = model.checked
    if before is not None and before.word == CONDEMNED and before.fingerprint != data.fingerprint:
        return model
    same = data.fingerprint is not None and data.fingerprint in (model.fitted_on or "").split()
    checking = Checking(
        word=check.verdict.word,
        date=datetime.now(UTC).date().isoformat(),
        source=data.base.source,
        same=same,
        fingerprint=data.fingerprint,
    )
    return replace(model, checked=checking)


def protecting(table: str, folders: Iterable[str | os.PathLike[str]]) -> Path | None:
    """Return a ledger or release in some folders that is about a table, or file of one, of this name; None for none."""
    names = set(_files_of(table))
    for folder in dict.fromkeys(Path(folder).resolve() for folder in folders):
        for path in sorted(folder.glob("*.json")):
            if path.is_file() and path.stat().st_size <= _LARGEST and not names.isdisjoint(_tables_of(path)):
                return path
    return None


def _tables_of(path: Path) -> Iterator[str]:
    """Yield the names of the tables that a ledger or a release is about; none of any other file."""
    try:
        record: Any = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, OSError, RecursionError):
        return
    if not isinstance(record, dict) or record.get("format") not in _PROTECTING:
        return
    for holder in (record, record.get("data")):
        for name in ("base", "rows_base", "rows"):
            base = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(base, dict) and isinstance(base.get("source"), str):
                yield from _files_of(base["source"])


def _files_of(table: str) -> list[str]:
    return [table, *table.split(", ")]
