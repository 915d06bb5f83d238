"""Attacks on releases of real records: a minute, an hour, a person, for four kinds of noise.

Every release is a histogram, or one of its counts, of a run: records in a row of one person or household, at most a
day of them. Θ is the chain of all runs. On the minute and the hour the attackers are exact filters; a person is linked
by the nearest histogram.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper.experiments.arena_records import (
    EPSILON,
    FOR_AN_HOUR,
    INDEPENDENT,
    LONGEST,
    SHORTEST,
    Records,
    activity_records,
    power_records,
)
from paper.experiments.attacks import alone, learned, log_noise, of_record, of_stretch
from paper.experiments.drawing import clean, legend, new_figure
from paper.experiments.experiment import FITTED, Experiment, Part, Row, Settings, index, names_of
from paper.experiments.sampling import discrete_laplace
from paper.experiments.table import Table, number
from pufferfish._draw.figure import MARKS
from pufferfish.queries import Count, Histogram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ARENA"]

_AROUND = 30
"""Unknown records on either side of the minute that is attacked: somebody who knows all but the hour around it."""
_FEWEST_PEOPLE = 20
_MECHANISMS = {
    INDEPENDENT: "entry-dp",
    "GroupDP": "group-dp",
    "MQMExact": "mqm-exact",
    "LeakagePropagation": "propagation",
    FOR_AN_HOUR: "bayesian-dp",
}
"""Titles, and whose colours they have."""


# -- The attacks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Attack:
    """One attack: what is secret, the law of it and of the unknown counts, and the released counts without noise.

    Parameters
    ----------
    truth : int
        The secret.
    law : (secrets, *counts) ndarray
        What the attacker knows.
    exact : (m,) ndarray
        Exact counts, less those of the records that are known.
    unknown : int or None
        How many records are unknown, where the last count is of all that the others are not.
    """

    truth: int
    law: NDArray[np.float64]
    exact: NDArray[np.int64]
    unknown: int | None = None


def _minutes(data: Records, rng: np.random.Generator, times: int) -> Iterator[_Attack]:
    """Attack one record of a histogram, all but the hour around it known."""
    adds = np.eye(data.states, dtype=np.int64)[:, :-1]
    law = of_record(data.matrix, _AROUND, adds)
    for run, i in _places(data, rng, times, _AROUND + 1, _AROUND + 2):
        window = run[i - _AROUND : i + _AROUND + 1]
        exact = np.bincount(window, minlength=data.states)
        yield _Attack(int(run[i]), law[run[i - _AROUND - 1], :, run[i + _AROUND + 1]], exact, len(window))


def _from_nothing(data: Records, rng: np.random.Generator, times: int) -> Iterator[_Attack]:
    """Attack one record of a count, nothing but the chain known: the attacker of the promise."""
    up_to, after = alone(data.matrix, data.law, data.longest, data.counted)
    for run, i in _places(data, rng, times, 0, 1):
        left = len(run) - i - 1
        law = np.stack([np.convolve(up_to[i, x, : i + 2], after[left, x, : left + 1]) for x in range(data.states)])
        yield _Attack(int(run[i]), law, np.array([np.sum(run == data.counted)]))


def _hours(data: Records, rng: np.random.Generator, times: int) -> Iterator[_Attack]:
    """Attack whether an hour had much of the most frequent state, all but it and half an hour on either side known."""
    hour, around = data.hour, data.hour // 2
    usual = [np.sum(run[i : i + hour] == data.counted) for run in data.runs for i in range(0, len(run) - hour, hour)]
    least = int(np.clip(np.median(usual), 1, hour))
    law = of_stretch(data.matrix, around, hour, data.counted, least)
    for run, i in _places(data, rng, times, around + 1, around + hour + 1):
        window = run[i - around : i + hour + around]
        yield _Attack(
            int(np.sum(run[i : i + hour] == data.counted) >= least),
            law[run[i - around - 1], :, run[i + hour + around]],
            np.array([np.sum(window == data.counted)]),
        )


def _places(
    data: Records, rng: np.random.Generator, times: int, before: int, after: int
) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Return runs and places in them, with so many records before and, its own counted, after."""
    runs = [run for run in data.runs if len(run) >= before + after]
    for _ in range(times):
        run = runs[int(rng.integers(len(runs)))]
        yield run, int(rng.integers(before, len(run) - after + 1))


_TASKS = {
    "a minute, the hour around it unknown": (_minutes, Histogram(), False),
    "a minute, everything unknown": (_from_nothing, None, False),
    "an hour, two hours unknown": (_hours, None, True),
}
"""Attacks, with the query (None: how often the most frequent state) and whether an hour is secret."""
_PERSON = "which person"
_CHAIN = "the chain alone"
_PERSONS_SHOWN = 0.25
"""The picture shows shares of right guesses up to this."""


def _attacked(data: Records, settings: Settings) -> list[Row]:
    """Return what the attacks on minutes and hours find."""
    rows: list[Row] = []
    for task, (attack, query, of_hour) in _TASKS.items():
        rng = settings.stream("arena", data.title, task)
        attacks = list(attack(data, rng, settings.trials))
        for title, found, promised in data.noises(query or Count(data.chain.states[data.counted])):
            moved, before, after = np.empty(len(attacks)), 0, 0
            for n, each in enumerate(attacks):
                seen = each.exact + discrete_laplace(rng, found.unit_scale, each.exact.shape)
                noise = log_noise(seen, found.unit_scale, each.law.shape[1:], each.unknown)
                prior, told = learned(each.law, noise)
                moved[n] = np.nanmax(told) - np.nanmin(told)
                before += int(np.argmax(prior)) == each.truth
                after += int(np.nanargmax(prior + told)) == each.truth
            rows.append(
                {
                    "data": data.title,
                    "task": task,
                    "mechanism": title,
                    "scale": found.unit_scale,
                    "promise": promised[data.hour if of_hour else 1],
                    "median": float(np.median(moved)),
                    "ninety": float(np.quantile(moved, 0.9)),
                    "most": float(moved.max()),
                    "right_before": before / len(attacks),
                    "right_after": after / len(attacks),
                    "tries": len(attacks),
                    "knows": _CHAIN if attack is _from_nothing else "other records",
                }
            )
    return rows


def _linked(data: Records, settings: Settings) -> list[Row]:
    """Return how often the nearest histogram of other days is that of the person whose day was released."""
    people = sorted({owner for owner in data.owners if data.owners.count(owner) > 1})
    if len(people) < _FEWEST_PEOPLE:
        return []
    counts = np.array([np.bincount(run, minlength=data.states) for run in data.runs])
    owners, rows = np.array(data.owners), list[Row]()
    totals = np.array([counts[owners == p].sum(axis=0) for p in people])
    for title, found, promised in data.noises(Histogram()):
        rng, right = settings.stream("arena", data.title, _PERSON, title), 0
        for _ in range(settings.trials):
            who = int(rng.integers(len(people)))
            day = counts[rng.choice(np.flatnonzero(owners == people[who]))]
            others = totals.copy()
            others[who] -= day
            seen = day + discrete_laplace(rng, found.unit_scale, day.shape)
            shares = others / others.sum(axis=1, keepdims=True)
            right += int(np.abs(seen - day.sum() * shares).sum(axis=1).argmin()) == who
        # of n people who are equally likely, odds that change by at most e^ε
        most = 1 / (1 + (len(people) - 1) * np.exp(-promised[None]))
        rows.append(
            {
                "data": data.title,
                "task": _PERSON,
                "mechanism": title,
                "scale": found.unit_scale,
                "promise": promised[None],
                "right_before": 1 / len(people),
                "right_after": right / settings.trials,
                "right_at_most": float(most),
                "tries": settings.trials,
                "knows": "other days",
            }
        )
    return rows


# -- The experiment ----------------------------------------------------------------------------------------------------


def _parts(settings: Settings) -> list[Part]:
    activity = [
        Part(table.title, lambda t=table: _of(activity_records(t), settings)) for table in settings.data.activity
    ]
    power = [Part(table.title, lambda t=table: _of(power_records(t), settings)) for table in settings.data.electricity]
    return activity + power


def _of(data: Records, settings: Settings) -> list[Row]:
    if not data.runs or data.states < 2 or not 1 < data.hour <= data.longest // 2 - 1:
        reason = f"it needs two states, and two hours or {SHORTEST} records without a gap"
        return [{"data": data.title, "reason": reason}]
    drawn = data.drawn(settings.stream("arena", data.title, "drawn"))
    rows = [*_attacked(data, settings), *_linked(data, settings), *_attacked(drawn, settings)]
    return [row | {"model": FITTED} for row in rows]


def _above(rows: Sequence[Row]) -> list[Row]:
    """Return the cells in which more was learned than the noise promises."""
    return [row for row in rows if _most(row) > _allowed(row) * (1 + 1e-9)]


def _most(row: Row) -> float:
    return _number(row, "right_after" if row["task"] == _PERSON else "most")


def _allowed(row: Row) -> float:
    """Return what the noise promises; a share of so many tries may lie above that by chance."""
    if row["task"] != _PERSON:
        return _number(row, "promise")
    share = _number(row, "right_at_most")
    return share + 3 * (share * (1 - share) / _number(row, "tries")) ** 0.5


def _about(rows: Sequence[Row], settings: Settings) -> list[str]:
    about = [row for row in rows if row["knows"] == _CHAIN]
    informed = [row for row in rows if row["knows"] != _CHAIN]
    return [
        f"{settings.trials} attacks in each cell, ε = {EPSILON:g}, on releases of runs: records in a row of one person "
        f"or household, {SHORTEST} to {LONGEST:,}. Everybody knows the chain of all runs, which is Θ (the "
        f"{FITTED}). Noise is discrete Laplace noise of one scale. Seed {settings.seed}.",
        "Minutes and hours are attacked by exact filters, which draw from the noisy counts all that the chain allows. "
        "A cell has by how much the release changes the attacker's log-odds between two values of the secret: in half "
        "of the attacks at most, in the worst, and in brackets what the noise promises at most. `>` marks what is "
        "above that. A person is guessed by the nearest histogram of other days.",
        "The promise is about whoever knows the chain and nothing else of the run. Above it: "
        f"{_how_many(about, independent=True)}, {_how_many(about, independent=False)}.",
        "Whoever knows other records of the run for certain is not covered. Above what is promised to the others: "
        f"{_how_many(informed, independent=True)}, {_how_many(informed, independent=False)}"
        f"{_furthest(informed)}.",
    ]


def _how_many(rows: Sequence[Row], *, independent: bool) -> str:
    of_kind = [row for row in rows if (row["mechanism"] == INDEPENDENT) == independent]
    name = "independent noise" if independent else "all other noise"
    return f"{name} in {len(_above(of_kind))} of {len(of_kind)} cells"


def _furthest(rows: Sequence[Row]) -> str:
    others = [row for row in _above(rows) if row["mechanism"] != INDEPENDENT]
    furthest = max((_most(row) / _allowed(row) for row in others), default=1.0)
    return f", by {furthest - 1:.0%} at most" if others else ""


def _tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    titles = list(_MECHANISMS)
    tables = list[Table]()
    for task in (*_TASKS, _PERSON):
        of_task = [row for row in rows if row["task"] == task]
        if of_task:
            cells = index(of_task, "data", "mechanism")
            lines = tuple((str(name), *(_cell(cells[name, title]) for title in titles)) for name in names_of(of_task))
            tables.append(Table(_title(task, of_task), ("data", *titles), lines))
    return tables


def _title(task: str, rows: Sequence[Row]) -> str:
    if task == _PERSON:
        return "Which person: right guesses in percent (and what the promise allows at most)"
    return f"{task[0].upper()}{task[1:]}: log-odds moved, median to most (promise)"


def _cell(row: Row) -> str:
    mark = "> " if _above([row]) else ""
    if row["task"] == _PERSON:
        return f"{mark}{100 * _number(row, 'right_after'):.1f} ({100 * _number(row, 'right_at_most'):.1f})"
    return f"{mark}{number(row['median'])} to {number(row['most'])} ({number(row['promise'])})"


def _number(row: Row, name: str) -> float:
    return float(row[name] or 0)


def _figure(rows: Sequence[Row], settings: Settings) -> "Figure":
    rows = [row for row in rows if "drawn" not in str(row["data"])]
    tasks = [task for task in (*_TASKS, _PERSON) if any(row["task"] == task for row in rows)]
    figure: Any = new_figure(11, 7.5)
    panels = np.ravel(figure.subplots(2, 2))
    for axes, task in zip(panels, tasks, strict=False):
        of_task = [row for row in rows if row["task"] == task]
        names = names_of(of_task)
        for i, (title, colours) in enumerate(_MECHANISMS.items()):
            cells = [row for row in of_task if row["mechanism"] == title]
            at = [names.index(row["data"]) + (i - 2) * 0.15 for row in cells]
            colour, marker = MARKS[colours]
            most = [_most(row) for row in cells]
            least = [row["right_before"] if task == _PERSON else row["median"] for row in cells]
            axes.vlines(at, least, most, color=colour, linewidth=1.6)
            axes.plot(at, most, color=colour, marker=marker, linestyle="", markersize=6, label=title)
            limits = [row["right_at_most"] if task == _PERSON else row["promise"] for row in cells]
            axes.plot(at, limits, color=colour, marker="_", linestyle="", markersize=13, markeredgewidth=1.6)
        axes.set_xticks(range(len(names)), [str(name).split(",")[0] for name in names])
        axes.set_xlim(-0.5, len(names) - 0.5)
        axes.set_title(task, loc="left", fontsize=10)
        if task == _PERSON:
            axes.set_ylabel("share of right guesses")
            axes.set_ylim(0, _PERSONS_SHOWN)
        else:
            axes.set_yscale("log")
            axes.set_ylabel("log-odds moved")
        clean(axes)
    for axes in panels[len(tasks) :]:
        axes.set_axis_off()
    legend(
        figure,
        panels[: len(tasks)],
        f"ε = {EPSILON:g}, {settings.trials} attacks in each cell; marks: most that was learned; lines: from the "
        "median (of a person: from blind guessing);\nbars: what the noise promises at most (of a person often "
        "nothing). The promise is about whoever knows the chain alone: upper right.",
    )
    return figure


ARENA = Experiment(
    name="arena",
    title="The arena: what attackers learn, beside what is promised",
    source="our own attacks",
    trials=250,
    needs=("activity", "electricity"),
    uses=("activity", "electricity"),
    parts=_parts,
    about=_about,
    tables=_tables,
    figure=_figure,
)
