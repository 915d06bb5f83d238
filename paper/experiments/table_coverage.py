"""Whether the sentence of coverage holds: classes made by the rule of ``fit --defend``, for people of known truth.

Made-up people are drawn around a real survey: every row of the chain of all from a Dirichlet law, or a real person's
own rows (and kinds of stay), redrawn around what they are. Some are surveyed for as long as the real ones; the rule
makes a class of what was seen; and of many others it is known what noise each truly needs. Real people follow: a class
of some for the others, of their first days for their last, of a household's one year for the next.

Only what decides who is covered is fitted, everybody's own chain (and kinds of stay): :class:`Members` and
:func:`covered` are what ``fit --defend`` calls. Which kinds left-out days demand is not asked again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from paper.experiments.datasets import ActivityTable
from paper.experiments.drawing import clean, legend, new_figure
from paper.experiments.experiment import Experiment, Part, Row, Settings, names_of
from paper.experiments.files import FILTERS
from paper.experiments.table import Table, number
from pufferfish.data import Sequences, read_sequences
from pufferfish.data.groups import Daily, Runs, Steps
from pufferfish.fit.defend import covered
from pufferfish.fit.members import Law, Members, leakage_of, noise_of, walked, worst_of
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.tuple_chains import StaysChain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TABLE_COVERAGE"]

Array = NDArray[np.float64]
Model = MarkovChain | StaysChain

_SURVEYED = (10, 20, 33, 50)
_NOMINAL = (0.90, 0.95, 0.99)
_STRENGTHS = (122, 60, 26, 6)
"""Of the Dirichlet law around the rows of all: people are the more alike the larger it is."""
_JITTER = 60
"""The same around a real person's own rows."""
_LENGTHENED = 0.2
"""Kinds of stay of a real person are made longer or shorter by a factor exp(0.2 z) with a standard normal z."""
_DAY = 1000
"""Transitions of a made-up day; a stay that lasts beyond it is cut off."""
_FEWEST = 9
"""People from which on a share is said."""
_OF_STAYS = 6
"""Surveys of people with kinds of stay take so many times as long, so there are so many times fewer."""

_ENOUGH = 8
"""Surveys from which on it is estimated how two numbers of them go together."""

_CHAINS: Final = ("pooled", "own")
_STAYS: Final = (*_CHAINS, "stays", "own stays")
_IN_WORDS: dict[tuple[str, ...], str] = {_CHAINS: "own chains", _STAYS: "own kinds of stay (3)"}
_HOUSEHOLD = Path(__file__).parents[2] / "examples" / "data"
_BINS = "0,500,...,5000"


# -- Made-up people ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _People:
    """A population: how a person is drawn, for how many days one is surveyed, and which own laws the class has."""

    title: str
    draw: Callable[[np.random.Generator], Model]
    days: int
    settings: Settings
    kinds: tuple[str, ...] = _CHAINS

    @property
    def many(self) -> int:
        """How many people are surveyed in all for a line of the table, and how many others there are."""
        return self.settings.trials // (_OF_STAYS if self.kinds == _STAYS else 1)

    @cached_property
    def models(self) -> list[Model]:
        """Many people."""
        rng = self.settings.stream("coverage", self.title)
        return [self.draw(rng) for _ in range(self.many)]

    @cached_property
    def needs(self) -> Array:
        """What noise each of them truly needs."""
        return np.array([noise_of(model) for model in self.models])


def _around(rows: Array, strength: float, rng: np.random.Generator) -> Array:
    """Draw every row from a Dirichlet law; what is impossible stays so, and nothing else becomes so."""
    drawn = np.maximum(rng.standard_gamma(strength * rows), 1e-6) * (rows > 0)
    return drawn / drawn.sum(axis=-1, keepdims=True)


def _of_all(rows: Array, strength: float, rng: np.random.Generator) -> MarkovChain:
    return MarkovChain(_around(rows, strength, rng))


def _chain_like(chains: Sequence[MarkovChain], rng: np.random.Generator) -> MarkovChain:
    return MarkovChain(_around(chains[int(rng.integers(len(chains)))].transition_matrix, _JITTER, rng))


def _stays_like(chains: Sequence[StaysChain], rng: np.random.Generator) -> StaysChain:
    chain, kinds = chains[int(rng.integers(len(chains)))], list[list[tuple[float, float]]]()
    for each in chain.stays:
        shares = _around(np.array([share for share, _ in each]), _JITTER, rng)
        beyond = np.array([keep / (1 - keep) for _, keep in each]) * np.exp(
            _LENGTHENED * rng.standard_normal(len(each))
        )
        kinds.append(list(zip(shares.tolist(), (beyond / (1 + beyond)).tolist(), strict=True)))
    return StaysChain(_around(chain.exits, _JITTER, rng), kinds)


def _surveyed(models: Sequence[Model], days: int, rng: np.random.Generator) -> Sequences:
    """Return what is seen of people who live so, for so many days each."""
    k, who = models[0].k, np.repeat(np.arange(len(models)), days)
    hidden = [_hidden(model) for model in models]
    states = hidden[0][2]
    kernels, starts = np.array([law[0] for law in hidden])[who], np.array([law[1] for law in hidden])[who]
    path = states[np.array(list(walked(kernels, starts, _DAY, rng)))].T  # a line for each day
    day = np.broadcast_to(np.arange(len(who))[:, None], path.shape)
    steps, number = np.unique(
        np.stack([day[:, 1:].ravel(), path[:, :-1].ravel(), path[:, 1:].ravel()]), axis=1, return_counts=True
    )
    unknown = np.full(len(number), -1)
    first = np.ones_like(path, dtype=np.bool_)
    first[:, 1:] = path[:, 1:] != path[:, :-1]
    at = np.flatnonzero(first)
    state, of_day, begun = path.ravel()[at], at // path.shape[1], at % path.shape[1] > 0
    lasted = np.diff(at, append=path.size)
    following = np.where(np.append(begun[1:], False), np.append(state[1:], -1), -1)
    daily = Daily(
        tuple(f"{i:03d}" for i in range(len(models))),
        Steps(who[steps[0]], steps[0], unknown, unknown, steps[1], steps[2], number),
        Runs(who[of_day], of_day, state, lasted, begun, following, np.ones_like(at)),
    )
    transitions = np.zeros((k, k), dtype=np.int64)
    np.add.at(transitions, (steps[1], steps[2]), number)
    return replace(_any_sequences(k), daily=daily, transitions=transitions)


def _hidden(model: Model) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return matrix and stationary law of states, or of kinds of stay, and which state each of them is."""
    if isinstance(model, MarkovChain):
        return model.transition_matrix, model.stationary_distribution, np.arange(model.k)
    return model.kernel, model.stationary_distribution, model.tuples[:, 0]


@cache
def _any_sequences(k: int) -> Sequences:
    return read_sequences(pl.DataFrame({"s": [*map(str, range(k))] * 2}), "s", daily=True)


def _kept(members: Members, kinds: Sequence[str]) -> list[Law]:
    """Return the members that a survey gives, by the rule of ``fit --defend``."""
    return [law for kind in kinds for law in members.of(kind, members.people)]


def _rows(people: _People, n: int) -> list[Row]:
    """Survey some people, make a class of what is seen, and see how many others it covers; many times."""
    models, needs = people.models, people.needs
    rng, surveys = people.settings.stream("coverage", people.title, n), len(models) // n
    results: dict[float, list[tuple[float, ...]]] = {share: [] for share in _NOMINAL}
    for _ in range(surveys):
        chosen = rng.choice(len(models), n, replace=False)
        next_ones = np.delete(needs, chosen)
        by_truth = float(np.mean(next_ones <= needs[chosen].max()))
        members = Members(_surveyed([models[i] for i in chosen], people.days, rng))
        kept = _kept(members, people.kinds)
        for share in _NOMINAL:
            coverage, laws = covered(kept, members.daily.subjects, share=share, unseen=members.unseen)
            assert coverage.share is not None
            noise = worst_of(laws).noise
            results[share].append(
                (float(np.mean(next_ones <= noise)), by_truth, coverage.share, coverage.slower, noise)
            )
    rows: list[Row] = []
    for share, lines in results.items():
        came, by_truth, said, slower, noise = np.array(lines).T
        mean, error = _controlled(came, by_truth, n / (n + 1), len(models))
        rows.append(
            {
                "data": people.title,
                "members": _IN_WORDS[people.kinds],
                "surveyed": n,
                "nominal": share,
                "surveys": surveys,
                "said": float(said.mean()),
                "covered": mean,
                "standard_error": error,
                "slower": float(np.median(slower)),
                "noise_multiplier": float(np.median(noise)),
            }
        )
    return rows


def _controlled(came: Array, by_truth: Array, expected: float, others: int) -> tuple[float, float]:
    """Return a mean and its standard error, made smaller by what is known of those surveyed (a control variate).

    What noise for the true laws of those surveyed would cover is N / (N + 1) on average, and goes up and down with what
    noise for the fitted ones covers.
    """
    spread = by_truth.var()
    enough = len(came) >= _ENOUGH and spread > 0
    slope = float(np.clip(np.cov(came, by_truth, ddof=0)[0, 1] / spread, 0, 1)) if enough else 0.0
    left = came - slope * (by_truth - expected)
    mean, share_left = float(left.mean()), float(left.var() / came.var()) if came.var() > 0 else 1.0
    of_others = max(mean * (1 - mean), 0) / others * share_left  # they are a sample, too
    return mean, float(np.sqrt(left.var(ddof=1) / len(left) + of_others))


# -- Real people -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Survey:
    """A public table: how to read a part of it, and what parts there are to be compared."""

    title: str
    read: Callable[[pl.Expr], Sequences]
    parts: tuple[tuple[str, pl.Expr], ...]
    people: int


def _survey_of(table: ActivityTable) -> _Survey:
    frame = table.load()
    day, of_subject = pl.col("timestamp").dt.date().rank("dense").over("subject"), pl.col("subject")
    frame = frame.filter(*(name for name in FILTERS if name in frame.columns)).with_columns(day=day)
    frame = frame.with_columns(is_late=pl.col("day") > pl.col("day").max().over(of_subject) / 2)
    parts = [("first half of days", ~pl.col("is_late")), ("second half of days", pl.col("is_late"))]
    if "sex" in frame.columns:
        parts += [(f"sex {sex}", pl.col("sex") == sex) for sex in frame["sex"].unique().drop_nulls().sort()]
    return _Survey(table.title, partial(_read, frame), tuple(parts), frame["subject"].n_unique())


def _read(frame: pl.DataFrame, which: pl.Expr) -> Sequences:
    states = frame["state"].cast(pl.String).unique().drop_nulls().sort().to_list()
    return read_sequences(
        frame.filter(which),
        "state",
        subject="subject",
        time="timestamp",
        max_gap="1min",
        states=states,
        daily=True,
    )


def _real_rows(survey: _Survey, first: int, second: int, kinds: tuple[str, ...]) -> list[Row]:
    """Make a class of some people, and see how many of others it covers."""
    (name, which), (other_name, others) = survey.parts[first], survey.parts[second]
    members = Members(survey.read(which))
    coverage, laws = covered(_kept(members, kinds), members.daily.subjects, unseen=members.unseen)
    theirs = _kept(Members(survey.read(others)), kinds)
    needs: dict[int | None, float] = {}
    for law in theirs:
        needs[law.who] = max(needs.get(law.who, 0.0), law.noise)
    pooled = needs.pop(None)
    worst = worst_of(laws)
    needs = needs or {None: pooled}
    return [
        {
            "data": survey.title,
            "members": _IN_WORDS[kinds],
            "class_of": name,
            "surveyed": coverage.people,
            "others_are": other_name,
            "others": len(needs),
            "said": coverage.share,
            "covered": float(np.mean([noise <= worst.noise for noise in needs.values()])),
            "noise_multiplier": worst.noise,
            "largest_leakage": max(leakage_of(law.model, worst.noise) for law in theirs),
        }
    ]


def _household(years: tuple[int, ...], slower: float, kinds: tuple[str, ...]) -> list[Row]:
    """Make a class of a household's habits in some years, and see what its noise leaks under those of 2009."""
    first, second = (
        _kept(
            Members(
                read_sequences(
                    [_HOUSEHOLD / f"household_power_{year}.csv.gz" for year in each],
                    "watts",
                    time="timestamp",
                    max_gap="1min",
                    bins=_BINS,
                    daily=True,
                )
            ),
            [kind for kind in kinds if not kind.startswith("own")],
        )
        for each in (years, (2009,))
    )
    _, laws = covered(first, ["household"], slower=slower)
    noise = worst_of(laws).noise
    return [
        {
            "data": "household" if slower == 1 else f"household, --slower {slower:g}",
            "members": _IN_WORDS[kinds].replace("own ", ""),
            "class_of": ", ".join(map(str, years)),
            "surveyed": 1,
            "others_are": "2009",
            "others": 1,
            "said": None,
            "covered": float(max(law.noise for law in second) <= noise),
            "noise_multiplier": noise,
            "largest_leakage": max(leakage_of(law.model, noise) for law in second),
        }
    ]


# -- The experiment ----------------------------------------------------------------------------------------------------

_MADE_UP = np.array(
    [[0.85, 0.12, 0.02, 0.01], [0.25, 0.60, 0.12, 0.03], [0.06, 0.34, 0.50, 0.10], [0.04, 0.16, 0.30, 0.50]]
)
"""The chain of all where there are no data: people who mostly sit."""


def _tables_of_people(settings: Settings) -> list[ActivityTable]:
    """Return the tables that have enough people."""
    return [table for table in settings.data.activity if table.load()["subject"].n_unique() >= _FEWEST]


def _populations(settings: Settings) -> Iterator[_People]:
    surveys = [_survey_of(table) for table in _tables_of_people(settings)]
    if not surveys:
        for strength in _STRENGTHS:
            yield _People(f"made up, Dirichlet {strength}", partial(_of_all, _MADE_UP, strength), 5, settings)
        return
    largest = max(surveys, key=lambda survey: survey.people)
    for survey in surveys:
        members = Members(survey.read(pl.lit(True)))
        days = int(np.median(members.transitions[members.people].sum(axis=(1, 2)))) // _DAY
        own = tuple(law.model for law in members.of("own", members.people))
        yield _People(f"{survey.title}, people like each", partial(_chain_like, own), days, settings)
        if survey is not largest:
            continue
        rows = members.of("pooled", [])[0].model.transition_matrix
        for strength in _STRENGTHS:
            yield _People(f"{survey.title}, Dirichlet {strength}", partial(_of_all, rows, strength), days, settings)
        stays = tuple(law.model for law in members.of("own stays", members.people))
        yield _People(f"{survey.title}, stays like each", partial(_stays_like, stays), days, settings, _STAYS)


def _parts(settings: Settings) -> list[Part]:
    parts = [
        Part(f"{people.title}: {n} surveyed", partial(_rows, people, n))
        for people in _populations(settings)
        for n in _SURVEYED
        if people.many >= 2 * n  # with one survey alone there is no standard error
    ]
    for survey in map(_survey_of, _tables_of_people(settings)):
        for first, second in ((0, 1), (2, 3), (3, 2)):
            if second < len(survey.parts) and first < len(survey.parts):
                of = f"{survey.title}: {survey.parts[first][0]} for {survey.parts[second][0]}"
                parts += [
                    Part(f"{of}, {_IN_WORDS[kinds]}", partial(_real_rows, survey, first, second, kinds))
                    for kinds in (_CHAINS, _STAYS)
                ]
    for years in ((2008,), (2007, 2008)):
        for slower, kinds in ((1.0, _CHAINS), (1.0, _STAYS), (1.3, _STAYS)):
            name = f"household of {', '.join(map(str, years))}, {slower:g}, {_IN_WORDS[kinds]}"
            parts.append(Part(name, partial(_household, years, slower, kinds)))
    return parts


def _about(rows: Sequence[Row], settings: Settings) -> list[str]:
    return [
        "Said: the share of people that the sentence of coverage says the noise covers. Came out: the share of others "
        "whose true habits need no more than this noise (a histogram at ε = 1, in a long series), with its standard "
        f"error. {settings.trials:,} people are surveyed for a line, in surveys of N of them, and as many others are "
        f"drawn; with kinds of stay one in {_OF_STAYS} of that. Held: at least what is said less .01, to two standard "
        f"errors. Seed {settings.seed}.",
        "People: each row of the chain of all redrawn from a Dirichlet law of some strength; or a real person's own "
        f"rows, redrawn with strength {_JITTER}; or a real person's rows, shares and lengths of three kinds of stay. "
        "Each is seen for as many days of a thousand transitions as the median of those surveyed.",
        "Where N / (N + 1) reaches the share that is asked for, nothing is added; else stays are made longer. .02 less "
        "is said with own kinds of stay, and where more than a quarter of those surveyed were never seen to leave some "
        "state.",
    ]


def _tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    made = [row for row in rows if "nominal" in row]
    real = [row for row in rows if "class_of" in row]
    return [
        Table(
            "People of known truth",
            ("people", "members", "N", "asked for", "surveys", "said", "came out", "error", "held", "stays", "noise"),
            tuple(
                (
                    *(str(row[name]) for name in ("data", "members", "surveyed", "nominal", "surveys")),
                    *(f"{row[name]:.3f}" for name in ("said", "covered", "standard_error")),
                    "yes" if held(row) else "no",
                    *(number(row[name]) for name in ("slower", "noise_multiplier")),
                )
                for row in made
            ),
            texts=2,
        ),
        Table(
            "Real people: a class of some, for others",
            ("data", "members", "class of", "N", "for", "others", "said", "came out", "noise", "leaks at most"),
            tuple(
                (
                    *(str(row[name]) for name in ("data", "members", "class_of", "surveyed", "others_are", "others")),
                    *(number(row[name]) for name in ("said", "covered", "noise_multiplier", "largest_leakage")),
                )
                for row in real
            ),
            texts=3,
        ),
    ]


def held(row: Row, margin: float = 0.01) -> bool:
    """Return whether as much came out as was said, less a margin and twice the standard error."""
    said, covered_share, error = (float(row[name] or 0.0) for name in ("said", "covered", "standard_error"))
    return covered_share >= said - margin - 2 * error


def _figure(rows: Sequence[Row], settings: Settings) -> "Figure":
    figure: Any = new_figure(8, 4.2)
    axes = figure.subplots()
    made = [row for row in rows if "nominal" in row]
    for i, name in enumerate(names_of(made)):
        lines = [row for row in made if row["data"] == name]
        at = [float(row["said"] or 0) + (i - 3) * 6e-4 for row in lines]
        error = [2 * float(row["standard_error"] or 0) for row in lines]
        axes.errorbar(at, [row["covered"] for row in lines], error, fmt="o", markersize=3, linewidth=1, label=name)
    axes.plot([0.88, 1], [0.88, 1], color="0.35", linestyle=(0, (4, 3)), linewidth=1, label="as said")
    axes.set_xlabel("share that is said to be covered")
    axes.set_ylabel("share that is covered")
    clean(axes)
    legend(figure, [axes], "two standard errors", columns=3)
    return figure


TABLE_COVERAGE = Experiment(
    name="table-coverage",
    title="How many people a class covers: what is said, and what comes out",
    source="beyond the paper: docs/choosing_theta.md",
    trials=400,
    needs=(),
    uses=("activity",),
    parts=_parts,
    about=_about,
    tables=_tables,
    figure=_figure,
)
