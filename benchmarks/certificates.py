"""Certificates: what a proof that plain code checks costs in noise, bytes and seconds, on real data and networks.

    python benchmarks/certificates.py --data FOLDER

Histograms at ε = 1, of networks that of every column; household power is the example of 2008 in seven bins. Seconds are
processor time.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import pufferfish as pf
from pufferfish.release.certificate import record_of_noise
from pufferfish.release.checker import check, check_more

EXAMPLE = Path(__file__).parent.parent / "examples" / "data" / "household_power_2008.csv.gz"
RANDOM = "500 random chains"
TEN = "household power, a ledger of ten releases"
BINS = [0, 200, 400, 700, 1300, 2000, 3500, 20000]
ACTIVITY = {"subject": "subject", "time": "timestamp", "max_gap": "10min"}
READINGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Fitbit": ("activity_fitbit_minute.parquet", "state", {**ACTIVITY, "where": "awake"}),
    "activPAL": ("activity_activpal_12s.parquet", "state", {**ACTIVITY, "where": "awake and worn"}),
    "electricity": ("electricity_uci_2y_2006-12-17_1051200min.csv.gz", "watts", {"bins": "0,200,...,10200"}),
}


def main() -> None:
    """Print a row for every case whose data are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where the data are")
    parser.add_argument("--only", help="cases whose name begins so")
    given = parser.parse_args()
    print("| case | states | noise multiplier | more for the proof | bytes | s to make | s to check |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    if TEN.startswith(given.only or ""):
        print_total()
    if RANDOM.startswith(given.only or ""):
        print_random()
    for title, make in cases(given.data):
        if not title.startswith(given.only or ""):
            continue
        noise = make()
        began = time.process_time()
        certificate = pf.certify(noise)
        made = time.process_time() - began
        assert certificate.calibration is not None
        record, began = record_of_noise(certificate.calibration), time.process_time()
        certificate.check(record)
        checked = time.process_time() - began
        row = f"{noise.noise_multiplier:.2f} | {certificate.price:.3%} | {len(certificate.proof):,} | {made:.1f}"
        print(f"| {title} | {len(noise.theta.states)} | {row} | {checked:.3f} |", flush=True)


def print_total() -> None:
    """Print the row of what ten releases of one ledger cost together: the ε that is proved against the ledger's."""
    home = pf.read_sequences(EXAMPLE, "watts", time="timestamp", max_gap="1min", bins=BINS)
    chain = pf.fit_chain(home, smoothing=0.5)
    ledger = pf.Ledger(pf.LeakagePropagation(chain, home.length), budget=1.0, base=home)
    queries = [pf.Histogram(), pf.CDF(), *(pf.Count(state) for state in chain.states), pf.Frequency(chain.states[-1])]
    releases = []
    for i, query in enumerate(queries, 1):
        releases.append(pf.release(home, query, ledger.calibrate(query, up_to=i / len(queries)), ledger=ledger))
    began = time.process_time()
    certificate = pf.certify(releases)
    made = time.process_time() - began
    texts, began = [release.to_json() for release in releases], time.process_time()
    claims, proof = [check.claim_of(text) for text in texts], check.parsed(certificate.proof, check_more.TOTAL, "proof")
    check.prove(check_more.together(claims, Fraction(proof["epsilon"])), proof)
    checked = time.process_time() - began
    row = f"{float(proof['epsilon']) / ledger.spent - 1:.3%} | {len(certificate.proof):,} | {made:.1f} | {checked:.3f}"
    print(f"| {TEN} | {len(chain.states)} | | {row} |", flush=True)


def print_random() -> None:
    """Print what proofs cost in noise for random stationary chains of two to six states: the price of nine in ten."""
    rng, prices = np.random.default_rng(0), list[float]()
    for _ in range(500):
        k = int(rng.integers(2, 7))
        chain = pf.MarkovChain(rng.dirichlet(np.ones(k), k))
        noise = pf.LeakagePropagation(chain, 1000).calibrate(pf.Histogram(), 1.0)
        prices.append(pf.certify(noise).price)
    print(f"| {RANDOM} | 2 to 6 | | {np.quantile(prices, 0.9):.3%} (nine in ten) | | | |", flush=True)


def cases(folder: Path) -> Iterator[tuple[str, Callable[[], pf.Calibration]]]:
    """Yield the name of every case, and what makes its noise."""
    for name, data, theta, settings in of_chains(folder):
        mechanism = pf.LeakagePropagation(theta, data.length)
        yield name, partial(mechanism.calibrate, pf.Histogram(), 1.0, **settings)
    for name in ("asia", "child"):
        path = folder / "bayesnets" / f"{name}.bif.gz"
        if path.exists():
            network = pf.BayesianNetwork.from_bif(path)
            nodes = f"{len(network.nodes)} columns"
            yield f"{name}, {nodes}", partial(pf.LeakagePropagation(network, 1000).calibrate, pf.Marginals(), 1.0)


def of_chains(folder: Path) -> Iterator[tuple[str, pf.Sequences, Any, dict[str, Any]]]:
    """Yield the name, the data, the class and the settings of every case of chains."""

    @cache
    def read(name: str, **more: Any) -> pf.Sequences | None:
        file, state, reading = READINGS[name]
        return pf.read_sequences(folder / file, state, **reading, **more) if (folder / file).exists() else None

    for name in READINGS:
        data = read(name)
        if data is None:
            print(f"| {name} is not there | | | | | | |")
            continue
        chain = pf.fit_chain(data, smoothing=0)
        yield name, data, chain, {}
        if name == "electricity":
            continue
        yield f"{name}, any first law", data, pf.MarkovChain(chain.transition_matrix, "any", states=chain.states), {}
        if name == "Fitbit":
            yield f"{name}, any hour of it", data, chain, {"protect": 60}
            yield f"{name}, the best noise", data, chain, {"noise": "best"}
    home = pf.read_sequences(EXAMPLE, "watts", time="timestamp", max_gap="1min", bins=BINS)
    yield "household power", home, pf.fit_chain(home, smoothing=0.5), {}
    by_hour = pf.read_sequences(EXAMPLE, "watts", time="timestamp", max_gap="1min", bins=BINS, clock="hour")
    yield "household power by the hour", by_hour, pf.fit_periodic(by_hour), {}


if __name__ == "__main__":
    main()
