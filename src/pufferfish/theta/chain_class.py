"""Classes Θ of chains: finite lists, whose members may be of several kinds, and continua, which no list can hold.

A member of a list is a Markov chain, a chain that is more than one matrix, or a whole continuum. A promise is made
under each member alone, so what is proved of each run of members of one kind, a *part*, is proved of the list: the
largest decides. Whatever asks for the kind of Θ asks a part.
"""

import itertools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import listed
from pufferfish._base.frozen import FrozenDict, ReadOnly
from pufferfish._base.view import MOST_COLUMNS, MOST_ROWS, Grid, Shown, View, counted
from pufferfish._draw.chart import Picture
from pufferfish.errors import ModelError, shortened
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.shown import law_in_words, members_grid, of_one, states_in_words
from pufferfish.theta.tuple_chains import HigherOrderChain, StaysChain

STATED = "stated by the user"

MIXED = "mixed chains"  # word for members of several kinds


def members_in_words(members: int) -> str:
    """Return what belonging to a class of so many members means, as releases say it."""
    return "the one of Θ" if members == 1 else f"one of the {members} of Θ"


class ClassOfModels(Shown, ReadOnly):
    """A class Θ: what is the same of all kinds of classes, unless a kind says otherwise."""

    __slots__ = ()

    of_chains: bool = True  # whether the records of the class are steps of chains

    @property
    def k(self: Any) -> int:
        """Number of states."""
        return len(self.states)

    @property
    def kinds(self: Any) -> tuple[str, ...]:
        """Words for the members of each kind."""
        return (self.kind,)

    @property
    def parts(self) -> tuple[tuple[int, Any], ...]:
        """Each run of members of one kind as a class of its own, after the number of its first one."""
        return ((0, self),)


class FiniteClass(ClassOfModels):
    """A class Θ whose members θ stand in a list; a guarantee holds under every one of them."""

    __slots__ = ()

    def _check(self: Any, field: str, listed_as: str, one: str) -> tuple[Any, ...]:
        """Return the members that are given as a tuple, refused where there are none, or the origin is no text."""
        members = tuple(listed(getattr(self, field), field, listed_as, ModelError))
        if not isinstance(self.origin, str):
            raise ModelError(f"origin is {shortened(repr(self.origin))}, expected text: where Θ came from")
        if not members:
            raise ModelError(f"theta is empty: give at least one {one}")
        return members

    @property
    def in_words(self: Any) -> str:
        """What belonging to it means, as releases say it."""
        return members_in_words(len(self.members))

    @property
    def kind(self: Any) -> str:
        """Word for its members."""
        return self.members[0].kind

    @property
    def states(self: Any) -> tuple[str, ...]:
        """Names of the k states."""
        return self.members[0].states


def check_states(i: int, member: Any, first: Any) -> None:
    """Refuse a member whose states are not those of the first."""
    if member.states != first.states:
        raise ModelError(
            f"theta[{i}] has states {', '.join(member.states)} and theta[0] has {', '.join(first.states)}: "
            "all members of a class need the same states in the same order"
        )


CHAIN_MODELS = (PeriodicChain, HigherOrderChain, StaysChain)  # kinds of chains that are more than one matrix


@dataclass(frozen=True, slots=True)
class ChainClass(FiniteClass):
    """A finite class Θ of chains over the same states, of one kind or of several.

    Parameters
    ----------
    members : tuple of MarkovChain, PeriodicChain, HigherOrderChain, IntervalChain, …
        The members θ; a class such as :class:`IntervalChain` may be one among others. Chains with a clock have the same
        step.
    origin : str
        Where Θ came from, printed with every release: a class fitted to private data protects nobody. By default what
        members say of themselves.
    stands_for_more : bool, default False
        Whether the chains only stand for a class described otherwise, whose states are not known; noise can be
        calibrated for it, but nothing released under it.
    names : tuple of str, optional
        What the members are called, one name each, such as whose habits they are.

    Examples
    --------
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> second = HigherOrderChain([[[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.2, 0.8]]])
    >>> theta = ChainClass((chain, second), origin="time-use survey 2019")
    >>> theta.states, theta.kinds
    (('0', '1'), ('Markov chains', 'Markov chains of higher order'))
    """

    members: "tuple[ChainMember, ...]"
    origin: str = STATED
    stands_for_more: bool = False
    names: tuple[str, ...] = ()
    chains: tuple[MarkovChain, ...] = field(init=False, compare=False)
    """The members, where all are Markov chains of one matrix; else none."""

    networks: ClassVar[tuple[Any, ...]] = ()
    variables: ClassVar[None] = None

    def __post_init__(self) -> None:
        members = self._check("members", "a list of chains", "chain")
        for i, member in enumerate(members):
            if not isinstance(member, ChainMember):
                what = f"theta[{i}] is {type(member).__name__}, expected a MarkovChain, or another model of chains"
                raise ModelError(f"{what}; of a class or a model take its members, as theta.members")
            check_states(i, member, members[0])
        if len(members) == 1 and isinstance(members[0], Continuum):
            raise ModelError(f"theta[0] is {type(members[0]).__name__}, a class by itself: pass it alone")
        clocks = [(i, member.step) for i, member in enumerate(members) if member.step is not None]
        for i, step in clocks:
            first, expected = clocks[0]
            if step != expected:
                raise ModelError(
                    f"theta[{i}] has a step of {step} and theta[{first}] of {expected}: all members of a class are "
                    "about the same records"
                )
        chains = tuple(member for member in members if isinstance(member, MarkovChain))
        self._keep(members=members, chains=chains if len(chains) == len(members) else ())
        if self.origin == STATED:
            self._keep(origin=origins_of(members))
        names = tuple(listed(self.names, "names", "a list of the members' names", ModelError))
        if names and len(names) != len(members):
            raise ModelError(f"names has {len(names)} entries and members {len(members)}: one name for each, or none")
        for i, name in enumerate(names):
            if not isinstance(name, str):
                raise ModelError(f"names[{i}] is {shortened(repr(name))}, expected text: what theta[{i}] is called")
        self._keep(names=names)

    def __repr__(self) -> str:
        kind = self.kind.replace("chains", "chain") if len(self.members) == 1 else self.kind
        return f"ChainClass(<{len(self.members):,} {kind} of {self.k} states>, origin={self.origin!r})"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Words for the members of each kind."""
        return tuple(dict.fromkeys(member.kind for member in self.members))

    @property
    def kind(self) -> str:
        """Word for the members."""
        alike = len(self.kinds) == 1 and not isinstance(self.members[0], Continuum)
        return self.kinds[0] if alike else MIXED

    @property
    def parts(self) -> "tuple[tuple[int, ChainClass | Continuum], ...]":
        """Each run of members of one kind as a class of its own, after the number of its first one."""
        if self.kind != MIXED:
            return ((0, self),)
        parts: list[tuple[int, ChainClass | Continuum]] = []
        # a continuum is a part by itself, so its number tells it apart
        kinds = [i if isinstance(member, Continuum) else type(member) for i, member in enumerate(self.members)]
        for _, run in itertools.groupby(enumerate(self.members), key=lambda numbered: kinds[numbered[0]]):
            (first, member), *more = run
            alone = isinstance(member, Continuum)
            parts.append((first, member if alone else ChainClass((member, *(other for _, other in more)), self.origin)))
        return tuple(parts)

    @property
    def step(self) -> str | None:
        """Time between records, where members have a clock."""
        return next((member.step for member in self.members if member.step is not None), None)

    @property
    def in_words(self) -> str:
        """What belonging to it means, as releases say it."""
        words = members_in_words(len(self.members))
        kinds = dict.fromkeys(member.in_words.removeprefix("one of Θ: ") for member in self.members)
        return words if self.chains else f"{words}: {'; or '.join(kinds)}"

    def _view(self) -> View:
        many = len(self.members)
        if many == 1:
            return of_one(self.members[0]._view(), self.origin)
        facts = {"states": states_in_words(self.states), "origin": self.origin}
        if not self.chains:
            charts = [chart for _, picture in self._pictures for chart in picture.charts]
            return View(f"Class of {many:,} {self.kind}", facts, [members_grid(self), *charts])
        first, few = self.chains[0], self.states[:MOST_COLUMNS]
        named = zip(self.names or map(str, range(many)), self.chains[:MOST_ROWS], strict=False)
        rows = [[name, *(float(chain.transition_matrix[x, x]) for x in range(len(few)))] for name, chain in named]
        caption = "Probability of staying in a state for one step, by member of the class"
        grid = Grid(caption, ["member", *few], rows, wide=self.k, long=many)
        return View(
            f"Class of {counted(many, 'Markov chain')} of {counted(self.k, 'state')}",
            {"origin": self.origin, "first record": law_in_words(first.initial_distribution)},
            [grid, *first._charts(self.chains)],
        )

    @property
    def _pictures(self) -> list[tuple[str, Picture]]:
        """The picture of each part, after the members that it has."""
        parts = self.parts
        if len(parts) == 1:
            return [("", _of_members(self.members))]
        pictures: list[tuple[str, Picture]] = []
        for first, part in parts:
            last = first + max(len(part.members), 1) - 1
            whose = f"theta[{first}]" if first == last else f"theta[{first}] to theta[{last}]"
            picture = part._picture()
            charts = [replace(chart, caption=f"{whose}: {chart.caption}") for chart in picture.charts]
            pictures.append((f"{whose}: {picture.title}", replace(picture, charts=charts)))
        return pictures

    def _picture(self) -> Picture:
        (_, first), *others = pictures = self._pictures
        if not others:
            return first
        drawn = pictures[:_MOST_DRAWN]
        left = len(pictures) - len(drawn)
        notes = [f"{title}." for title, _ in drawn] + ([f"{left} more kinds in a row are not drawn."] if left else [])
        return Picture(f"A class of {self.kind}", [picture.charts[0] for _, picture in drawn], notes)

    @property
    def some_members(self) -> tuple[MarkovChain, ...]:
        """Markov chains of one matrix that are in the class: members, and some of those of its continua."""
        return tuple(chain for member in self.members for chain in member.some_members)

    @property
    def mean_matrices(self) -> list[NDArray[np.float64]]:
        """A matrix for each member, for searches: as if it had neither clock nor more memory."""
        return [matrix for member in self.members for matrix in member.mean_matrices]


def origins_of(models: Sequence[Any]) -> str:
    """Return where models and classes came from, as far as they say it."""
    said = dict.fromkeys(getattr(model, "origin", STATED) for model in models)
    return "; ".join(origin for origin in said if origin != STATED) or STATED


_MOST_DRAWN = 4  # kinds in a row that a picture has beside each other


def _of_members(chains: Sequence[Any]) -> Picture:
    """Return the picture of one chain, or of several of one kind: from the least to the most of them."""
    first = chains[0]
    many = [f"{len(chains):,} chains"] if len(chains) > 1 else []
    if isinstance(first, PeriodicChain):
        many.append(first._many)
    spread = f", from the least to the most of {' and '.join(many)}" if many else ""
    return Picture(f"Transition probabilities of {first.k} states{spread}", first._charts(chains))


# -- What classes of chains that no list can hold have in common -----------------------------------------------------


class Continuum(ClassOfModels):
    """A class Θ of chains that is described as a whole; no member stands in a list.

    A new kind is a frozen dataclass derived from this one: model files, releases and their checks know it from then on.
    Mechanisms name the kinds that they cover.
    """

    kind: ClassVar[str]  # word for its members, by which files know it
    witnesses: ClassVar[tuple[str, ...]]  # kinds of proofs that may decide the noise under it, such as "quilt"

    in_file: ClassVar[Mapping[str, Any]]
    """The fields that describe it in a file, beside its states and origin, with their types: it is made of these."""

    lacks: ClassVar[str | None] = None
    """Why a mechanism that knows nothing of this kind does not cover it, where there is more to say than that."""

    outside: ClassVar[str] = ""
    """What is not promised under it, in a full sentence, where there is more to say than that other laws leak more."""

    stands_for_more: ClassVar[bool] = False
    step: ClassVar[None] = None
    names: ClassVar[tuple[str, ...]] = ()
    chains: ClassVar[tuple[MarkovChain, ...]] = ()
    members: ClassVar[tuple[Any, ...]] = ()
    networks: ClassVar[tuple[Any, ...]] = ()
    variables: ClassVar[None] = None
    states: tuple[str, ...]
    origin: str

    def __init_subclass__(cls) -> None:
        bases = [base for base in cls.__mro__ if base not in Continuum.__mro__]
        annotated = {name for base in bases for name in getattr(base, "__annotations__", ())}
        lacks = [name for name in ("kind", "witnesses", "in_file") if not hasattr(cls, name)]
        lacks += [name for name in ("states", "origin") if name not in annotated and not hasattr(cls, name)]
        lacks += [name for name in vars(Continuum) if getattr(getattr(cls, name, None), "__isabstractmethod__", False)]
        if lacks:
            raise TypeError(f"{cls.__name__} is no class of chains yet: it lacks {', '.join(lacks)} (see Continuum)")
        registered = CONTINUA.setdefault(cls.kind, cls)
        if (registered.__module__, registered.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(
                f"{cls.__name__} is of kind {cls.kind!r}, as {registered.__name__}: files tell them apart by it"
            )
        CONTINUA[cls.kind] = cls
        cls.in_file = FrozenDict(cls.in_file)

    @property
    def mean_matrices(self) -> list[NDArray[np.float64]]:
        """Matrices of some of its members, for searches."""
        return [chain.transition_matrix for chain in self.some_members]

    @property
    @abstractmethod
    def in_words(self) -> str:
        """What belonging to it means, as releases say it after "The distribution of the records is"."""

    @abstractmethod
    def _view(self) -> View:
        """Return what notebooks, model files and pages show: a title, facts, and the charts of its picture."""

    @abstractmethod
    def _picture(self) -> Picture:
        """Return what there is to draw, as data."""

    @property
    @abstractmethod
    def some_members(self) -> tuple[MarkovChain, ...]:
        """A few chains of the class, for what must hold of every member."""


CONTINUA: dict[str, type[Continuum]] = {}  # every such kind, by the word that files know it by
ChainMember = MarkovChain | PeriodicChain | HigherOrderChain | StaysChain | Continuum  # what a class of chains has
