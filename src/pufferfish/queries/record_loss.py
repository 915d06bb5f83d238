"""Record losses: how far the density of a release can change when one record alone goes from state x to x'.

This is what a bound is asked about. A loss is in nats: one number for all pairs of states, or a (k, k) matrix. Losses
are those of independent *blocks*: one for each chain, and one for a network, whose rows are alike. Records of a block
that follow each other and have the same loss are a *stretch*; that of a network is one node. A record that a query does
not read costs 0.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import listed, real_array, whole_number
from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish.errors import ParameterError
from pufferfish.queries.query import JointQuery, RecordQuery, StepQuery
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import Theta
from pufferfish.theta.states import state_label

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Profile(ReadOnly):
    """Losses that are constant on stretches of a chain; for long chains, where an array per step would be too large.

    ``stretches`` (sequence of (int, float or array_like)): number of steps and their loss, from the first step of the
    chain to the last: a number, or shape (k, k).

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.99, 0.01], [0.02, 0.98]])
    >>> day = pf.Profile([(1440, 0.0), (1440, 0.01), (1440, 0.0)])
    >>> round(pf.LeakagePropagation(chain, length=3 * 1440).leakage(day), 3)
    0.683
    """

    stretches: Sequence[tuple[int, Any]]

    def __post_init__(self) -> None:
        try:
            pairs = listed(self.stretches, "stretches", "a list of pairs (whole number of steps, loss)")
            self._keep(stretches=tuple((whole_number(steps), _kept(loss)) for steps, loss in pairs))
        except ParameterError:
            raise
        except (TypeError, ValueError):
            raise ParameterError("stretches is not a profile: expected pairs (whole number of steps, loss)") from None


@dataclass(frozen=True, slots=True, eq=False)
class StepLoss(ReadOnly):
    """Losses of a release that reads steps (from a record of a chain to the next) and perhaps single records too.

    The density of the release changes by at most the record's loss when one record is changed and all steps are kept,
    and by at most ``step``, in nats, when one step is changed and all else is kept. Counts of transitions with noise of
    scale b have a step loss of 2/b and no record loss; the number of changes of state has 1/b.

    Parameters
    ----------
    step : float, or sequence of float
        Loss of one step, of every chain or of each.
    records : float, array_like, Profile, or list of these, default 0
        Losses of records, as ``leakage`` takes them.

    Examples
    --------
    >>> import pufferfish as pf
    >>> bound = pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), length=5000)
    >>> round(bound.leakage(pf.StepLoss(0.1)), 3), round(bound.leakage(0.2), 3)
    (0.412, 0.647)
    """

    step: Any
    records: Any = 0.0

    def __post_init__(self) -> None:
        several = isinstance(self.step, list | tuple)
        steps = _numbers(self.step, "the loss of a step")
        if steps.ndim != several:
            raise ParameterError("the loss of a step is a number, or one number for each chain")
        self._keep(step=tuple(steps.tolist()) if several else float(steps), records=_kept_records(self.records))


@dataclass(frozen=True, slots=True, eq=False)
class BlockLoss:
    """Losses of the records of one block, in n stretches: of a chain, or of one row of a network's table.

    ``values`` are an array (n,) or (n, k, k), or n arrays (k_node, k_node): nodes have states of their own. Losses
    ``of_observed`` records may be anywhere in the chain. ``step`` is the loss of each step between observed records,
    when it is changed alone; ``charged`` how much of a record's loss is that of a step: the loss of the record also
    where its state remains the same, and what else a chain knows of it, such as the kind of a stay, does not.
    """

    length: ChainLength
    steps: NDArray[np.int64]
    values: Vector | tuple[Vector, ...]
    of_observed: bool
    step: float = 0.0
    charged: float = 0.0

    @classmethod
    def same_for_all(cls, length: ChainLength, value: Vector) -> "BlockLoss":
        """Return one loss, shape () or (k, k), for all observed records: wherever they are, if that is not known."""
        if length.places:
            steps = np.array(length.places)
            observed = (np.arange(len(steps)) % 2 == 0).reshape(-1, *[1] * value.ndim)
            return cls(length, steps, np.where(observed, value, 0.0), False)
        return cls(length, np.array([length.steps]), value[None], True)

    @property
    def stacked(self) -> Vector:
        """The losses of a chain's stretches as one array, of shape (n,) or (n, k, k)."""
        assert isinstance(self.values, np.ndarray)
        return self.values

    @property
    def largest(self) -> Vector:
        """Largest loss over pairs of states, of each stretch; shape (n,)."""
        if isinstance(self.values, tuple):
            return np.array([float(value.max(initial=0.0)) for value in self.values])
        return self.values.max(axis=(-2, -1)) if self.values.ndim == 3 else self.values

    @property
    def smallest(self) -> float:
        """Smallest loss that is above 0; infinite where there is none."""
        values = self.values if isinstance(self.values, tuple) else (self.values,)
        return min((float(value.min(initial=np.inf, where=value > 0)) for value in values), default=np.inf)

    @property
    def per_record(self) -> Vector:
        """Largest loss over pairs of states: shape () where all records have the same loss, else one per record."""
        largest = self.largest
        return largest[0] if len(largest) == 1 else np.repeat(largest, self.steps)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells these losses from others of the same records."""
        values = self.values if isinstance(self.values, tuple) else (self.values,)
        content = tuple((value.shape, value.tobytes()) for value in values)
        return self.length, self.of_observed, self.steps.tobytes(), content, self.step, self.charged

    def divided(self, divisor: float) -> "BlockLoss":
        """Return the losses of the same release with ``divisor`` times the noise, rounded up."""
        if isinstance(self.values, tuple):
            values = tuple(_divided(value, divisor) for value in self.values)
        else:
            values = _divided(self.values, divisor)
        step, charged = (math.nextafter(x / divisor, math.inf) if x else 0.0 for x in (self.step, self.charged))
        return replace(self, values=values, step=step, charged=charged)


@dataclass(frozen=True, slots=True, eq=False)
class RecordLoss:
    """How far a release's density changes when one record alone changes, in nats: a block for each chain."""

    blocks: tuple[BlockLoss, ...]

    @property
    def largest(self) -> float:
        """Largest loss of any record over pairs of its states, or of any step."""
        return max(max(float(block.largest.max()), block.step) for block in self._different)

    @property
    def step(self) -> float:
        """Largest loss of a step."""
        return max(block.step for block in self._different)

    @property
    def smallest(self) -> float:
        """Smallest loss above 0 of any record, over pairs of its states, or of a step; infinite where there is none."""
        return min(min(block.smallest, block.step or np.inf) for block in self._different)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells these losses from others of the same records: what the different blocks are."""
        return tuple(block.key for block in self._different)

    @property
    def nodes(self) -> tuple[Vector, ...]:
        """The losses of a network's nodes, each of shape (k_node, k_node)."""
        (block,) = self.blocks
        assert isinstance(block.values, tuple)
        return block.values

    def divided(self, divisor: float) -> "RecordLoss":
        """Return the losses of the same release with ``divisor`` times the noise, rounded up; blocks stay shared."""
        divided_blocks = {id(block): block.divided(divisor) for block in self._different}
        return RecordLoss(tuple(divided_blocks[id(block)] for block in self.blocks))

    @property
    def _different(self) -> list[BlockLoss]:
        return list({id(block): block for block in self.blocks}.values())


def chains_that_can_decide(losses: RecordLoss, *, steps: bool = False) -> Iterator[BlockLoss]:
    """Yield the chains that can decide: of equal ones one, of those with one loss for all records the longest.

    A shorter chain is another one with some losses left out. Losses of ``steps`` are only for those who know them.
    """
    if losses.step and not steps:
        raise AssertionError("losses of steps are charged to records before an engine is asked")
    uniform: dict[tuple[bytes, float, float], list[BlockLoss]] = {}
    seen: set[tuple[object, ...]] = set()
    for chain in {id(chain): chain for chain in losses.blocks}.values():
        if chain.of_observed:
            uniform.setdefault((chain.stacked.tobytes(), chain.step, chain.charged), []).append(chain)
        elif chain.key not in seen:
            seen.add(chain.key)
            yield chain
    for chains in uniform.values():
        records = 0
        for chain in sorted(chains, key=lambda c: (c.length.steps, c.length.records), reverse=True):
            if chain.length.records > records:
                records = chain.length.records
                yield chain


def loss_of_query(query: RecordQuery, theta: Theta, length: Sequence[ChainLength]) -> RecordLoss:
    """Return the record losses of a query with noise of scale 1, on the records of Θ."""
    if isinstance(query, StepQuery):
        of_records, step = query.losses
        if step:
            return as_record_loss(StepLoss(float(step)), theta, length)
        return as_record_loss(of_records if any(chain.records > 1 for chain in length) else 0.0, theta, length)
    if isinstance(query, JointQuery) or theta.networks:
        return _of_nodes(query.distances)
    if query.factors is None:
        return as_record_loss(query.unit_distance, theta, length)
    factors = np.abs(query.factors.reshape(len(query.factors), -1))
    starts = np.concatenate([[0], np.flatnonzero(np.diff(factors, axis=0).any(axis=1)) + 1])
    times = np.diff(starts, append=len(factors))
    stretches = [(int(n), query.distance_of(int(t))) for n, t in zip(times, starts, strict=True)]
    return as_record_loss(Profile(stretches), theta, length)


def as_record_loss(given: Any, theta: Theta, length: Sequence[ChainLength]) -> RecordLoss:
    """Return the losses that a user gives, checked; see :meth:`InfluenceBound.leakage` for what may be given."""
    if isinstance(given, StepLoss):
        return _of_steps(given, theta, length)
    if theta.networks:
        return _of_nodes(_per_node(given, theta.networks[0]))
    k = theta.k
    if isinstance(given, list | tuple) and len(length) > 1:
        entries: list[Any] = list(given)
        if len(entries) != len(length):
            raise ParameterError(f"record_loss has {len(entries)} entries, expected {len(length)}: one per chain")
        named = enumerate(zip(entries, length, strict=True))
        return RecordLoss(tuple(_one(entry, chain, k, f"record_loss[{c}]") for c, (entry, chain) in named))
    if isinstance(given, list | tuple) and len(length) == len(given) == 1:
        given = given[0]
    losses = {chain: _one(given, chain, k, "record_loss") for chain in dict.fromkeys(length)}
    return RecordLoss(tuple(losses[chain] for chain in length))  # a million alike subjects cost what one does


def _of_steps(loss: StepLoss, theta: Theta, length: Sequence[ChainLength]) -> RecordLoss:
    """Return losses of records and of steps; a chain of one observed record has no step."""
    if not theta.of_chains:
        raise ParameterError(f"a loss of steps needs Markov chains, but Θ is a class of {theta.kind}")
    records = as_record_loss(loss.records, theta, length).blocks
    stated: Any = loss.step
    steps: list[float] = list(stated) if isinstance(stated, tuple) else [stated] * len(records)
    if len(steps) != len(records):
        raise ParameterError(f"the loss of a step has {len(steps)} entries, expected {len(records)}: one per chain")
    known: dict[tuple[int, float], BlockLoss] = {}
    blocks: list[BlockLoss] = []
    for block, step in zip(records, steps, strict=True):
        key = id(block), step if block.length.records > 1 else 0.0
        blocks.append(known.setdefault(key, replace(block, step=key[1])))
    return RecordLoss(tuple(blocks))


def _divided(value: Vector, divisor: float) -> Vector:
    with np.errstate(over="ignore"):  # a loss beyond the largest double is infinite, which no proof takes
        return np.where(value > 0, np.nextafter(value / divisor, np.inf), 0.0)


def _of_nodes(values: tuple[Vector, ...]) -> RecordLoss:
    nodes = len(values)
    return RecordLoss((BlockLoss(ChainLength(nodes, nodes), np.ones(nodes, dtype=np.int64), values, False),))


def _one(entry: Any, chain: ChainLength, k: int, name: str) -> BlockLoss:
    if isinstance(entry, Profile):
        return _of_profile(entry, chain, k, name)
    loss = _numbers(entry, name)
    shapes = {0: (), 1: (chain.steps,), 2: (k, k), 3: (chain.steps, k, k)}
    if loss.shape != shapes.get(loss.ndim):
        raise ParameterError(
            f"{name} has shape {loss.shape}, expected a number, ({chain.steps},), ({k}, {k}) or "
            f"({chain.steps}, {k}, {k}): records of the chain, then pairs of states"
        )
    if loss.ndim in (0, 2):
        return BlockLoss.same_for_all(chain, loss)
    changes = np.any(loss[1:] != loss[:-1], axis=tuple(range(1, loss.ndim)))
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
    return BlockLoss(chain, np.diff(starts, append=len(loss)), loss[starts], False)


def _of_profile(profile: Profile, chain: ChainLength, k: int, name: str) -> BlockLoss:
    steps = [n for n, _ in profile.stretches]
    values = [_numbers(value, name) for _, value in profile.stretches]
    if not steps or min(steps) < 1 or sum(steps) != chain.steps:
        raise ParameterError(
            f"{name} has stretches of {sum(steps)} steps, expected {chain.steps} in all, at least 1 in each"
        )
    for value in values:
        if value.shape not in ((), (k, k)):
            raise ParameterError(
                f"{name} has a stretch with a loss of shape {value.shape}, expected a number or ({k}, {k})"
            )
    if any(value.ndim for value in values):
        values = [value if value.ndim else value * (1 - np.eye(k)) for value in values]
    return BlockLoss(chain, np.array(steps), np.array(values), False)


def _per_node(given: Any, network: BayesianNetwork) -> tuple[Vector, ...]:
    """Return the loss of every node: from one number, a sequence in the order of nodes, or a mapping from names."""
    labels = [state_label(node) for node in network.nodes]
    entries: list[Any]
    single = isinstance(given, str) or (isinstance(given, np.ndarray) and given.ndim == 0)
    if isinstance(given, Mapping):
        named: dict[str, Any] = {state_label(node): entry for node, entry in given.items()}
        for label in named:
            if label not in labels:
                raise ParameterError(
                    f"record_loss names {label!r}, which is not a node. Nodes: {', '.join(labels[:20])}"
                )
        entries = [named.get(label, 0.0) for label in labels]
    elif isinstance(given, Sequence | np.ndarray) and not single:
        entries = list(given)
        if len(entries) != len(labels):
            raise ParameterError(f"record_loss has {len(entries)} entries, expected {len(labels)}: one per node")
    else:
        entries = [given] * len(labels)
    nodes = zip(entries, labels, network.sizes, strict=True)
    return tuple(_of_node(entry, k, f"record_loss of node {label!r}") for entry, label, k in nodes)


def _of_node(entry: Any, k: int, name: str) -> Vector:
    loss = _numbers(entry, name)
    if loss.shape not in ((), (k, k)):
        raise ParameterError(f"{name} has shape {loss.shape}, expected a number or ({k}, {k}): pairs of its states")
    return (loss if loss.ndim else np.full((k, k), float(loss))) * (1 - np.eye(k))


def _kept_records(given: Any) -> Any:
    """Return losses of records that nobody can change afterwards: of all chains, or of each in a tuple."""
    if isinstance(given, list | tuple):
        return tuple(loss if isinstance(loss, Profile) else _kept(loss) for loss in given)
    return given if isinstance(given, Profile) else _kept(given)


def _kept(loss: Any) -> float | Vector:
    numbers = _numbers(loss, "the loss of a stretch")
    return read_only(numbers) if numbers.ndim else float(numbers)


def _numbers(entry: Any, name: str) -> Vector:
    try:
        loss = real_array(entry)
    except TypeError as error:
        raise ParameterError(f"{name} {error}; expected losses in nats") from None
    if not np.all(np.isfinite(loss)) or np.any(loss < 0):
        raise ParameterError(f"{name} has an entry that is negative or not finite; losses are at least 0")
    return loss
