"""Noise, certificate gap and seconds of every mechanism over Θ = [α, 1 − α], the classes of the paper's synthetic data.

    python benchmarks/intervals.py [--alphas .1 .2 …] [--epsilons .2 1 5] [--start any|stationary] [--grid STEP]
                                   [--corners]

Counts, T = 100. The gap is how far the certified scale is above what a member of the class needs, in thousandths. With
``--grid`` the largest scale that members on a grid of p0, p1 need is printed below each row, with initial laws inside
and within 1e-9 of the corners: propagation and quilts at every point of the grid by the certificate's own loops on
single chains, which tests hold against the mechanisms. With ``--corners`` only leakage propagation is compared: the
noise of the two corners, with a past that knows no law, over that of the search, and the seconds of both.
"""

import argparse
import itertools
import time

import numpy as np

import pufferfish as pf
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms._propagation_on_chains import ProtectedStretch
from pufferfish.mechanisms.binary_interval import propagated, quilted
from pufferfish.queries.record_loss import as_record_loss
from pufferfish.theta.model_class import lengths_of

LENGTH = 100
LAWS = (0.5, 0.25, 0.84375, 0.03125, 1e-9, 1 - 1e-9)
MECHANISMS = (pf.GroupDP, pf.GK16, pf.MQMApprox, pf.MQMExact, pf.LeakagePropagation)


def row(theta: pf.BinaryChainInterval, epsilon: float) -> list[str]:
    cells: list[str] = []
    for mechanism in MECHANISMS:
        start = time.perf_counter()
        try:
            found = mechanism(theta, LENGTH).calibrate(pf.Count(1), epsilon)
        except NotApplicableError:
            cells.append("N/A")
            continue
        nearest = found.witness.nearest
        told = "" if nearest is None else f"{1000 * nearest.gap:.2f}‰, "
        cells.append(f"{found.scale:.5g} ({told}{time.perf_counter() - start:.1f} s)")
    return cells


def largest_on_grid(theta: pf.BinaryChainInterval, epsilon: float, step: float) -> dict[str, float]:
    """The largest scale that single chains on the grid need, by chunks, each above what earlier ones needed."""
    sides = np.linspace(theta.low, theta.high, round((theta.high - theta.low) / step) + 1)
    starts = LAWS if theta.initial_distribution == "any" else (-1.0,)
    points = np.array(list(itertools.product(sides, sides, starts)))
    points = points[np.argsort(-np.abs(points[:, 0] + points[:, 1] - 1))]
    kind = theta.initial_distribution
    needs = {"MQMExact": 0.0, "LeakagePropagation": 0.0}
    runs, loss = np.array([[LENGTH, 1.0, 1.0]]), np.ones(1)
    for some in np.array_split(points, max(1, len(points) // 2000)):
        boxes = np.repeat(some[:, :, None], 2, axis=2)
        most = needs["LeakagePropagation"]
        needs["LeakagePropagation"] = max(most, propagated(boxes, runs, epsilon, most)[0].max())
        most = needs["MQMExact"]
        needs["MQMExact"] = max(most, quilted(kind, boxes, LENGTH, LENGTH, loss, epsilon, most)[0].max())
    return needs


def corners(theta: pf.BinaryChainInterval, epsilon: float) -> str:
    """The noise of both corners over that of the search, and the seconds."""
    start = time.perf_counter()
    searched = pf.LeakagePropagation(theta, LENGTH).calibrate(pf.Count(1), epsilon).scale
    middle = time.perf_counter()
    losses = as_record_loss(1.0, theta, lengths_of(theta, LENGTH))
    ((noise, _),) = ProtectedStretch(theta, lengths_of(theta, LENGTH), 1).candidate_scales(losses, epsilon)
    ratio = noise / searched
    return f"{ratio:.4f} ({time.perf_counter() - middle:.1f} and {middle - start:.1f} s)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alphas", type=float, nargs="+", default=[round(0.1 + 0.02 * i, 2) for i in range(16)])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.2, 1.0, 5.0])
    parser.add_argument("--start", choices=["any", "stationary"], default="any")
    parser.add_argument("--grid", type=float, metavar="STEP")
    parser.add_argument("--corners", action="store_true")
    given = parser.parse_args()
    row(pf.BinaryChainInterval(0.45, 0.55), 1.0)  # compiled code is loaded
    if given.corners:
        print("| α |", " | ".join(f"ε = {epsilon:g}" for epsilon in given.epsilons), "|")
        print("|---|" + "---|" * len(given.epsilons))
        for alpha in given.alphas:
            theta = pf.BinaryChainInterval(alpha, 1 - alpha, initial_distribution=given.start)
            print(f"| {alpha:g} |", " | ".join(corners(theta, epsilon) for epsilon in given.epsilons), "|", flush=True)
        return
    print("| ε | α |", " | ".join(m.title for m in MECHANISMS), "|")
    print("|---|---|" + "---|" * len(MECHANISMS))
    for epsilon in given.epsilons:
        for alpha in given.alphas:
            theta = pf.BinaryChainInterval(alpha, 1 - alpha, initial_distribution=given.start)
            print(f"| {epsilon:g} | {alpha:g} |", " | ".join(row(theta, epsilon)), "|", flush=True)
            if given.grid:
                for title, scale in largest_on_grid(theta, epsilon, given.grid).items():
                    print(f"    {title} on the grid: {scale:.5g}", flush=True)


if __name__ == "__main__":
    main()
