"""Witnesses: which secret decides a noise, and what tells it; for each kind of proof one, with the fields that it has.

``kind`` is its name in records:

>>> import pufferfish as pf
>>> theta1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial_distribution=[1, 0])
>>> match pf.MQMExact(theta1, length=100).calibrate(pf.Count(1), epsilon=1.0).witness:
...     case pf.QuiltWitness(node=node, active_quilt=quilt):
...         print(f"record {node} is decided by the quilt {quilt}")
record 7 is decided by the quilt (0, 12)
"""

from typing import Any, ClassVar, Literal

from pufferfish._base.frozen import FrozenRecord


class Nearest(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The member of a continuum Θ that needs the most noise of those found; ``gap`` is the share it is below."""

    gap: float
    transition_matrix: tuple[tuple[float, ...], ...] | None = None
    initial_distribution: tuple[float, ...] | str | None = None


class Witness(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """The secret that decides the noise.

    Parameters
    ----------
    theta : int
        Index of the worst member of Θ.
    length : int
        Steps of the chain it was found in.
    node : int, str or None
        The worst record, 0-based, or the name of a network's node; None where all are alike.
    secret_pair : tuple of str or None
        The two values of the record that are hardest to tell apart; None where all pairs are alike.
    nearest : Nearest, optional
        Where Θ is a continuum that was searched: the member that was found.
    """

    where: ClassVar[tuple[str, ...]] = ("theta", "length", "node", "secret_pair")
    """Fields in which a witness may differ from another that tells as much."""

    theta: int
    length: int
    node: int | str | None = None
    secret_pair: tuple[str, str] | None = None
    nearest: Nearest | None = None

    @property
    def kind(self) -> Any:
        """The name of this kind of witness in records."""
        return self.__struct_config__.tag

    @property
    def pair_in_words(self) -> tuple[str, str] | None:
        """What is hardest to tell apart; None where all pairs are alike."""
        return self.secret_pair


class AloneWitness(Witness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="alone"):
    """Witness for independent records: each record leaks only by itself."""


class QuiltWitness(Witness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="quilt"):
    """Witness of a Markov quilt around the record; for group privacy the trivial quilt, with all records nearby.

    ``active_quilt`` are the nodes of the best quilt, () for the trivial one; the loss of ``nearby`` records counts in
    full, and ``influence`` is the max-influence of the record on the quilt, in nats.
    """

    where = (*Witness.where, "active_quilt")

    active_quilt: tuple[int | str, ...]
    nearby: int
    influence: float


class PropagationWitness(Witness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="propagation"):
    """Witness of propagation along a chain: nats that the record itself, those before and those after it tell."""

    own: float
    past: float
    future: float


class ForgettingWitness(Witness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="forgetting"):
    """Witness of a forgetting class: nats that the record itself, those before and those after it tell at most."""

    own: float
    past: float
    future: float


class PhaseWitness(
    PropagationWitness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="propagation-by-clock"
):
    """Witness of propagation along a chain with a clock: the worst record is at this phase of it, 0-based."""

    where = (*Witness.where, "phase")

    phase: int


class StretchWitness(Witness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="stretch"):
    """A stretch of steps in a row decides, which starts at ``node``; ``secret_pair`` is what it begins with.

    ``by`` says what proves the bound: "series" is the sum of all losses of a chain. The two courses of its ``steps``,
    read or not, end with ``last_pair``; None where all are alike. ``own``, ``past`` and ``future`` are nats that the
    stretch itself, the records before it and those after it tell; ``phase`` is that of the clock at its first step.
    """

    where = ("theta", "length", "node")  # of the pairs of one place that tell as much the first is taken

    by: Literal["propagation", "forgetting", "series"]
    steps: int
    last_pair: tuple[str, str] | None = None
    own: float
    past: float
    future: float
    phase: int | None = None


class ClusterWitness(Witness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="clusters"):
    """Witness of propagation between the clusters of a network.

    ``own`` is nats that the record itself tells. ``neighbours`` are the clusters of nodes around it, each with its
    other nodes and the nats that they, and all that lies behind them, tell about it.
    """

    own: float
    neighbours: tuple[tuple[tuple[str, ...], float], ...]


class ColumnsWitness(Witness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="columns"):
    """Several columns of one row decide together; None for a whole row.

    ``by`` says what proves the bound: "row" is the sum of the losses of a whole row. ``values`` and ``other_values``
    are two combinations that are hardest to tell apart, where they are known; ``own`` and ``others`` nats that these
    columns themselves, and all other ones, tell.
    """

    by: Literal["propagation", "row"]
    where = ("theta", "length")  # of the pairs that tell as much the first is taken

    columns: tuple[str, ...] | None
    values: tuple[str, ...] | None = None
    other_values: tuple[str, ...] | None = None
    own: float
    others: float

    @property
    def pair_in_words(self) -> tuple[str, str] | None:
        """The two combinations of values; None where they are not known."""
        if self.columns is None or self.values is None or self.other_values is None:
            return None
        one, other = (
            ", ".join(f"{name}={value}" for name, value in zip(self.columns, values, strict=True))
            for values in (self.values, self.other_values)
        )
        return one, other


class MatrixWitness(Witness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="influence-matrix"):
    """Witness of GK16: the record's row of the influence matrix."""


class CouplingWitness(Witness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="coupling"):
    """Witness of the query's laws under two secrets: their ∞-Wasserstein distance in L1."""

    distance: float


class LawWitness(Witness, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="law"):
    """Witness of the laws of the noisy answer under two secrets."""


AnyWitness = (
    AloneWitness
    | QuiltWitness
    | PropagationWitness
    | ForgettingWitness
    | PhaseWitness
    | StretchWitness
    | ClusterWitness
    | ColumnsWitness
    | MatrixWitness
    | CouplingWitness
    | LawWitness
)
"""Every kind of witness."""
