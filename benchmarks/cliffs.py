"""A scan for cliffs in time: problems that are nearly the same and take very different times.

    python benchmarks/cliffs.py [--quick] [--minutes 20] [--seed 0] [--limit 60] [--factor 5] [--only WORD …]
    python benchmarks/cliffs.py --named

Draws problems (a mechanism, a class of chains, what is asked), and follows each along lengths (powers of two with their
neighbours, and round numbers up to a million) and along ε. Every case runs in a process of its own kind, which is
stopped after ``--limit`` seconds; compiled code is loaded before anything is timed, and seconds are those of the
processor. Printed are the slowest cases, and neighbours of which one takes more than ``--factor`` times as long as
the other and as their lengths explain. No answer is checked: that is for the tests.

``--named`` does the cases that were cliffs once and nothing else, each beside a neighbour, and prints the ratio.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

import pufferfish as pf
from pufferfish.errors import PufferfishError

LENGTHS = (5, 100, 127, 128, 129, 1000, 1023, 1025, 2047, 2048, 2049, 4095, 4097, 8191, 8193, 10_000, 1_000_000)
EPSILONS = (0.01, 0.1, 1.0, 10.0)
MECHANISMS = ("LeakagePropagation", "MQMExact", "MQMApprox", "GK16", "ExactLaplace")
SHAPES = ("sticky .9", "sticky .99", "sticky .999", "fast", "cycle", "nearly a cycle", "rare", "one rare step")
STARTS = ("given", "stationary", "any", "point")
CLASSES = ("several chains", "IntervalChain", "BinaryChainInterval")
QUERIES = ("Histogram", "Count", "Sum", "Mean", "Frequency", "window", "Profile", "leakage", "unobserved")
LONGEST = {"ExactLaplace": 10_000, "window": 10_000, "Profile": 10_000}
"""Lengths beyond which a mechanism refuses, or a problem needs an entry per record."""


@dataclass(frozen=True)
class Case:
    """A problem to be timed."""

    mechanism: str
    model: str
    k: int
    start: str
    query: str
    length: int
    epsilon: float
    seed: int

    def __str__(self) -> str:
        return (
            f"{self.mechanism} {self.query}, {self.model}, k = {self.k}, {self.start} (seed {self.seed}), "
            f"T = {self.length}, ε = {self.epsilon:g}"
        )


def matrix(shape: str, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return a transition matrix of a kind."""
    mixed = rng.dirichlet(np.ones(k), size=k)
    if shape.startswith("sticky"):
        stay = float(shape.split()[1])
        away = mixed * ~np.eye(k, dtype=bool)
        found = stay * np.eye(k) + (1 - stay) * away / away.sum(axis=1, keepdims=True)
    elif shape == "cycle":
        found = np.roll(np.eye(k), 1, axis=1)
    elif shape == "nearly a cycle":
        found = 0.999 * np.roll(np.eye(k), 1, axis=1) + 0.001 * mixed
    elif shape == "rare":
        found = 10.0 ** rng.uniform(-12, 0, size=(k, k))
    elif shape == "one rare step":
        found = mixed
        found[0, k - 1] = 10.0 ** rng.uniform(-12, -6)
    else:
        found = mixed
    return found / found.sum(axis=1, keepdims=True)


@cache
def model(case: Case) -> Any:
    """Return the class of chains of a case."""
    rng = np.random.default_rng(case.seed)
    if case.model == "BinaryChainInterval":
        low = float(rng.choice([0.01, 0.03, 0.1, 0.3]))
        start = "any" if case.start in ("any", "point") else "stationary"
        return pf.BinaryChainInterval(low, 1 - low, initial_distribution=start)
    if case.model == "IntervalChain":
        p = matrix(str(rng.choice(["sticky .9", "sticky .99", "fast"])), case.k, rng)
        width = float(rng.choice([1e-3, 0.02, 0.1]))
        return pf.IntervalChain(np.maximum(p - width, p / 4), np.minimum(p + width, 1.0))
    start: Any = {"given": rng.dirichlet(np.ones(case.k)), "point": np.eye(case.k)[0]}.get(case.start, case.start)
    if case.model == "several chains":
        return [pf.MarkovChain(matrix("sticky .9", case.k, rng), start) for _ in range(3)]
    return pf.MarkovChain(matrix(case.model, case.k, rng), start)


def work(case: Case) -> float:
    """Do what a case asks, and return the noise or the leakage."""
    theta = model(replace(case, mechanism="", query="", length=0, epsilon=0.0))
    length = case.length
    observed = pf.ChainLength(length, length // 2) if case.query == "unobserved" else length
    mechanism = getattr(pf, case.mechanism)(theta, observed)
    each = case.epsilon / 20
    if case.query == "leakage":
        return mechanism.leakage(each)
    if case.query == "Profile":
        stretch = max(1, length // 5)
        losses = [(stretch, each * (1 + i % 3)) for i in range(4)]
        return mechanism.leakage(pf.Profile([*losses, (length - 4 * stretch, 0.0)]))
    states = theta[0].states if isinstance(theta, list) else theta.states
    values = {state: float(i * i) for i, state in enumerate(states)}
    queries = {
        "Histogram": lambda: pf.Histogram(),
        "Count": lambda: pf.Count(states[-1]),
        "Frequency": lambda: pf.Frequency(states[-1]),
        "Sum": lambda: pf.Sum(values),
        "Mean": lambda: pf.Mean(values),
        "window": lambda: pf.Window(pf.Count(states[-1]), length // 3, length // 3 + max(1, length // 4)),
        "unobserved": lambda: pf.Count(states[-1]),
    }
    return mechanism.calibrate(queries[case.query](), case.epsilon).scale


def serve(pipe: Connection) -> None:
    """Do cases that come through a pipe, and send back their seconds and what came out."""
    for query in ("Count", "leakage"):  # loads compiled code
        for mechanism in MECHANISMS:
            for shape, k in (("fast", 2), ("sticky .99", 3), ("BinaryChainInterval", 2)):
                attempt(Case(mechanism, shape, k, "any", query, 300, 1.0, 0))
    attempt(Case("LeakagePropagation", "sticky .99", 4, "stationary", "Histogram", 2049, 1.0, 0))
    pipe.send(None)
    while True:
        pipe.send(attempt(pipe.recv()))


def attempt(case: Case) -> tuple[float, str]:
    start = time.process_time()
    try:
        found = f"{work(case):.6g}"
    except PufferfishError as error:
        found = type(error).__name__
    except Exception as error:  # a scan goes on, and tells
        found = f"FAILS {type(error).__name__}: {error}"[:120]
    return time.process_time() - start, found


class Worker:
    """A process that does one case after the other, and is replaced where one takes too long."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._start()

    def _start(self) -> None:
        self._pipe, other = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=serve, args=(other,), daemon=True)
        self._process.start()
        self._pipe.recv()

    def __call__(self, case: Case) -> tuple[float, str]:
        self._pipe.send(case)
        if self._pipe.poll(self._limit):
            return self._pipe.recv()
        self.stop()
        self._start()
        return self._limit, "stopped"

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


def lines(seed: int, only: list[str]) -> Iterator[list[Case]]:
    """Yield problems without end, each as a line of cases, along lengths and then along ε."""
    rng = np.random.default_rng(seed)
    while True:
        mechanism = str(rng.choice(MECHANISMS, p=[0.4, 0.2, 0.1, 0.1, 0.2]))
        shape = str(rng.choice([*SHAPES, *CLASSES]))
        k = 2 if mechanism == "ExactLaplace" or shape == "BinaryChainInterval" else int(rng.integers(2, 7))
        query = str(rng.choice(QUERIES if mechanism != "ExactLaplace" else ("Count", "Frequency", "Sum")))
        start, chosen = str(rng.choice(STARTS)), int(rng.integers(1000))
        length, epsilon = int(rng.choice(LENGTHS[1:])), float(rng.choice(EPSILONS))
        most = min(LONGEST.get(mechanism, LENGTHS[-1]), LONGEST.get(query, LENGTHS[-1]))
        case = Case(mechanism, shape, k, start, query, min(length, most), epsilon, chosen)
        if all(word.lower() in str(case).lower() for word in only):
            yield [replace(case, length=t) for t in LENGTHS if t <= most]
            yield [replace(case, epsilon=e) for e in EPSILONS]


def neighbours(line: list[Case], seconds: dict[Case, float], factor: float) -> Iterator[tuple[float, Case, Case]]:
    """Yield neighbours of which one takes ``factor`` times as long, beyond what their lengths explain."""
    for one, two in pairwise(line):
        if one in seconds and two in seconds:
            explained = two.length / one.length
            ratio = max(seconds[one] / max(seconds[two], 0.01), seconds[two] / max(seconds[one], 0.01) / explained)
            if ratio > factor and max(seconds[one], seconds[two]) > 0.5:
                yield ratio, one, two


def leakage_of_profile(gap: int, times: int, p: float = 0.001) -> float:
    """Ask what a record of every ``gap`` + 1 leaks in a chain that alternates."""
    chain = pf.MarkovChain([[p, 1 - p], [1 - p, p]])
    return pf.LeakagePropagation(chain, (gap + 1) * times).leakage(pf.Profile([(1, 0.05), (gap, 0.0)] * times))


def scale_of(matrix: Any, length: int, epsilon: float, noise: str = "equal", verify: bool = False) -> float:
    """Calibrate a histogram of a chain, and prove its noise again."""
    bound = pf.LeakagePropagation(pf.MarkovChain(matrix), length)
    found = bound.calibrate(pf.Histogram(), epsilon, noise=noise)
    return bound.verify(found)[0] if verify else found.scale


def sticky(k: int, stay: float) -> np.ndarray:
    """Return a chain that stays where it is most of the time."""
    return stay * np.eye(k) + (1 - stay) * np.random.default_rng(0).dirichlet(np.ones(k), size=k)


SLOW, FASTER = [[0.99995, 0.00005], [1e-5, 0.99999]], [[0.95, 0.05], [0.01, 0.99]]
ALIKE = 0.5 * np.eye(30) + 0.5 / 30

NAMED: dict[str, tuple[Callable[[], float], Callable[[], float]]] = {
    "two sticky states, T = 1e6, ε = 1; less sticky": (
        lambda: scale_of(SLOW, 10**6, 1.0),
        lambda: scale_of(FASTER, 10**6, 1.0),
    ),
    "two sticky states, T = 1e6, ε = .01, proved again; less sticky": (
        lambda: scale_of(SLOW, 10**6, 0.01, verify=True),
        lambda: scale_of(FASTER, 10**6, 0.01, verify=True),
    ),
    "a record of every 201 in a chain that alternates; of every 24": (
        lambda: leakage_of_profile(200, 3000),
        lambda: leakage_of_profile(23, 3000),
    ),
    'noise="best" of k = 30, T = 300, no better shape; noise="equal"': (
        lambda: scale_of(ALIKE, 300, 1.0, "best"),
        lambda: scale_of(ALIKE, 300, 1.0),
    ),
    'noise="best" of k = 30, T = 300, a better shape; noise="equal"': (
        lambda: scale_of(sticky(30, 0.5), 300, 1.0, "best"),
        lambda: scale_of(sticky(30, 0.5), 300, 1.0),
    ),
    "k = 10, T = 1e6, ε = 1e-5; ε = .01": (
        lambda: scale_of(sticky(10, 0.99), 10**6, 1e-5),
        lambda: scale_of(sticky(10, 0.99), 10**6, 0.01),
    ),
}
"""What took, or cost, many times as much as its neighbour."""


def print_named() -> None:
    """Print the named cases: seconds of both, and the ratio."""
    for query in (lambda: scale_of(sticky(10, 0.9), 300, 1.0), lambda: leakage_of_profile(30, 20)):
        query()  # loads compiled code
    for name, (case, neighbour) in NAMED.items():
        seconds, answers = [], []
        for ask in (neighbour, case):
            start = time.process_time()
            answers.append(ask())
            seconds.append(time.process_time() - start)
        print(
            f"{seconds[1] / max(seconds[0], 0.01):7.1f}x  {seconds[1]:.2f} s and {seconds[0]:.2f} s: {name}: "
            f"{answers[1]:.6g} and {answers[0]:.6g}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two minutes, and 20 seconds for a case")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a case is stopped")
    parser.add_argument("--factor", type=float, default=5)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="problems whose line has these words")
    parser.add_argument("--named", action="store_true", help="the cases that were cliffs once, and nothing else")
    given = parser.parse_args()
    if given.named:
        print_named()
        return
    minutes, limit = (2.0, 20.0) if given.quick else (given.minutes, given.limit)
    worker, seconds, found = Worker(limit), dict[Case, float](), dict[Case, str]()
    jumps: list[tuple[float, Case, Case]] = []
    end = time.monotonic() + 60 * minutes
    for line in lines(given.seed, given.only):
        for case in line:
            if case not in seconds and time.monotonic() < end:
                seconds[case], found[case] = worker(case)
                print(f"\r{len(seconds)} cases, slowest {max(seconds.values()):.1f} s", end="", file=sys.stderr)
        jumps += neighbours(line, seconds, given.factor)
        if time.monotonic() >= end:
            break
    worker.stop()
    print(f"\n{len(seconds)} cases; the slowest:")
    for case in sorted(seconds, key=lambda c: -seconds[c])[:25]:
        print(f"{seconds[case]:8.2f} s  {case}: {found[case]}")
    print(f"\nneighbours that differ more than {given.factor:g}-fold:")
    for ratio, one, two in sorted(jumps, key=lambda jump: -jump[0]):
        then = f"{seconds[two]:.2f} s at T = {two.length}, ε = {two.epsilon:g}"
        print(f"{ratio:8.1f}x  {seconds[one]:.2f} s, then {then}: {one}")
    for case in (case for case in found if found[case].startswith("FAILS")):
        print(f"{case}: {found[case]}")


if __name__ == "__main__":
    main()
