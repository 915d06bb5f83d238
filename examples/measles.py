"""How many children of a village are infectious today: households as cliques, released with noise for one query.

    python examples/measles.py CONTACTS.csv [--day 38] [--epsilon 1] [--output release.json]

CONTACTS has a row per child with the columns household, tI and tR (first and last day of being infectious), as the
measles of Hagelloch in 1861 in the R package "surveillance". Who lives together is public; who is infectious is not.
The class Θ is public too: given its size n, j children of a household are infectious with probability proportional to
e^{cj}, as in the paper's example, for several strengths c of contagion.
"""

import argparse
import math
from pathlib import Path

import polars as pl

import pufferfish as pf

STRENGTHS = (-1.0, 0.0, 1.0, 2.0)
STATES = ("healthy", "infectious")


def households(path: str, day: float) -> pf.Sequences:
    """Read who is infectious on a day, household by household."""
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected a CSV file")
    infectious = (pl.col("tI") <= day) & (pl.col("tR") > day)
    table = pl.read_csv(path).select(
        "household", state=pl.when(infectious).then(pl.lit(STATES[1])).otherwise(pl.lit(STATES[0]))
    )
    return pf.read_sequences(table, "state", subject="household", states=STATES)


def contagion(sizes: list[int]) -> pf.ModelClass:
    """Return the class Θ of households of given sizes."""
    members = [
        pf.Cliques.of_sizes(sizes, lambda n, c=c: [math.exp(c * j) for j in range(n + 1)], states=STATES)
        for c in STRENGTHS
    ]
    return pf.ModelClass(tuple(members), origin=f"P(N = j) ∝ e^(cj), c = {', '.join(f'{c:g}' for c in STRENGTHS)}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("contacts", metavar="CONTACTS")
    parser.add_argument("--day", type=float, default=38.0)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--output")
    options = parser.parse_args()
    try:
        publish(options)
    except (OSError, pl.exceptions.PolarsError, pf.PufferfishError) as error:
        parser.error(" ".join(str(error).split()))  # one line, and exit code 2


def publish(options: argparse.Namespace) -> None:
    """Print the noise of three mechanisms, and release."""
    data = households(options.contacts, options.day)
    theta = contagion([chain.records for chain in data.length])
    infectious = pf.Count("infectious")
    print(f"{data.records} children in {data.subjects} households, the largest of {max(data.length).records}")
    print(f"{'ε':>5}{'GroupDP':>10}{'Wasserstein':>13}{'ExactLaplace':>14}   (scale of the noise on the number)")
    for epsilon in (0.2, 1.0, 5.0):
        scales = [
            mechanism(theta).calibrate(infectious, epsilon).scale
            for mechanism in (pf.GroupDP, pf.Wasserstein, pf.ExactLaplace)
        ]
        print(f"{epsilon:>5g}{scales[0]:>10.4g}{scales[1]:>13.4g}{scales[2]:>14.4g}")
    calibration = pf.ExactLaplace(theta).calibrate(infectious, options.epsilon)
    release = pf.release(data, infectious, calibration)
    print(f"released: {release.value[0]:.0f} ± {release.accuracy(0.05):.0f} (95%) infectious on day {options.day:g}")
    print(release.promise)
    if options.output:
        release.to_json(options.output)


if __name__ == "__main__":
    main()
