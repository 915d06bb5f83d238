"""Θ in general: a class of distributions over the same records and states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import is_list
from pufferfish._base.view import View
from pufferfish._base.words import names_of
from pufferfish._draw.figure import figure_of
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.theta.bayesian_network import BayesianNetwork, connected, same_records
from pufferfish.theta.chain_class import (
    CHAIN_MODELS,
    STATED,
    ChainClass,
    Continuum,
    FiniteClass,
    check_states,
    origins_of,
)
from pufferfish.theta.joint_distribution import Cliques, GivenLaws, JointDistribution
from pufferfish.theta.lengths import MOST_STEPS, ChainLength, as_lengths
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.shown import members_grid, of_one, states_in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Member = BayesianNetwork | Cliques | GivenLaws | JointDistribution  # a law of a known number of records


@runtime_checkable
class Described(Protocol):
    """A class Θ with what is known of the tables that it is about: a :class:`~pufferfish.Model`."""

    @property
    def theta(self) -> "Theta":
        """The class Θ."""

    @property
    def step(self) -> str | None:
        """Time that one transition takes, where it is known."""

    @property
    def bins(self) -> Sequence[float] | None:
        """Edges of the bins that states are, where they are bins of a number."""

    @property
    def fitted_on(self) -> str | None:
        """Fingerprint of the table that Θ was fitted to, where it was fitted to one."""

    @property
    def checked(self) -> Any:
        """What a check against public data said last, a :class:`~pufferfish.theta.record.Checking`; None for none."""


@dataclass(frozen=True, slots=True)
class ModelClass(FiniteClass):
    """A finite class Θ of models other than chains; chains have :class:`ChainClass`.

    Parameters
    ----------
    members : tuple of models
        The members θ, all of one kind, over the same records and states; a guarantee holds under every one of them.
        Networks may have different edges; their nodes and states are taken in the order of the first one.
    origin : str
        Where Θ came from, printed with every release.
    """

    members: tuple[Member, ...]
    origin: str = STATED

    of_chains = False
    stands_for_more: ClassVar[bool] = False
    step: ClassVar[None] = None
    names: ClassVar[tuple[str, ...]] = ()
    chains: ClassVar[tuple[MarkovChain, ...]] = ()
    some_members: ClassVar[tuple[MarkovChain, ...]] = ()
    mean_matrices: ClassVar[Sequence[NDArray[np.float64]]] = ()

    def __post_init__(self) -> None:
        members = self._check("members", "a list of models", "model")
        for i, member in enumerate(members):
            if not isinstance(member, Member):
                raise ModelError(f"theta[{i}] is {type(member).__name__}, expected a model such as BayesianNetwork")
            if type(member) is not type(members[0]):
                raise ModelError(
                    f"theta[{i}] is {type(member).__name__} and theta[0] {type(members[0]).__name__}: all members of "
                    "a class are of one kind"
                )
        networks = [member for member in members if isinstance(member, BayesianNetwork)]
        if networks:
            members = same_records(networks, "theta")
        else:
            _check_alike(members)
        self._keep(members=members)

    def __repr__(self) -> str:
        return f"ModelClass(<{self.kind}: {len(self.members)}>, origin={self.origin!r})"

    def _view(self) -> View:
        if len(self.members) == 1:
            return of_one(self.members[0]._view(), self.origin)
        facts = {"states": states_in_words(self.states), "origin": self.origin}
        return View(f"Class of {len(self.members):,} {self.kind}", facts, [members_grid(self)])

    @property
    def networks(self) -> tuple[BayesianNetwork, ...]:
        """The members, where they are Bayesian networks."""
        return tuple(member for member in self.members if isinstance(member, BayesianNetwork))

    @property
    def variables(self) -> Mapping[Any, tuple[str, ...]] | None:
        """Names of the records with the states of each, where records have names."""
        first = self.members[0]
        if isinstance(first, BayesianNetwork):
            return first.node_states
        return {v: first.states for v in first.variables} if isinstance(first, JointDistribution) else None

    @property
    def only_counts(self) -> bool:
        """Whether all records have the same states, and only how many have which matters."""
        return isinstance(self.members[0], Cliques)

    @property
    def lengths(self) -> tuple[ChainLength, ...]:
        """Sizes of the groups of records that may depend on each other under some θ."""
        networks = self.networks
        if not networks:
            return as_lengths(self.members[0].groups)
        edges = (edge for network in networks for edge in network.edges)
        return as_lengths(len(part) for part in connected(networks[0].nodes, edges))


def _check_alike(members: Sequence[Any]) -> None:
    first = members[0]
    for i, member in enumerate(members):
        check_states(i, member, first)
        mine, theirs = (list(map(repr, getattr(model, "variables", ()))) for model in (member, first))
        if mine != theirs:
            raise ModelError(
                f"theta[{i}] is about the records {names_of(mine, 8)} and theta[0] about {names_of(theirs, 8)}: all "
                "members of a class need the same records in the same order"
            )
        if member.groups != first.groups:
            sizes = [names_of(model.groups, 8) for model in (member, first)]
            raise ModelError(
                f"theta[{i}] is about groups of {sizes[0]} records and theta[0] of {sizes[1]}: all members of a class "
                "are about the same records"
            )


Theta = ChainClass | Continuum | ModelClass


def as_theta(theta: Any) -> Theta:
    """Θ from a model, an iterable of models or classes of chains, a class, or a :class:`~pufferfish.Model`."""
    if isinstance(theta, Theta):
        return theta
    if isinstance(theta, (MarkovChain, *CHAIN_MODELS)):
        return ChainClass((theta,))
    if isinstance(theta, Described):
        return theta.theta
    if isinstance(theta, Member):
        return ModelClass((theta,))
    if not is_list(theta):
        inner = "; give its Θ: model.theta" if hasattr(theta, "theta") else ""
        raise ModelError(
            f"theta is {type(theta).__name__}, expected a model such as MarkovChain, or a list of them{inner}"
        )
    given: list[Any] = list(theta)
    if given and isinstance(given[0], Member):
        return ModelClass(tuple(given))
    return _together(given)


def _together(given: Sequence[Any]) -> Theta:
    """Return the class of chains of several models and classes of chains, whose members are members of the whole."""
    if len(given) == 1 and isinstance(given[0], ChainClass | Continuum):
        return given[0]
    members, names = list[Any](), list[str]()
    for i, one in enumerate(given):
        if isinstance(one, Described):
            raise ModelError(f"theta[{i}] is {type(one).__name__}: give its Θ, model.theta")
        if isinstance(one, ChainClass) and one.stands_for_more:
            raise ModelError(f"theta[{i}] stands for a set of chains; pass it alone, not in a list")
        members += one.members if isinstance(one, ChainClass) else [one]
        names += getattr(one, "names", ())
    return ChainClass(tuple(members), origins_of(given), names=tuple(names) if len(names) == len(members) else ())


def gives_first_law(theta: Theta) -> bool:
    """Whether some chain of Θ gives the law of its first record as an array."""
    return any(not isinstance(getattr(member, "initial_distribution", ""), str) for member in theta.members)


def rows_of(theta: Theta, length: Any) -> int:
    """Return how many independent rows the table of a network has, one where nothing is said; 1 for other models."""
    if not theta.networks or length is None:
        return 1
    if isinstance(length, bool) or not isinstance(length, Integral) or length < 1:
        raise ParameterError(
            f"length is {length!r}, expected the number of rows of the networks' table, such as rows.length"
        )
    if int(length) >= MOST_STEPS:
        raise ParameterError("a table has 2^60 rows or more: give its number of rows")
    return int(length)


def lengths_of(theta: Theta, length: Any) -> tuple[ChainLength, ...]:
    """Return how many records depend on each other: as given for chains, known for other models."""
    if not isinstance(theta, ModelClass):
        if length is None:
            raise ParameterError("length is missing: give T, or one length per independent chain")
        return as_lengths(length)
    if theta.networks:
        rows_of(theta, length)
        return theta.lengths
    if length is not None and as_lengths(length) != theta.lengths:
        raise ParameterError(
            f"length does not fit: these {theta.kind} are about {names_of((c.records for c in theta.lengths), 10)} "
            "records, so leave length out"
        )
    return theta.lengths


def draw_model(theta: Any) -> "Figure":
    """Draw a class of chains: transition probabilities as a heat map, and how many records each state lasts.

    With a clock the second panel has the probability of staying by phase; of a class that only forgets, the picture
    has how much is forgotten. Of several members, and of a class between bounds, it has the least and the most of each
    number. The figure is one of matplotlib: a :class:`ParameterError` if that is not installed, and a
    :class:`NotApplicableError` if Θ is no class of chains (:func:`pufferfish.draw_network` draws networks). ::

        chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
        pf.draw_model(chain).savefig("chain.png")
    """
    made = as_theta(theta)
    if isinstance(made, ModelClass):
        raise NotApplicableError(
            f"draw_model covers chains, and Θ is a class of {made.kind}"
            + (": draw_network draws networks" if made.networks else ", which has no picture: print it")
        )
    return figure_of(made._picture(), f"Θ: {made.origin}")
