"""Random ledgers whose releases have states of their own: what is charged against all databases of a short chain.

The models, every query about chains, and releases whose model has the ledger's states, the same ones in another order,
or groups of them: by ``coarsening=`` or as coarser bins. Two releases each, perhaps of a window. The true loss is that
of both under the law of the ledger's model, from the definitions: an answer is counted from the names of states, and no
query of the package is asked for more than its noise. Run it for the whole table::

    python tests/ledger_states.py --cases 20000
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pufferfish as pf
from odd_classes import KINDS, Restated, odd_class, restated
from paper.audit.laws import some_laws
from paper.audit.losses import paths
from pufferfish.data import Base
from pufferfish.errors import PufferfishError

__all__ = ["HOW", "Tally", "cases", "table", "true_loss"]

Array = NDArray[np.float64]
Answer = Callable[[NDArray[np.str_]], list[Any]]
"""From the states of the records in order, by name, to the columns of what is released, before noise."""

HOW = ("same", "permuted", "coarser", "bins")
"""How the states of a release come from those of the ledger."""

_BINS = (0.0, 1.0, 2.0, 3.0, 4.0)
_ROUNDED = 1e-9
_MOST_OUTPUTS = 3000


@dataclass(frozen=True)
class Law:
    """One law of a class of models: all series of positive probability, with it."""

    theta: Any
    paths: NDArray[np.int64]
    weights: Array


@dataclass
class Tally:
    """What was found about one query, and one way to state its states."""

    cases: int = 0
    above: int = 0
    nearest: float = 0.0


# models


def law_of(rng: np.random.Generator, states: list[str], length: int) -> Law:
    """A class of models of any kind that has so many states, and one law that it allows."""
    theta: Any = None
    while theta is None or theta.k < len(states):  # half of them chains, whose bounds tell pairs of states apart most
        theta = odd_class(rng, str(rng.choice([*KINDS, *["ChainClass"] * len(KINDS)])), states)
    every = list(some_laws(theta, length))
    data = paths(*every[int(rng.integers(len(every)))])
    return Law(theta, data.rows, data.weights)


# queries, with what they are by their definition


def queries(rng: np.random.Generator, states: list[str], n: int) -> Iterator[tuple[str, Any, Answer]]:
    """Every query on some states of n records, each with a choice of its own."""
    some = [str(s) for s in rng.permutation(states)[: rng.integers(1, len(states))]]
    values = {state: int(value) for state, value in zip(states, rng.integers(-2, 4, len(states)), strict=True)}
    values[states[0]] += len(set(values.values())) == 1
    factors = [int(f) for f in rng.integers(-1, 3, n)]
    factors[0] = 1
    start = int(rng.integers(n))
    stop = int(rng.integers(start + 1, n + 1))

    def within(x: Any, names: Sequence[str] = some) -> Any:
        return np.isin(x, names)

    def valued(x: Any) -> Any:
        return sum(value * (x == state) for state, value in values.items())

    counts = [("count", pf.Count(some), 1), ("frequency", pf.Frequency(some), 1 / n)]
    for kind, query, share in counts:
        yield kind, query, lambda x, share=share: [within(x).sum(axis=1) * share]
    for relative in (False, True):
        share = 1 / n if relative else 1
        name = "shares" if relative else "numbers"
        yield (
            f"histogram, {name}",
            pf.Histogram(relative=relative),
            lambda x, share=share: [(x == state).sum(axis=1) * share for state in states],
        )
        yield (
            f"cdf, {name}",
            pf.CDF(relative=relative),
            lambda x, share=share: [within(x, states[:j]).sum(axis=1) * share for j in range(1, len(states))],
        )
    yield "sum", pf.Sum(values), lambda x: [valued(x).sum(axis=1)]
    yield "mean", pf.Mean(values), lambda x: [valued(x).sum(axis=1) / n]
    yield "quantiles", pf.Quantiles(0.5), lambda x: [within(x, states[:j]).mean(axis=1) for j in range(1, len(states))]
    yield "weighted", pf.Weighted(pf.Sum(values), factors), lambda x: [(valued(x) * np.array(factors)).sum(axis=1)]
    yield "window", pf.Window(pf.Count(some), start, stop), lambda x: [within(x)[:, start:stop].sum(axis=1)]
    for one in (some, states[-1:]):
        yield "bouts", pf.Bouts(one), lambda x, one=one: [(~within(x, one)[:, :-1] & within(x, one)[:, 1:]).sum(axis=1)]
    yield "switches", pf.Switches(), lambda x: [(x[:, :-1] != x[:, 1:]).sum(axis=1)]
    yield (
        "transitions",
        pf.Transitions(),
        lambda x: [((x[:, :-1] == a) & (x[:, 1:] == b)).sum(axis=1) for a in states for b in states],
    )


# the truth


def true_loss(law: Law, released: Sequence[Array], rng: np.random.Generator) -> float:
    """The largest log ratio of an output's densities given two values of a record; ``released`` over their scales.

    Along one output the ratio is monotone between atoms and constant beyond them, so it is attained where the atoms
    are. Of many outputs the places are tried that some series have, and one output after the other from these: that can
    only miss some of the truth.
    """
    values = np.concatenate(released, axis=1)
    atoms, which = np.unique(values, axis=0, return_inverse=True)
    length, k = law.paths.shape[1], int(law.paths.max()) + 1
    given = np.zeros((length, k, len(atoms)))
    for t in range(length):
        np.add.at(given[t], (law.paths[:, t], which.ravel()), law.weights)
    mass = given.sum(axis=2, keepdims=True)
    there = mass[:, :, 0] > 0
    given = np.divide(given, mass, out=np.zeros_like(given), where=mass > 0)
    if not (there.sum(axis=1) > 1).any():
        return 0.0

    def at(outputs: Array) -> Array:
        logs = -np.abs(outputs[:, None, :] - atoms[None, :, :]).sum(axis=2)
        density = np.exp(logs - logs.max(axis=1, keepdims=True))
        told = np.einsum("oa,tka->otk", density, given)
        high = np.where(there, told, 0.0).max(axis=2)
        low = np.where(there, told, np.inf).min(axis=2)
        return np.log(high / low).max(axis=1)

    axes = [np.unique(column) for column in atoms.T]
    if np.prod([len(axis) for axis in axes], dtype=float) <= _MOST_OUTPUTS:
        return float(at(np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)).max())
    corners = np.array([[axis[rng.integers(2) - 1] for axis in axes] for _ in range(200)])
    tried = np.concatenate([atoms, corners])
    losses = at(tried)
    best = float(losses.max())
    for output in tried[np.argsort(-losses)[:2]]:
        for j, axis in enumerate(axes):
            places = np.repeat(output[None], len(axis), axis=0)
            places[:, j] = axis
            found = at(places)
            output, best = places[int(found.argmax())], max(best, float(found.max()))
    return best


# cases


def cases(seed: int, number: int) -> Iterator[tuple[str, str, float, float]]:
    """Yield query, states, true loss and what the ledger charges, of so many ledgers of two releases each."""
    rng, done = np.random.default_rng(seed), 0
    while done < number:
        k = int(rng.choice([2, 3, 3, 4]))
        length = int(rng.integers(2, {2: 7, 3: 5, 4: 4}[k]))
        for how in HOW[: 2 if k == 2 else 4]:
            states = ["<1", *(f"{i}-{i + 1}" for i in range(1, k - 1)), f">={k - 1}"]
            names = states if how == "bins" else [str(x) for x in rng.permutation(list("abcd"[:k]))]
            law = law_of(rng, names, length)
            bound = _bound(rng, law.theta, length)
            if bound is None:
                continue
            edge = int(rng.integers(1, k - 1)) if k > 2 else 1
            for kind, true, charged in _of_states(rng, law, bound, how, edge):
                yield kind, how, true, charged
                done += 1


def _bound(rng: np.random.Generator, theta: Any, length: int) -> Any:
    """A bound of the ledger: mostly propagation, which needs the least noise."""
    kinds = [pf.LeakagePropagation, pf.GroupDP, pf.MQMExact]
    try:
        return kinds[int(rng.choice(3, p=[0.8, 0.1, 0.1]))](theta, length)
    except pf.NotApplicableError:
        return pf.LeakagePropagation(theta, length)


def _of_states(
    rng: np.random.Generator, law: Law, bound: Any, how: str, edge: int
) -> Iterator[tuple[str, float, float]]:
    """Every query on states that are stated in one way, with a release before it: about any states, of any records."""
    names, length = list(law.theta.states), law.paths.shape[1]
    joined: Restated = restated(rng, names, "same" if how == "bins" else how)
    options: dict[str, Any] = {"coarsening": joined.groups} if how == "coarser" else {}
    base = None
    if how == "bins":
        k = len(names)
        coarse = [f"<{edge}", f">={edge}"]
        joined = Restated(coarse, {name: coarse[i >= edge] for i, name in enumerate(names)})
        base = Base(source="table.csv", state="a", bins=_BINS[: k + 1])
    mechanism = pf.GroupDP(joined.chain(rng), length)  # its noise is found at once, and counts here as any does
    read = np.array([joined.groups[name] for name in names])[law.paths]
    first = None
    if rng.random() < 0.7:  # of one of the ledger's own states, and of a part of the chain: then order matters
        start, state = int(rng.integers(length)), int(rng.integers(len(names)))
        first = pf.GroupDP(law.theta, length).calibrate(pf.Count(names[state]), 0.7 * length), (start, length)
        of_first = (law.paths[:, start:] == state).sum(axis=1, keepdims=True) / first[0].scale
    for kind, query, answer in queries(rng, joined.states, length):
        try:
            noise = mechanism.calibrate(query, length * float(rng.choice([0.4, 1.0, 2.5])))
        except PufferfishError:  # it says nothing of any record of this chain
            continue
        ledger = pf.Ledger(bound, 1e6, base=base)
        released = [np.stack(answer(read), axis=1) / noise.scale]
        if first is not None:
            ledger.spend(first[0], window=first[1])
            released.append(of_first)
        ledger.spend(noise, **options)
        yield kind, true_loss(law, released, rng), ledger.spent


def tally(
    seed: int, number: int, progress: Callable[[int], object] = lambda done: None
) -> dict[tuple[str, str], Tally]:
    """Return what was found in so many cases."""
    found: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    for done, (kind, how, true, charged) in enumerate(cases(seed, number), start=1):
        here = found[kind, how]
        here.cases += 1
        here.above += true > charged * (1 + _ROUNDED) + 1e-12
        here.nearest = max(here.nearest, true / charged if charged else float(true > 1e-12))
        progress(done)
    return dict(found)


def table(found: dict[tuple[str, str], Tally]) -> str:
    """Return the table: of each query and way to state states the cases, those above, and the largest true share."""
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    lines = ["| query | " + " | ".join(HOW) + " |", "|---" * (len(HOW) + 1) + "|"]
    for kind in kinds:
        each = [found.get((kind, how), Tally()) for how in HOW]
        lines.append(f"| {kind} | " + " | ".join(f"{t.cases:,}, {t.above} above, {t.nearest:.4f}" for t in each) + " |")
    above, number = sum(t.above for t in found.values()), sum(t.cases for t in found.values())
    return "\n".join([*lines, "", f"{number:,} cases, {above} where more leaks than is charged"])


def main() -> int:
    """Print the table of some cases; return 1 if more leaks than is charged in one of them."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("--cases", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=38)
    asked, start = options.parse_args(), time.monotonic()
    found = tally(asked.seed, asked.cases)
    print(table(found))
    print(f"seed {asked.seed}, {time.monotonic() - start:.0f} s")
    return int(any(each.above for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
