"""Classes Θ of chains: a finite list of Markov chains, or of chains that are more than one matrix, and continua."""

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pufferfish._base.checked import is_list, listed
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.view import MOST_COLUMNS, MOST_ROWS, Grid, Shown, View, counted
from pufferfish._draw.chart import Picture
from pufferfish.errors import ModelError, shortened
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.shown import law_in_words, members_grid, of_one, states_in_words
from pufferfish.theta.some_laws import ChainLaw
from pufferfish.theta.stays_chain import StaysChain

__all__ = [
    "CHAIN_MODELS",
    "CONTINUA",
    "ChainClass",
    "ChainModels",
    "Continuum",
    "FiniteClass",
    "as_chain_class",
    "check_states",
    "members_in_words",
]

STATED = "stated by the user"

_ALONE = "lists have members of one kind, and a class such as IntervalChain is passed alone"


def members_in_words(members: int) -> str:
    """Return what belonging to a class of so many members means, as releases say it."""
    return "the one of Θ" if members == 1 else f"one of the {members} of Θ"


class FiniteClass(Shown, ReadOnly):
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

    @property
    def k(self) -> int:
        """Number of states."""
        return len(self.states)


def check_states(i: int, member: Any, first: Any) -> None:
    """Refuse a member whose states are not those of the first.

    Raises
    ------
    ModelError
        If they are others, or in another order.
    """
    if member.states != first.states:
        raise ModelError(
            f"theta[{i}] has states {', '.join(member.states)} and theta[0] has {', '.join(first.states)}: "
            "all members of a class share their states, in the same order"
        )


@dataclass(frozen=True, slots=True)
class ChainClass(FiniteClass):
    """A finite class Θ of Markov chains over the same states.

    Parameters
    ----------
    chains : tuple of MarkovChain
        The members θ; a guarantee holds under every one of them.
    origin : str
        Where Θ came from, printed with every release: a class fitted to private data protects nobody.
    stands_for_more : bool, default False
        Whether the chains only stand for a class described otherwise, whose states are not known; noise can be
        calibrated for it, but nothing released under it.
    names : tuple of str, optional
        What the members are called, one name each, such as whose habits they are; none by default.

    Examples
    --------
    >>> theta = ChainClass((MarkovChain([[0.9, 0.1], [0.4, 0.6]]),), origin="time-use survey 2019")
    >>> theta.states
    ('0', '1')
    """

    chains: tuple[MarkovChain, ...]
    origin: str = STATED
    stands_for_more: bool = False
    names: tuple[str, ...] = ()

    of_chains: ClassVar[bool] = True
    networks: ClassVar[tuple[Any, ...]] = ()
    variables: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "chains", self._check("chains", "a list of MarkovChain", "MarkovChain"))
        for i, chain in enumerate(self.chains):
            if not isinstance(chain, MarkovChain):
                raise ModelError(f"theta[{i}] is {type(chain).__name__}, expected a MarkovChain: {_ALONE}")
            check_states(i, chain, self.chains[0])
        names = tuple(listed(self.names, "names", "a list of the members' names", ModelError))
        if names and len(names) != len(self.chains):
            raise ModelError(
                f"names has {len(names)} entries and chains {len(self.chains)}: one name for each, or none"
            )
        for i, name in enumerate(names):
            if not isinstance(name, str):
                raise ModelError(f"names[{i}] is {shortened(repr(name))}, expected text: what theta[{i}] is called")
        object.__setattr__(self, "names", names)

    def __repr__(self) -> str:
        return f"ChainClass(<{counted(len(self.chains), 'Markov chain')} of {self.k} states>, origin={self.origin!r})"

    def _view(self) -> View:
        first, few = self.chains[0], self.states[:MOST_COLUMNS]
        if len(self.chains) == 1:
            return of_one(first._view(), self.origin)
        named = zip(self.names or map(str, range(len(self.chains))), self.chains[:MOST_ROWS], strict=False)
        rows = [[name, *(float(chain.transition_matrix[x, x]) for x in range(len(few)))] for name, chain in named]
        caption = "Probability of staying in a state for one step, by member of the class"
        grid = Grid(caption, ["member", *few], rows, wide=self.k, long=len(self.chains))
        return View(
            f"Class of {counted(len(self.chains), 'Markov chain')} of {counted(self.k, 'state')}",
            {"origin": self.origin, "first record": law_in_words(first.initial_distribution)},
            [grid, *first._charts(self.chains)],
        )

    def _picture(self) -> Picture:
        return _of_members(self.chains)

    def some_laws(self, length: int) -> Iterator[ChainLaw]:
        """Yield laws of so many records, for what must hold of every member."""
        return itertools.chain.from_iterable(chain.some_laws(length) for chain in self.chains)

    @classmethod
    def examples(cls) -> "dict[str, ChainClass]":
        """Return a few classes of this kind, by what they are."""
        sticky, second = [[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.1, 0.9]]
        three = [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8]]
        return {
            "two states, slow": as_chain_class(MarkovChain(sticky)),
            "two chains, any start": as_chain_class([MarkovChain(sticky, "any"), MarkovChain(second, "any")]),
            "three states, slow": as_chain_class(MarkovChain(three)),
        }

    @property
    def members(self) -> "tuple[MarkovChain, ...]":
        """The members θ."""
        return self.chains


def as_chain_class(theta: Any) -> ChainClass:
    """Θ from a chain, an iterable of chains, or a class.

    Raises
    ------
    ModelError
        If a member is not a MarkovChain, the list is empty, or members differ in their states.
    """
    if isinstance(theta, ChainClass):
        return theta
    if isinstance(theta, MarkovChain):
        return ChainClass((theta,))
    if is_list(theta):
        members: list[Any] = list(theta)
        for i, member in enumerate(members):
            if not isinstance(member, MarkovChain):
                raise ModelError(f"theta[{i}] is {type(member).__name__}, expected a MarkovChain: {_ALONE}")
        return ChainClass(tuple(members))
    inner = "; give its Θ: model.theta" if hasattr(theta, "theta") else ""
    raise ModelError(f"theta is {type(theta).__name__}, expected a MarkovChain or a list of them{inner}")


# -- A class Θ of chains that are more than one matrix ---------------------------------------------------------------

CHAIN_MODELS = (PeriodicChain, HigherOrderChain, StaysChain)
"""Kinds of its members."""


@dataclass(frozen=True, slots=True)
class ChainModels(FiniteClass):
    """A finite class Θ of chains that are more than one matrix (:data:`CHAIN_MODELS`), over the same states.

    Parameters
    ----------
    members : tuple of chains, all of one of these kinds
        The members θ; a guarantee holds under every one of them. Chains with a clock have the same step.
    origin : str
        Where Θ came from, printed with every release.
    """

    members: tuple[PeriodicChain | HigherOrderChain | StaysChain, ...]
    origin: str = STATED

    of_chains: ClassVar[bool] = True
    stands_for_more: ClassVar[bool] = False
    chains: ClassVar[tuple[Any, ...]] = ()
    networks: ClassVar[tuple[Any, ...]] = ()
    variables: ClassVar[None] = None

    def __post_init__(self) -> None:
        members = self._check("members", "a list of chains", "chain")
        object.__setattr__(self, "members", members)
        first = members[0]
        for i, member in enumerate(members):
            if not isinstance(member, CHAIN_MODELS) or type(member) is not type(first):
                raise ModelError(
                    f"theta[{i}] is {type(member).__name__} and theta[0] {type(first).__name__}: lists have members of "
                    "one kind; a MarkovChain is a PeriodicChain with one matrix, and a HigherOrderChain of order 1"
                )
            check_states(i, member, first)
            if member.step != first.step:
                raise ModelError(
                    f"theta[{i}] has a step of {member.step} and theta[0] of {first.step}: all members of a class are "
                    "about the same records"
                )

    def __repr__(self) -> str:
        return f"ChainModels(<{len(self.members)} {self.kind} of {self.k} states>, origin={self.origin!r})"

    def _view(self) -> View:
        if len(self.members) == 1:
            return of_one(self.members[0]._view(), self.origin)
        facts = {"states": states_in_words(self.states), "origin": self.origin}
        return View(f"Class of {len(self.members):,} {self.kind}", facts, [members_grid(self), *self._picture().charts])

    def _picture(self) -> Picture:
        return _of_members(self.members)

    def some_laws(self, length: int) -> Iterator[ChainLaw]:
        """Yield laws of so many records, for what must hold of every member."""
        return itertools.chain.from_iterable(member.some_laws(length) for member in self.members)

    @classmethod
    def examples(cls) -> "dict[str, ChainModels]":
        """Return a few classes of this kind, by what they are."""
        return {name: cls((member,)) for kind in CHAIN_MODELS for name, member in kind.examples().items()}

    @property
    def in_words(self) -> str:
        """What belonging to it means, as releases say it."""
        return f"{FiniteClass.in_words.__get__(self)}: {self.members[0].in_words}"

    @property
    def step(self) -> str | None:
        """Time between records, where the members have a clock."""
        return self.members[0].step


def _of_members(chains: Sequence[Any]) -> Picture:
    """Return the picture of one chain, or of several of one kind: from the least to the most of them."""
    first = chains[0]
    many = [f"{len(chains):,} chains"] if len(chains) > 1 else []
    if isinstance(first, PeriodicChain):
        many.append(first._many)
    spread = f", from the least to the most of {' and '.join(many)}" if many else ""
    return Picture(f"Transition probabilities of {first.k} states{spread}", first._charts(chains))


# -- What classes of chains that no list can hold have in common -----------------------------------------------------


class Continuum(Shown, ReadOnly):
    """A class Θ of chains that is described as a whole; no member stands in a list.

    A new kind is a frozen dataclass derived from this one: model files, releases and their checks know it from then on.
    A kind that lacks one of the members that are abstract here is refused where it is written. Mechanisms name the
    kinds that they cover.
    """

    kind: ClassVar[str]
    """Word for its members, by which files know it."""

    witnesses: ClassVar[tuple[str, ...]]
    """The kinds of proofs that may decide the noise under it, by their names in files, such as "quilt"."""

    lacks: ClassVar[str | None] = None
    """Why a mechanism that knows nothing of this kind does not cover it, where there is more to say than that."""

    of_chains: ClassVar[bool] = True
    stands_for_more: ClassVar[bool] = False
    chains: ClassVar[tuple[MarkovChain, ...]] = ()
    members: ClassVar[tuple[Any, ...]] = ()
    networks: ClassVar[tuple[Any, ...]] = ()
    variables: ClassVar[None] = None
    states: tuple[str, ...]
    origin: str

    def __init_subclass__(cls) -> None:
        annotated = {
            name for base in cls.__mro__ if base is not Continuum for name in getattr(base, "__annotations__", ())
        }
        lacks = [name for name in ("kind", "witnesses") if not hasattr(cls, name)]
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

    @property
    def k(self) -> int:
        """Number of states."""
        return len(self.states)

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

    @abstractmethod
    def some_laws(self, length: int) -> Iterator[ChainLaw]:
        """Yield laws of so many records, for what must hold of every member.

        They come as near as can be to all that the class allows: its corners, states that are kept and states that are
        left, one-way and permuted ones, matrices that change where the class lets them.
        """

    @classmethod
    @abstractmethod
    def examples(cls) -> dict[str, Self]:
        """Return a few classes of this kind, by what they are: audits and the contract of engines ask them."""

    @property
    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """What describes it but for its states and origin, as plain values for a file."""

    @classmethod
    @abstractmethod
    def of_plain(cls, plain: dict[str, Any], states: list[str], origin: str) -> Self:
        """Return the class that :attr:`plain` describes, checked as if it were made by hand.

        Raises
        ------
        msgspec.ValidationError, ModelError
            If it describes none.
        """


CONTINUA: dict[str, type[Continuum]] = {}
"""Every such kind, by the word that files know it by."""
