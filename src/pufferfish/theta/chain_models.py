"""A class Θ of chains that are more than one matrix: a finite list of periodic ones, or of ones with more memory."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from pufferfish._base.checked import listed
from pufferfish._base.frozen import ReadOnly
from pufferfish.errors import ModelError, shortened
from pufferfish.theta.chain_class import STATED
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.shown import ShownModel
from pufferfish.theta.some_laws import ChainLaw

__all__ = ["CHAIN_MODELS", "ChainModels"]

CHAIN_MODELS = (PeriodicChain, HigherOrderChain)
"""Kinds of its members."""


@dataclass(frozen=True, slots=True)
class ChainModels(ShownModel, ReadOnly):
    """A finite class Θ of :class:`PeriodicChain`, or of :class:`HigherOrderChain`, over the same states.

    Parameters
    ----------
    members : tuple of PeriodicChain or of HigherOrderChain
        The members θ; a guarantee holds under every one of them. Chains with a clock have the same step.
    origin : str
        Where Θ came from, printed with every release.
    """

    members: tuple[PeriodicChain | HigherOrderChain, ...]
    origin: str = STATED

    of_chains: ClassVar[bool] = True
    stands_for_more: ClassVar[bool] = False
    only_counts: ClassVar[bool] = False
    chains: ClassVar[tuple[Any, ...]] = ()
    networks: ClassVar[tuple[Any, ...]] = ()
    variables: ClassVar[None] = None

    def __post_init__(self) -> None:
        members = tuple(listed(self.members, "members", "a list of chains", ModelError))
        object.__setattr__(self, "members", members)
        if not isinstance(self.origin, str):
            raise ModelError(f"origin is {shortened(repr(self.origin))}, expected text: where Θ came from")
        if not members:
            raise ModelError("theta is empty: give at least one chain")
        first = members[0]
        for i, member in enumerate(members):
            if not isinstance(member, CHAIN_MODELS) or type(member) is not type(first):
                raise ModelError(
                    f"theta[{i}] is {type(member).__name__} and theta[0] {type(first).__name__}: lists have members of "
                    "one kind; a MarkovChain is a PeriodicChain with one matrix, and a HigherOrderChain of order 1"
                )
            if member.states != first.states:
                raise ModelError(
                    f"theta[{i}] has states {', '.join(member.states)} and theta[0] has {', '.join(first.states)}: "
                    "all members of a class share their states, in the same order"
                )
            if member.step != first.step:
                raise ModelError(
                    f"theta[{i}] has a step of {member.step} and theta[0] of {first.step}: all members of a class are "
                    "about the same records"
                )

    def __repr__(self) -> str:
        return f"ChainModels(<{len(self.members)} {self.kind} of {self.k} states>, origin={self.origin!r})"

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
        which = "the one of Θ" if len(self.members) == 1 else f"one of the {len(self.members)} of Θ"
        return f"{which}: {self.members[0].in_words}"

    @property
    def kind(self) -> str:
        """Word for its members."""
        return self.members[0].kind

    @property
    def step(self) -> str | None:
        """Time between records, where the members have a clock."""
        return self.members[0].step

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the k states."""
        return self.members[0].states

    @property
    def k(self) -> int:
        """Number of states."""
        return len(self.states)
