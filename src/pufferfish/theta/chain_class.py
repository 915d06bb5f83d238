"""A class Θ of Markov chains: a finite list of them, and where it came from."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pufferfish._base.checked import is_list, listed
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.view import counted
from pufferfish.errors import ModelError, shortened
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.shown import ShownModel
from pufferfish.theta.some_laws import ChainLaw

__all__ = ["ChainClass", "as_chain_class"]

STATED = "stated by the user"

_ALONE = "lists have members of one kind, and a class such as IntervalChain is passed alone"


@dataclass(frozen=True, slots=True)
class ChainClass(ShownModel, ReadOnly):
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

    def __post_init__(self) -> None:
        chains = listed(self.chains, "chains", "a list of MarkovChain", ModelError)
        object.__setattr__(self, "chains", tuple(chains))
        if not isinstance(self.origin, str):
            raise ModelError(f"origin is {shortened(repr(self.origin))}, expected text: where Θ came from")
        if not self.chains:
            raise ModelError("theta is empty: give at least one MarkovChain")
        first = self.chains[0]
        for i, chain in enumerate(self.chains):
            if not isinstance(chain, MarkovChain):
                raise ModelError(f"theta[{i}] is {type(chain).__name__}, expected a MarkovChain: {_ALONE}")
            if chain.states != first.states:
                raise ModelError(
                    f"theta[{i}] has states {', '.join(chain.states)} and theta[0] has {', '.join(first.states)}: "
                    "all members of a class share their states, in the same order"
                )
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

    def some_laws(self, length: int) -> Iterator[ChainLaw]:
        """Yield laws of so many records, for what must hold of every member."""
        return itertools.chain.from_iterable(chain.some_laws(length) for chain in self.chains)

    @classmethod
    def examples(cls) -> "dict[str, ChainClass]":
        """Return a few classes of this kind, by what they are."""
        sticky, other = [[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.1, 0.9]]
        three = [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8]]
        return {
            "two states, slow": as_chain_class(MarkovChain(sticky)),
            "two chains, any start": as_chain_class([MarkovChain(sticky, "any"), MarkovChain(other, "any")]),
            "three states, slow": as_chain_class(MarkovChain(three)),
        }

    @property
    def members(self) -> "tuple[MarkovChain, ...]":
        """The members θ."""
        return self.chains

    @property
    def in_words(self) -> str:
        """What belonging to it means, as releases say it."""
        return "the one of Θ" if len(self.members) == 1 else f"one of the {len(self.members)} of Θ"

    @property
    def kind(self) -> str:
        """Word for its members."""
        return "Markov chains"

    @property
    def of_chains(self) -> bool:
        """Whether records are steps of chains: yes."""
        return True

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the k states."""
        return self.chains[0].states

    @property
    def networks(self) -> tuple[BayesianNetwork, ...]:
        """The members that are Bayesian networks: none."""
        return ()

    @property
    def variables(self) -> None:
        """Names of the records: steps of a chain have none."""
        return None

    @property
    def k(self) -> int:
        """Number of states."""
        return self.chains[0].k


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
