"""What an hour a day needs: by itself, over weeks of a table, over a year, and if nobody knew where the hours are.

    python benchmarks/hours.py

Noise multipliers of a histogram at ε = 1, on the chain that is fitted to the example of a household's power in seven
bins, minute by minute.
"""

import time
from pathlib import Path

import pufferfish as pf

TABLE = Path(__file__).parent.parent / "examples" / "data" / "household_power_2008.csv.gz"
EDGES = [0, 200, 400, 700, 1300, 2000, 3500, 20000]


def main() -> None:
    whole = pf.read_sequences(TABLE, "watts", time="timestamp", max_gap="1min", bins=EDGES)
    smoothed = whole.transitions + 0.5
    chain = pf.MarkovChain(smoothed / smoothed.sum(axis=1, keepdims=True), states=whole.states)
    hours = pf.read_sequences(
        TABLE, "watts", time="timestamp", max_gap="1min", bins=EDGES, states=whole.states, where="hour(timestamp) == 8"
    )
    days = len(hours.length[0].places) // 2 + 1
    year = pf.ChainLength(364 * 1440 + 60, 365 * 60, (60, 1380) * 364 + (60,))
    asked = {
        "one hour by itself": 60,
        f"that hour on {days} days, by a filter of the table": hours.length,
        "that hour on 365 days": year,
        "as many records of 365 days, wherever they are": year.without_positions,
    }
    for what, length in asked.items():
        began = time.perf_counter()
        found = pf.LeakagePropagation(chain, length).calibrate(pf.Histogram(), 1.0)
        print(f"{what:<52} {found.noise_multiplier:8.4g} {time.perf_counter() - began:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
