"""What of a release's record-level losses can happen at all under one member of Θ.

Under θ a record takes the states that have positive probability, and no others. So all that the law of an output can
depend on is the release's density on these: a state that a record cannot have is no state of it, and a record that is
certain is none. Every bound holds for the losses between possible states alone. This is done for each member by itself:
a pair of values that only another member makes possible is that member's to protect.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import Places, places_of
from pufferfish.queries.record_loss import BlockLoss
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta

__all__ = ["any_secret", "member_places", "members_of", "possible_losses"]

_SHORT, _LONG, _LITTLE = 64, 4096, 1.1
"""Records that differ by their states alone are told apart in chains of so many steps; and in longer ones, up to the
second number, where that makes their losses so many times smaller in all. Else they are alike: quicker to search."""


def members_of(theta: Theta) -> Sequence[MarkovChain | IntervalChain | BinaryChainInterval]:
    """Return the members of a class of chains; a continuum is one member, where all can happen that some law allows."""
    return (theta,) if isinstance(theta, IntervalChain | BinaryChainInterval) else theta.chains


def member_places(chain: MarkovChain | IntervalChain | BinaryChainInterval, steps: int) -> Places:
    """Return which states the records of a chain of Θ can have; of a continuum those of any member."""
    if isinstance(chain, BinaryChainInterval):
        return [(steps, np.ones(2, dtype=np.bool_))]
    start, everywhere = chain.initial_distribution, np.ones(chain.k, dtype=np.bool_)
    possible = (chain.upper if isinstance(chain, IntervalChain) else chain.transition_matrix) > 0
    return places_of(everywhere if isinstance(start, str) else start > 0, possible, steps)


def any_secret(places: Places) -> bool:
    """Whether some record can have two states."""
    return any(np.count_nonzero(states) > 1 for _, states in places)


def possible_losses(losses: BlockLoss, places: Places) -> BlockLoss:
    """Return the largest loss of each record over pairs of states that it can have; 0 for a record that is certain.

    Where all other records are alike, certain ones are given their loss if it is none they were not said to have: more
    than they have, and quicker to search.
    """
    of_loss, of_place, steps = _overlaps(losses.steps, [n for n, _ in places])
    certain = np.array([np.count_nonzero(states) < 2 for _, states in places])[of_place]
    known: dict[tuple[int, bytes], float] = {}
    values = np.zeros(len(steps))
    for n, i in enumerate(of_loss.tolist()):
        states = places[int(of_place[n])][1]
        key = i, states.tobytes()
        if key not in known:
            known[key] = _largest(losses.stacked[i], states)
        values[n] = known[key]
    others = values[~certain]
    same = float(others[0]) if others.size else 0.0
    if np.all(others == same) and np.all(losses.largest[of_loss][certain] >= same):
        values, steps = np.array([same]), np.array([losses.length.steps])
    elif len(losses.steps) == 1 and losses.length.steps > _SHORT:
        most = float(values.max())
        if losses.length.steps > _LONG or most * losses.length.steps <= _LITTLE * float(np.sum(values * steps)):
            values, steps = np.array([most]), losses.steps
    return BlockLoss(losses.length, steps, values, losses.of_observed)


def _overlaps(
    steps: NDArray[np.int64], others: Sequence[int]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
    """Return the stretches of two ways to cut a chain that overlap, in order, and how many steps they share."""
    edges = [np.cumsum([0, *lengths]) for lengths in (steps, others)]
    cuts = np.unique(np.concatenate(edges))
    first, second = (np.searchsorted(edge, cuts[:-1], side="right") - 1 for edge in edges)
    return first, second, np.diff(cuts)


def _largest(loss: NDArray[np.float64], states: NDArray[np.bool_]) -> float:
    """Return the largest loss over pairs of different states."""
    if np.count_nonzero(states) < 2:
        return 0.0
    return float(loss) if loss.ndim == 0 else float(loss[np.ix_(states, states)].max())
