"""Does it help to know the model after the noise was added? Posterior modes of counts beside plain and valid counts.

    python benchmarks/model_postprocessing.py --data FOLDER

A chain is fitted to one half of the subjects (of few people the days), and histograms of counts of the other half are
released, of all of them together and of each by itself. The counts of a long chain are about normal, with the mean Tπ
and the covariance T·(diag(π)Z + Z'diag(π) − diag(π) − ππ'), Z = (I − P + 1π)⁻¹. "MAP" is the most likely vector of
counts under that prior and the law of the noise; "wide" adds to the prior how shares differ between the
subjects of the first half. Numbers are mean L1 errors of shares, in percent of the records; the noise is simulated.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import pufferfish as pf
from pufferfish._core.chains.markov import stationary_law
from pufferfish.release.postprocessing import project_to_simplex

Array = NDArray[np.float64]

DRAWS, ROUNDS, MOST, FEW = 40, 40, 60, 6
ACTIVITY = {
    "Fitbit": ("activity_fitbit_minute.parquet", "awake"),
    "activPAL": ("activity_activpal_12s.parquet", "awake and worn"),
}
POWER = "electricity_uci_2y_2006-12-17_1051200min.csv.gz"


def halves(folder: Path) -> Iterator[tuple[str, pf.Sequences, pf.Sequences]]:
    """Yield public and private halves: every other subject, or the first and the second year in days."""
    for name, (file, kept) in ACTIVITY.items():
        frame = pl.read_parquet(folder / file)
        who = pl.col("subject").cast(pl.String)
        if frame["subject"].n_unique() < FEW:  # days of few people
            who = pl.concat_str(who, pl.col("timestamp").dt.date().cast(pl.String), separator=" ")
        frame = frame.with_columns(subject=who)
        places = {subject: i for i, subject in enumerate(frame["subject"].unique().sort())}
        odd = frame["subject"].replace_strict(places, return_dtype=pl.Int64) % 2 == 1
        reading = {"subject": "subject", "time": "timestamp", "max_gap": "10min", "where": kept}
        states = sorted({str(s) for s in frame["state"].drop_nulls().unique()})
        yield name, *(pf.read_sequences(frame.filter(part), "state", states=states, **reading) for part in (~odd, odd))
    watts = pl.read_csv(folder / POWER, columns=["watts"]).with_row_index("row").with_columns(day=pl.col("row") // 1440)
    middle = watts["day"].max() // 2
    first, second = watts.filter(pl.col("day") < middle), watts.filter(pl.col("day") >= middle)
    bins = "0,200,...,10200"
    yield "electricity", *(pf.read_sequences(part, "watts", subject="day", bins=bins) for part in (first, second))


def prior(chain: pf.MarkovChain) -> tuple[Array, Array]:
    """Return mean and covariance of counts for each record of a long chain."""
    p = np.asarray(chain.transition_matrix)
    pi = stationary_law(p)
    z = np.linalg.inv(np.eye(len(p)) - p + pi[None, :])
    return pi, np.diag(pi) @ z + z.T @ np.diag(pi) - np.diag(pi) - np.outer(pi, pi)


def most_likely(noisy: Array, scale: float, mean: Array, covariance: Array) -> Array:
    """Return the most likely counts under a normal prior and Laplace noise: least squares, weighted again and again."""
    found = noisy
    for _ in range(ROUNDS):
        spread = np.diag(scale * np.maximum(np.abs(noisy - found), 1e-3 * scale))
        found = mean + covariance @ np.linalg.solve(covariance + spread, noisy - mean)
    return found


def errors(counts: Array, scale: float, pi: Array, each: Array, between: Array, rng: np.random.Generator) -> Array:
    """Return L1 errors of shares: plain, valid, MAP, MAP with the wide prior, and the noiseless guess Tπ."""
    total = counts.sum()
    p = 1 - np.exp(-1 / scale)
    noise = rng.geometric(p, (DRAWS, len(counts))) - rng.geometric(p, (DRAWS, len(counts)))
    mean, narrow = total * pi, total * each
    found = []
    for noisy in counts + noise:
        guesses = [noisy, project_to_simplex(noisy, total)]
        for covariance in (narrow, narrow + total**2 * between):
            guesses.append(project_to_simplex(most_likely(noisy, scale, mean, covariance), total))
        found.append([np.abs(guess - counts).sum() for guess in (*guesses, mean)])
    return np.mean(found, axis=0) / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    folder, rng = parser.parse_args().data, np.random.default_rng(0)
    heads = ("plain", "valid", "MAP", "wide MAP", "Tπ alone")
    print(f"{'data':<13}{'released':<10}{'ε':>5}{'records':>10}" + "".join(f"{head:>10}" for head in heads))
    for name, public, private in halves(folder):
        chain = pf.fit_chain(public, smoothing=0.01)
        pi, each = prior(chain)
        shares = public.counts / public.counts.sum(axis=1, keepdims=True)
        between = np.cov(shares, rowvar=False)
        subjects = private.counts[private.counts.sum(axis=1) >= 100][:MOST].astype(float)
        for epsilon in (0.2, 1.0, 5.0):
            for released, some, length in (
                ("together", private.counts.sum(axis=0, keepdims=True).astype(float), private.length),
                ("each", subjects, int(subjects.sum(axis=1).max())),
            ):
                scale = pf.LeakagePropagation(chain, length).calibrate(pf.Histogram(relative=False), epsilon).unit_scale
                # how subjects differ hides in a sum of many of them
                apart = between / (len(private.counts) if released == "together" else 1)
                found = np.mean([errors(counts, scale, pi, each, apart, rng) for counts in some], axis=0)
                records = some.sum(axis=1).mean()
                told = "".join(f"{error:>10.3%}" for error in found)
                print(f"{name:<13}{released:<10}{epsilon:>5g}{records:>10,.0f}{told}", flush=True)


if __name__ == "__main__":
    main()
