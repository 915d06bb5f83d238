"""Make the files of this folder: small ones of every kind that version 0.1 writes, from made-up records.

    python tests/made_by_0_1/make.py

It was run once, with version 0.1.0, and is kept to show what the files hold. They are not made anew: every later 0.x
reads them as they are, and ``tests/contract/test_made_by_0_1.py`` holds it to that. What a later version writes besides
gets a folder of its own.
"""

import datetime as dt
import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl

import pufferfish as pf

HERE = Path(__file__).parent
STATES = ["no", "yes"]
P = [[0.7, 0.3], [0.4, 0.6]]
TWO = pf.MarkovChain(P, states=STATES)
ANY = pf.MarkovChain(P, "any", states=STATES)
NEARLY_FAIR = pf.MarkovChain([[0.55, 0.45], [0.45, 0.55]], states=STATES)
FAIR = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=STATES)
THREE = pf.MarkovChain([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.2, 0.4, 0.4]], states=["rest", "walk", "run"])
HIGHER = pf.HigherOrderChain([[[0.7, 0.3], [0.6, 0.4]], [[0.5, 0.5], [0.4, 0.6]]], states=STATES)
STAYS = pf.StaysChain([[0, 1], [1, 0]], [[(0.6, 0.4), (0.4, 0.9)], [(1, 0.5)]], states=STATES)
BOUNDS = pf.IntervalChain([[0.6, 0.3], [0.3, 0.5]], [[0.7, 0.4], [0.5, 0.7]], states=STATES, origin="a survey")
THETA: dict[str, Any] = {
    "chain": TWO,
    "chain-any": ANY,
    "chain-given": pf.MarkovChain(P, [0.5, 0.5], states=STATES),
    "chains": pf.ChainClass([TWO, pf.MarkovChain([[0.5, 0.5], [0.3, 0.7]], states=STATES)], names=["ann", "bob"]),
    "clock": pf.PeriodicChain(
        [P if hour < 12 else [[0.5, 0.5], [0.3, 0.7]] for hour in range(24)], clock="hour", step="1h", states=STATES
    ),
    "order": HIGHER,
    "stays": STAYS,
    "mixed": [TWO, HIGHER, STAYS, BOUNDS],
    "interval": BOUNDS,
    "binary-interval": pf.BinaryChainInterval(0.45, 0.55, states=STATES),
    "forgetting": pf.ForgettingClass([3, 9], [0.3, 0.8], STATES),
}
NETWORK = pf.BayesianNetwork(
    {
        "a": pf.CPT(["no", "yes"], [0.8, 0.2]),
        "b": pf.CPT(["yes", "no"], [[0.2, 0.8], [0.6, 0.4]], ["a"]),
        "c": pf.CPT(["low", "mid", "high"], [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]], ["b"]),
    }
)
ROWS = pl.DataFrame({"a": ["no", "yes"] * 20, "b": ["no", "no", "yes", "yes"] * 10, "c": ["low", "mid"] * 20})
HOLES = ROWS.with_columns(pl.when(pl.int_range(40) % 7 == 0).then(None).otherwise(pl.col("b")).alias("b"))
READING = {"subject": "who", "time": "t", "max_gap": "1h", "time_zone": "UTC"}


def series(states: list[str], seed: int = 1, subjects: int = 2, hours: int = 48) -> pl.DataFrame:
    drawn = random.Random(seed)
    rows = [
        (f"s{subject}", dt.datetime(2024, 1, 1) + dt.timedelta(hours=hour + 5 * (hour > 20)), drawn.choice(states))
        for subject in range(subjects)
        for hour in range(hours)
    ]
    return pl.DataFrame(rows, schema=["who", "t", "state"], orient="row")


def released(
    theta: Any,
    query: Any,
    data: Any = None,
    mechanism: Any = pf.LeakagePropagation,
    *,
    length: Any = None,
    noise: Any = "equal",
    valid: bool = False,
    reading: dict[str, Any] | None = None,
    **settings: Any,
) -> Callable[[], pf.Release]:
    def make() -> pf.Release:
        first = theta[0] if isinstance(theta, list) else theta
        read = data
        if read is None:
            read = pf.read_sequences(series(list(first.states)), "state", **READING, **(reading or {}))
        steps = read.length if length is None and hasattr(read, "length") else length
        calibration = mechanism.of(theta, steps, **settings).calibrate(query, 1.0, noise=noise)
        return pf.release(read, query, calibration, postprocess="valid" if valid else None)

    return make


def releases() -> dict[str, Callable[[], pf.Release]]:
    rows, holes = pf.read_rows(ROWS, NETWORK), pf.read_rows(HOLES, NETWORK, missing="unobserved")
    joint = pf.read_rows(ROWS, NETWORK, joint=["a", "b"])
    pairs = pf.JointDistribution([("no", "no"), ("no", "yes"), ("yes", "yes")], [0.5, 0.25, 0.25])
    row = ["no", "yes", "yes"] * 4
    made = {f"theta-{name}": released(theta, pf.Histogram()) for name, theta in THETA.items()}
    return made | {
        "best": released(THREE, pf.Histogram(), noise="best", valid=True),
        "count": released(TWO, pf.Count("yes")),
        "mean": released(THREE, pf.Mean([0, 80, 180])),
        "sum": released(THREE, pf.Sum([0, 0.5, 2])),
        "cdf": released(THREE, pf.CDF(), noise="best", valid=True),
        "quantiles": released(THREE, pf.Quantiles([0.25, 0.5])),
        "transitions": released(TWO, pf.Transitions()),
        "switches": released(TWO, pf.Switches(relative=True)),
        "bouts": released(TWO, pf.Bouts("yes")),
        "groups": released(TWO, pf.Frequency("yes"), reading={"by": ["weekday(t)"]}),
        "groups-nested": released(TWO, pf.Frequency("yes"), reading={"by": ["date(t)<week(t)"]}),
        "groups-of-steps": released(TWO, pf.Transitions(), reading={"by": ["weekday(t)"]}, valid=True),
        "hour-hidden": released(TWO, pf.Histogram(), protect=3),
        "near-hidden": released(THREE, pf.Histogram(), within=[("rest", "walk")]),
        "person-hidden": released(TWO, pf.Histogram(), protect="subject"),
        "mqm-exact": released(TWO, pf.Histogram(), mechanism=pf.MQMExact),
        "mqm-approx": released(TWO, pf.Histogram(), mechanism=pf.MQMApprox),
        "group-dp": released(TWO, pf.Histogram(), mechanism=pf.GroupDP),
        "gk16": released(NEARLY_FAIR, pf.Histogram(), mechanism=pf.GK16),
        "entry-dp": released(FAIR, pf.Histogram(), mechanism=pf.EntryDP),
        "delta": released(TWO, pf.Count("yes"), row, pf.ApproximateWasserstein, length=12, delta=1e-3),
        "wasserstein": released(TWO, pf.Count("yes"), row, pf.Wasserstein, length=12),
        "exact-laplace": released(TWO, pf.Count("yes"), row, pf.ExactLaplace, length=12),
        "window": released(TWO, pf.Window(pf.Count("yes"), 3, 9), row, length=12),
        "network": released(NETWORK, pf.Marginals(), rows, valid=True),
        "network-holes": released(NETWORK, pf.Subset(pf.Histogram(), ["c"]), holes),
        "network-joint": released(NETWORK, pf.Joint(["a", "b"]), joint),
        "network-columns-hidden": released(NETWORK, pf.Marginals(), rows, protect=["a", "b"]),
        "network-quilt": released(NETWORK, pf.Marginals(["c"]), rows, pf.MarkovQuilt),
        "networks": released(
            [NETWORK, pf.BayesianNetwork({**NETWORK.cpts, "b": pf.CPT(["yes", "no"], [0.3, 0.7])})],
            pf.Marginals(),
            rows,
        ),
        "cliques": released(
            pf.Cliques.of_sizes([2, 3], lambda n: [1] * (n + 1), states=STATES),
            pf.Count("yes"),
            row[:5],
            pf.ExactLaplace,
        ),
        "joint-law": released(pairs, pf.Count("yes"), ["no", "yes"], pf.Wasserstein),
    }


def write_releases(folder: Path) -> None:
    for name, make in releases().items():
        make().to_json(folder / f"{name}.json")
    data = pf.read_sequences(series(STATES, subjects=3, hours=24), "state", **READING)
    noise = pf.LeakagePropagation(TWO, data.length).calibrate(pf.Frequency("yes"), 1.0)
    pf.release_each(data, pf.Frequency("yes"), noise, folder / "each-subject.csv")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=str), size=30), dp.symmetric_distance()
    counts = dp.t.make_count_by_categories(*space, categories=STATES, null_category=False)
    chain = pf.LeakagePropagation(TWO, length=30)
    noisy = dp.binary_search_chain(
        lambda scale: counts >> dp.m.then_laplace(scale=scale), d_in=2, d_out=chain.record_epsilon(1.0)
    )
    found = pf.release_measurement(["no", "yes", "yes"] * 10, noisy, chain, 1.0, note="counts of states")
    found.to_json(folder / "measurement.json")


def write_models(folder: Path) -> None:
    for name, theta in THETA.items():
        pf.write_model(pf.Model(theta=pf.GroupDP(theta, 10).theta), folder / f"{name}.json")
    survey = pf.read_sequences(series(STATES, seed=2, subjects=3, hours=400), "state", **READING)
    fitted = pf.Model.fitted(pf.fit_chain(survey), survey)
    pf.write_model(fitted, folder / "fitted.json")
    pf.write_model(pf.Model(theta=pf.ModelClass([NETWORK])), folder / "network.json")


def write_checks(folder: Path) -> None:
    fitted = pf.read_model(HERE / "models" / "fitted.json")
    other = series(STATES, seed=3, subjects=3, hours=300)
    pf.check_model(fitted, other, "state", public=True, **READING).to_json(folder / "chain.json")
    pf.check_model(pf.ModelClass([NETWORK]), ROWS, public=True).to_json(folder / "network.json")


def write_ledgers(folder: Path) -> None:
    """Ledgers of one table, in a file and in a database, and their releases; one of rows; one of a table that grows."""
    data = pf.read_sequences(series(STATES), "state", **READING)
    bound = pf.LeakagePropagation(TWO, data.length)
    for where in (folder / "chain.json", f"sqlite:///{folder / 'chain.db'}"):
        book = pf.Ledger(bound, 3.0, base=data)
        book.save(where)
        book = pf.Ledger.open(where)
        for number, query in enumerate([pf.Histogram(), pf.Transitions()], 1):
            release = pf.release(data, query, bound.calibrate(query, 0.5), ledger=book)
            release.to_json(folder / f"{'database' if 'sqlite' in str(where) else 'chain'}-release-{number}.json")
    rows = pf.read_rows(ROWS, NETWORK)
    network = pf.LeakagePropagation(NETWORK, rows.length)
    book = pf.Ledger(network, 2.0, base=rows)
    book.save(folder / "network.json")
    pf.release(rows, pf.Marginals(), network.calibrate(pf.Marginals(), 0.5), ledger=book).to_json(
        folder / "network-release-1.json"
    )
    whole = series(STATES)
    first = whole.filter(pl.col("t") < dt.datetime(2024, 1, 2))
    book = pf.Ledger(
        pf.LeakagePropagation(TWO, 2), 2.0, base=pf.read_sequences(first, "state", **READING).base, grows=True
    )
    book.save(folder / "growing.json")
    book.plan([pf.Histogram()], up_to=1.0)
    week = book.read(first, pf.Histogram())
    pf.release(week, pf.Histogram(), book.as_planned(pf.Histogram(), week), ledger=book).to_json(
        folder / "growing-release-1.json"
    )
    first.write_csv(folder / "growing-1.csv")
    whole.write_csv(folder / "growing-2.csv")


def write_proofs(folder: Path) -> None:
    """Releases with noise that the checker proves, and their proofs."""
    data = pf.read_sequences(series(STATES), "state", **READING)
    rows = pf.read_rows(ROWS, NETWORK)
    asked: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "chain": (TWO, pf.Histogram(), {}),
        "any": (ANY, pf.Histogram(), {}),
        "chains": (THETA["chains"], pf.Histogram(), {}),
        "clock": (THETA["clock"], pf.Histogram(), {}),
        "forgetting": (THETA["forgetting"], pf.Histogram(), {}),
        "transitions": (TWO, pf.Transitions(), {}),
        "hour-hidden": (TWO, pf.Histogram(), {"protect": 3}),
        "network": (NETWORK, pf.Marginals(), {}),
    }
    for name, (theta, query, settings) in asked.items():
        table = rows if theta is NETWORK else data
        noise = pf.LeakagePropagation.of(theta, table.length, **settings).calibrate(query, 1.0)
        release = pf.release(table, query, pf.certify(noise).calibration)
        release.to_json(folder / f"{name}.json")
        release.certificate(folder / f"{name}-proof.json")
    both = [pf.Release.from_json(folder / f"{name}.json") for name in ("chain", "transitions")]
    pf.certify(both).to_json(folder / "together-proof.json")


def main() -> None:
    for name, write in (
        ("releases", write_releases),
        ("models", write_models),
        ("checks", write_checks),
        ("ledgers", write_ledgers),
        ("proofs", write_proofs),
    ):
        folder = HERE / name
        folder.mkdir()
        write(folder)
    for lock in HERE.rglob("*.lock"):
        lock.unlink()
    files = sorted(path for path in HERE.rglob("*") if path.is_file() and path.parent != HERE)
    digests = {path.relative_to(HERE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    (HERE / "digests.json").write_text(json.dumps(digests, indent=1) + "\n")


if __name__ == "__main__":
    main()
