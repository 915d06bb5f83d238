"""Noise for counts of transitions beside that of a histogram, on chains fitted to real data: docs/transitions.md.

    python benchmarks/transitions.py ../shared/data

Scales of the noise on each count. "4/b" is what transitions would need if each record paid for both of its steps,
"more" what they need more than the histogram, and "least" a scale below which no Laplace noise is enough for them.
"by laws" is what ExactLaplace needs for the switches of one chain of 1,000 records, of at most 8 states.
"""

import argparse
import time
from pathlib import Path

import pufferfish as pf

ACTIVITY = {"subject": "subject", "time": "timestamp", "max_gap": "10min"}
READINGS = {
    "Fitbit": ("activity_fitbit_minute.parquet", "state", {**ACTIVITY, "where": "awake"}),
    "activPAL": ("activity_activpal_12s.parquet", "state", {**ACTIVITY, "where": "awake and worn"}),
    "electricity": ("electricity_uci_2y_2006-12-17_1051200min.csv.gz", "watts", {"bins": "0,200,...,10200"}),
}


def main() -> None:
    """Print a row for every table that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the data are")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", choices=list(READINGS), action="append", help="one table; repeat")
    given = parser.parse_args()
    print(
        f"{'':12}{'histogram':>10}{'transitions':>12}{'4/b':>9}{'switches':>10}{'by laws':>9}"
        f"{'more':>8}{'least':>8}{'seconds':>9}"
    )
    for title in given.only or READINGS:
        name, state, reading = READINGS[title]
        if not (given.folder / name).exists():
            print(f"{title:12} is not there: {name}")
            continue
        data = pf.read_sequences(given.folder / name, state, **reading)
        theta = pf.fit_chain(data, smoothing=0)
        bound = pf.LeakagePropagation(theta, data.length)
        histogram = bound.calibrate(pf.Histogram(relative=False), given.epsilon).scale
        start = time.perf_counter()
        found = bound.calibrate(pf.Transitions(), given.epsilon)
        transitions = found.scale
        seconds = time.perf_counter() - start
        switches = bound.calibrate(pf.Switches(), given.epsilon).scale
        laws = (
            f"{pf.ExactLaplace(theta, 1000).calibrate(pf.Switches(), given.epsilon).scale:.2f}" if theta.k <= 8 else "-"
        )
        print(
            f"{title:12}{histogram:10.2f}{transitions:12.2f}{2 * histogram:9.2f}{switches:10.2f}{laws:>9}"
            f"{transitions / histogram - 1:8.1%}{found.lower_bound:8.2f}{seconds:9.1f}"
        )


if __name__ == "__main__":
    main()
