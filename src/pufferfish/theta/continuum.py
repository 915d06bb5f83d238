"""What classes of chains that no list can hold have in common: they are described as a whole."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.some_laws import ChainLaw

__all__ = ["Continuum"]


class Continuum(ABC):
    """A class Θ of chains that is described as a whole; no member stands in a list.

    A new kind is a file with a class derived from this one, and its name in ``CONTINUA`` (``theta/continua.py``): model
    files, releases and their checks know it from then on. Mechanisms name the kinds that they cover.
    """

    kind: ClassVar[str]
    """Word for its members, by which files know it."""

    lacks: ClassVar[str | None] = None
    """Why a mechanism that knows nothing of this kind does not cover it, where there is more to say than that."""

    of_chains: ClassVar[bool] = True
    stands_for_more: ClassVar[bool] = False
    only_counts: ClassVar[bool] = False
    chains: ClassVar[tuple[MarkovChain, ...]] = ()
    members: ClassVar[tuple[Any, ...]] = ()
    networks: ClassVar[tuple[Any, ...]] = ()
    variables: ClassVar[None] = None
    states: tuple[str, ...]
    origin: str

    @property
    def k(self) -> int:
        """Number of states."""
        return len(self.states)

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
