"""What a check of a model found: the verdict, numbers that stand in its file, and how they print."""

import os
import shlex
from typing import Literal

import msgspec

from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.view import Shown
from pufferfish._base.writing import record_kind, write_whole
from pufferfish.fit.left_out import Gain

__all__ = [
    "CHECK",
    "CheckFields",
    "Checked",
    "NetworkCheckFields",
    "OverlapAfter",
    "PairCheck",
    "Remedy",
    "RicherModel",
    "StateStays",
    "SubjectCheck",
    "Verdict",
]

FORMAT, VERSION = "pufferfish-check", 2

CHECK = record_kind("check", FORMAT, "name another file, or give --overwrite")


class Remedy(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to do about a model that a check doubts.

    Parameters
    ----------
    kind : str
        What the new model knows, as :class:`RicherModel` names it; "arrow" or "tables" of networks.
    command : str
        A command that fits it.
    noise_multiplier : float or None
        About as much noise it needs, at the same ε.
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

    Parameters
    ----------
    word : {"go on", "in doubt", "do not go on"}
        In one word: *do not go on* if data contradict the model and its noise leaks too much for that, *in doubt* if
        too little is known to tell.
    reasons : tuple of str
        What decides first, then what is in doubt.
    remedies : tuple of Remedy
        What to do next.

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
    """Whether the model fits one subject.

    Parameters
    ----------
    subject : str
        The subject; "" where the table is one chain.
    transitions : int
        How many there are.
    member : int or None
        The member of Θ that makes them likeliest.
    nats, error : float or None
        By how much the subject's own chain makes left-out days likelier than that member, and the standard error.
    differs : bool
        Whether that is clear, of so many subjects.
    leakage : float or None
        What the noise leaks to somebody who knows that chain.
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

    Parameters
    ----------
    state : str
        The state.
    observed : tuple of float or None
        In the data, by Kaplan and Meier's estimate; None where no stay was seen to end.
    least, most : tuple of float or None
        Under the members of Θ with the shortest and the longest stays; None where no member says it.
    """

    state: str
    observed: tuple[float, float] | None
    least: tuple[float, float] | None = None
    most: tuple[float, float] | None = None


class OverlapAfter(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How much is forgotten after some steps: the smallest overlap of the laws given two states.

    Parameters
    ----------
    steps : int
        After (and before) so many steps.
    worst : float
        Of the subject with the least.
    subject : str
        That subject.
    pooled : float
        Of all subjects taken as one.
    model : float or None
        Of the model, the least of its members; None for chains that have no stationary law.
    """

    steps: int
    worst: float
    subject: str
    pooled: float
    model: float | None


class RicherModel(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A richer model, whether the data demand it, and what the checked model's noise leaks to somebody who knows it.

    Parameters
    ----------
    kind : {"pooled", "own", "hour", "order2", "stays", "own order2", "own stays", "forgets"}
        One chain fitted to these data; everybody's own; a matrix for each hour; a chain of order 2; several kinds of
        stay; everybody's own of these; how soon the least forgetful subject forgets.
    nats, error : float or None
        By how much it makes left-out days likelier than Θ does, and the standard error; None where Θ says no
        likelihoods, or that was not asked.
    leakage : float or None
        In nats; infinite where nothing is proved.
    noise_multiplier : float or None
        The noise that this model needs at the same ε.
    least : float or None
        The same by days drawn again, 10%; where a member of Θ says no likelihoods.
    by_chance : float or None
        The largest noise multiplier that everybody's own chains need by chance, where all live by one: at ε = 1 in a
        long series, the largest of 20 draws.
    decided_by : str or None
        The member that decides, where there are several.
    reason : str or None
        Why there are no numbers.
    """

    kind: str
    nats: float | None = None
    error: float | None = None
    leakage: float | None = None
    noise_multiplier: float | None = None
    least: float | None = None
    by_chance: float | None = None
    decided_by: str | None = None
    reason: str | None = None

    @property
    def demanded(self) -> bool:
        """Whether left-out days demand it."""
        return self.nats is not None and self.error is not None and Gain(self.nats, self.error).demanded


class Found(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every check found, as its file holds it.

    Parameters
    ----------
    verdict : Verdict
        Whether to go on, why, and what to do if not.
    origin, source : str
        Where Θ came from, and what it was held against.
    epsilon : float
        Privacy parameter of the noise that is spoken of.
    noise_multiplier : float or None
        Of a histogram of these records, or the marginals of all columns, under the model, by
        :class:`LeakagePropagation`.
    """

    format: str = FORMAT
    version: int = VERSION
    verdict: Verdict
    origin: str
    source: str
    epsilon: float
    noise_multiplier: float | None


class CheckFields(Found, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a check of a model found besides.

    Parameters
    ----------
    records, transitions : int
        Observed records and transitions.
    richer : tuple of RicherModel
        Whether left-out days demand richer models, and what the noise leaks under these.
    subjects : tuple of SubjectCheck
        Who lives by the model.
    not_asked : tuple of str
        What could not be asked, and why.
    coverage : str
        Of how many people the noise covers the own chains, and what that rests on; "" where nothing can be said.
    stays : tuple of StateStays
        How long states last.
    overlaps : tuple of OverlapAfter
        How soon the present is forgotten.
    states : tuple of str
        Names of the states.
    occupancy : tuple of tuple of int or None
        Records by hour (rows) and state.
    stationary : tuple of tuple of float
        For every state the least and the largest share under the members of Θ; empty without stationary laws.
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


# -- Checks of networks ----------------------------------------------------------------------------------------------


class PairCheck(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether public data show that two nodes of a network depend on each other, given others.

    Parameters
    ----------
    nodes : tuple of str
        The nodes: the second is the one whose parents are given, and to which an arrow would go.
    given : tuple of str
        The parents of the second; of an arrow of the model its other parents.
    gain : float
        By how many nats in all the dependence fits the data better, as it was tested: half of the statistic G.
    freedom : int
        The degrees of freedom of G; 0 where what is given leaves nothing open.
    p : float
        The probability of as much by chance, for this pair alone.
    expected : float
        The rows in which two of their values would meet by chance, for the two that would meet least often.
    rarest : tuple of str
        These values.
    judged : {"dependent", "not seen", "too few", "not tested"}
        What the data say: that the nodes depend on each other; nothing, though they would show a strong dependence; or
        nothing, for they are too few; or that what is given leaves nothing open, or has too many combinations.
    richer : RicherModel or None
        What the model's noise leaks under the network with this arrow, for pairs without one that are dependent.
    """

    nodes: tuple[str, str]
    given: tuple[str, ...]
    gain: float
    freedom: int
    p: float
    expected: float
    rarest: tuple[str, ...]
    judged: str
    richer: RicherModel | None = None


class NetworkCheckFields(Found, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a check of a network found besides.

    Parameters
    ----------
    rows : int
        Rows of data.
    gain : float
        By how many nats in all tables of these data, with the model's arrows, predict each row from all others better
        than the model's tables do; below 0 where they do not.
    tables : RicherModel
        What the noise leaks under the network of these tables.
    pairs : tuple of PairCheck
        The pairs that the model calls independent given the parents of one of them.
    arrows : tuple of PairCheck
        The model's arrows.
    unread : tuple of str
        Nodes without a column, and those with such a parent: what cannot be checked of them is left out.
    """

    kind: str = "Bayesian networks"
    rows: int
    gain: float
    clearly: float
    tables: RicherModel
    pairs: tuple[PairCheck, ...]
    arrows: tuple[PairCheck, ...]
    unread: tuple[str, ...]
