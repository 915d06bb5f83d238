r"""Does this network describe these public data? Which columns depend on each other though it says that they do not.

A network says that each node is independent of every node that does not descend from it, given its parents; all other
independences follow. So each pair of nodes without an arrow is tested once: one of them given its parents, that with
fewer combinations of these where both could be. Each arrow is tested given the other parents. See
:mod:`~pufferfish.check.independence` for the test, and for what rows are too few to show.

Tests of many pairs find something by chance. Holm's rule, over pairs and arrows together, keeps the probability that a
pair is found where nothing is wrong below ``LEVEL``, and judges an arrow as it would be judged if it were missing. A
pair has a share of the level, the larger the fewer rows its rarest values are expected in: many rows show a strong
dependence at any level, and few at a large one only. The shares rest on the margins, which each test takes as given.
"""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.progress import part_of, report_progress
from pufferfish._base.view import Grid, View, counted
from pufferfish._base.words import at_most, number
from pufferfish.check.independence import Dependence, dependence, enough_rows, holm
from pufferfish.check.record import Checked, Found, NoiseFor, Remedy, RicherModel, Verdict
from pufferfish.check.words import aligned, leaks, leaks_more, listed, more_noise, some
from pufferfish.errors import NotApplicableError, ParameterError, printable
from pufferfish.fit.left_out import LEAST_GAIN
from pufferfish.fit.network import SMOOTHING, fitted_cpt
from pufferfish.queries import Marginals
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.model_class import ModelClass
from pufferfish.theta.states import state_label

if TYPE_CHECKING:
    from pufferfish.data.public_counts import PublicRows

LEVEL = 0.005
"""The probability, at most, that a check finds a pair dependent where none is."""

_TOWARDS = 10.0  # rows as the model has them that are added to every row of a table with one more arrow
_MOST_LEAKS = 12  # pairs of which it is computed what the noise leaks, those that depend most
_MOST_COMBINATIONS = 5_000_000


class PairCheck(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether public data show that two nodes of a network depend on each other, given others."""

    nodes: tuple[str, str]
    given: tuple[str, ...]
    """The second is the node to which an arrow goes or would go, of which the other parents are ``given``."""
    gain: float
    """By how many nats in all the dependence fits the data better, as it was tested: half of the statistic G."""
    freedom: int
    """The degrees of freedom of G; 0 where what is given leaves nothing open."""
    p: float
    """The probability of as much by chance, for this pair alone."""
    expected: float
    rarest: tuple[str, ...]
    """In how many rows two of their values would meet by chance, for the two that would least often; these values."""
    judged: str
    """What the data say: "dependent"; "not seen", though they would show a strong dependence; "too few"; "not tested",
    where what is given leaves nothing open, or has too many combinations.
    """
    richer: RicherModel | None = None
    """What the model's noise leaks under the network with this arrow, for pairs without one that are dependent."""


class NetworkCheck(Checked, Found, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a network describes public data: a verdict and numbers; prints as text. See :func:`check_model`.

    ``gain`` says by how many nats in all tables of these data, with the model's arrows, predict each row from all
    others better than the model's tables do (below 0 where they do not), and ``clearly`` what it must exceed to be
    more than chance; ``tables`` is what the noise leaks under the network of these tables. ``pairs`` are those that
    the model calls independent given the parents of one of them, ``arrows`` the model's own. ``unread`` are nodes
    without a column, and those with such a parent: what cannot be checked of them is left out.
    """

    kind: str = "Bayesian networks"
    rows: int
    gain: float
    clearly: float
    tables: RicherModel
    pairs: tuple[PairCheck, ...]
    arrows: tuple[PairCheck, ...]
    unread: tuple[str, ...]

    def _view(self) -> View:
        facts = {"held against": self.source, "class Θ": self.origin, "rows": self.rows}
        grids = [
            Grid("Pairs that the model calls independent", _HEAD, [_row(pair) for pair in _found(self.pairs)]),
            Grid("Arrows of the model", _HEAD, [_row(pair) for pair in self.arrows]),
        ]
        return View(self.verdict.sentence, facts, grids, str(self.verdict).splitlines()[1:])

    def __str__(self) -> str:
        return network_text(self)


def check_network(theta: ModelClass, source: Any, epsilon: float, reading: Mapping[str, Any]) -> NetworkCheck:
    """Do the work of :func:`check_model` for a network; several are refused."""
    if len(theta.networks) != 1:
        raise NotApplicableError(
            f"Θ has {len(theta.networks)} networks, but a check covers one: check each network separately"
        )
    if unknown := reading.keys() - {"columns", "subject", "where", "missing"}:
        raise ParameterError(
            f"{min(unknown)} is not an option for reading rows; the options are columns, subject, where and missing"
        )
    from pufferfish.data.public_counts import read_public_rows  # here: it loads what reads tables

    network = theta.networks[0]
    data = read_public_rows(source, network, **reading)
    report_progress("testing pairs of columns", 0.0)
    read = set(data.rows.nodes)
    whole = [node for node in network.order if node in read and read.issuperset(network.cpts[node].parents)]
    apart, joined = _pairs(network, whole), _arrows(network, whole)
    judged = _judged(data, [*apart, *joined])
    pairs, arrows = judged[: len(apart)], judged[len(apart) :]
    noise = NoiseFor(network, data.rows.records, Marginals(data.rows.nodes), epsilon)
    fitted = {node: _fitted(data, network, node) for node in whole}
    tables = noise.under(RicherModel(kind="tables"), lambda: BayesianNetwork({**network.cpts, **fitted}))
    leaking = {pair.nodes: _with_arrow(data, network, noise, pair) for pair in _found(pairs)[:_MOST_LEAKS]}
    pairs = [msgspec.structs.replace(pair, richer=leaking.get(pair.nodes)) for pair in pairs]
    gains, free = zip(*(_gain(data, network, node) for node in whole), strict=True) if whole else ((0.0,), (0,))
    gain, clearly = sum(gains), LEAST_GAIN + 2 * math.sqrt(2 * sum(free))
    return NetworkCheck(
        verdict=network_verdict(
            gain,
            clearly,
            tables,
            pairs,
            arrows,
            epsilon=epsilon,
            rows=data.rows.records,
            noise=noise.multiplier,
            fit=partial(_fit_command, source, network),
        ),
        origin=theta.origin,
        source=data.rows.base.source,
        epsilon=epsilon,
        noise_multiplier=noise.multiplier,
        rows=data.rows.records,
        gain=gain,
        clearly=clearly,
        tables=tables,
        pairs=tuple(pairs),
        arrows=tuple(arrows),
        unread=tuple(state_label(node) for node in network.nodes if node not in whole),
    )


def _fit_command(source: Any, network: BayesianNetwork, more: PairCheck | None) -> str:
    """Return the command that fits the network to the same table, with one more arrow, as it can be copied."""
    from pufferfish.data.source import paths_of  # here: it loads what reads tables

    edges = [*network.edges, *([] if more is None else [more.nodes])]
    arrows = ", ".join("->".join(map(state_label, edge)) for edge in edges)
    joined = {state_label(node) for edge in edges for node in edge}
    alone = [state_label(node) for node in network.nodes if state_label(node) not in joined]
    columns = ["--columns", ",".join(alone)] if alone else []
    return shlex.join(
        ["pufferfish", "fit", *paths_of(source), "--arrows", arrows, *columns, "--output", "network.json"]
    )


# -- Which pairs are tested ------------------------------------------------------------------------------------------


class _Asked(NamedTuple):
    first: Any
    second: Any
    given: tuple[Any, ...]


def _pairs(network: BayesianNetwork, whole: Sequence[Any]) -> list[_Asked]:
    """Return each pair without an arrow, one of the two given its parents."""
    sizes = {node: len(states) for node, states in network.node_states.items()}
    above: dict[Any, set[Any]] = {}
    for node in network.order:
        parents = network.cpts[node].parents
        above[node] = set(parents).union(*(above[parent] for parent in parents))
    asked: list[_Asked] = []
    for j, later in enumerate(whole):
        for earlier in whole[:j]:
            if earlier in network.cpts[later].parents:
                continue
            seconds = [later] if earlier in above[later] else [later, earlier]
            second = min(seconds, key=lambda node: math.prod(sizes[parent] for parent in network.cpts[node].parents))
            asked.append(_Asked(earlier if second is later else later, second, network.cpts[second].parents))
    return asked


def _arrows(network: BayesianNetwork, whole: Sequence[Any]) -> list[_Asked]:
    """Return each arrow, given the other parents."""
    return [
        _Asked(parent, node, tuple(other for other in network.cpts[node].parents if other != parent))
        for node in whole
        for parent in network.cpts[node].parents
    ]


def _judged(data: "PublicRows", asked: Sequence[_Asked]) -> list[PairCheck]:
    """Return what the data say of each pair."""
    told: list[Dependence | None] = []
    for pair in asked:
        names = (*pair.given, pair.first, pair.second)
        if math.prod(len(data.rows.states[name]) for name in names) > _MOST_COMBINATIONS:
            told.append(None)
            continue
        counts = data.together(names)
        told.append(dependence(counts.reshape(-1, *counts.shape[-2:])))
    tested = [i for i, answer in enumerate(told) if answer is not None and answer.freedom]
    weights = {i: 1 / max(answer.expected, 1.0) for i, answer in enumerate(told) if answer is not None}
    level = LEVEL / (sum(weights[i] for i in tested) or 1.0)
    ps = [answer.p for i in tested if (answer := told[i]) is not None]
    seen = dict(zip(tested, holm(ps, [weights[i] for i in tested], LEVEL), strict=True))
    judged: list[PairCheck] = []
    for i, (pair, answer) in enumerate(zip(asked, told, strict=True)):
        ends = pair.first, pair.second
        first, second = map(state_label, ends)
        numbers: dict[str, Any] = {"gain": 0, "freedom": 0, "p": 1, "expected": 0, "rarest": (), "judged": "not tested"}
        if answer is not None and answer.freedom:
            enough = seen[i] or enough_rows(answer, level * weights[i])
            numbers = {
                "gain": answer.g / 2,
                "freedom": answer.freedom,
                "p": answer.p,
                "expected": answer.expected,
                "rarest": tuple(data.rows.states[node][x] for node, x in zip(ends, answer.rarest, strict=True)),
                "judged": "dependent" if seen[i] else "not seen" if enough else "too few",
            }
        judged.append(PairCheck(nodes=(first, second), given=tuple(map(state_label, pair.given)), **numbers))
    return judged


# -- What the noise leaks where the data say something else ----------------------------------------------------------


def _with_arrow(data: "PublicRows", network: BayesianNetwork, noise: NoiseFor, pair: PairCheck) -> RicherModel:
    """Return what the noise leaks under a network with one more arrow; where the data say little, the table stays."""
    first, second = (network.nodes[network.place(name)] for name in pair.nodes)
    cpt = network.cpts[second]
    with part_of("->".join(pair.nodes)):
        weights = data.together([first, *cpt.parents, second]) + _TOWARDS * cpt.table
        table = CPT(cpt.states, weights / weights.sum(axis=-1, keepdims=True), (first, *cpt.parents))
        return noise.under(RicherModel(kind="arrow"), lambda: BayesianNetwork({**network.cpts, second: table}))


def _fitted(data: "PublicRows", network: BayesianNetwork, node: Any) -> CPT:
    """Return a node's table of these data; where the model has zeros, what was never seen stays one."""
    cpt = network.cpts[node]
    return fitted_cpt(data, node, cpt.parents, SMOOTHING, certain=bool((cpt.table == 0).any()))[0]


def _gain(data: "PublicRows", network: BayesianNetwork, node: Any) -> tuple[float, int]:
    """Return by how many nats a node's table of all other rows predicts each row better, and its free numbers.

    Of tables with d free numbers that were counted from as many other rows of the same law, this gain is nearly a χ²
    number of d degrees of freedom minus d: 0 in the mean, with a standard deviation of √(2d).
    """
    cpt = network.cpts[node]
    counts = data.together([*cpt.parents, node]).reshape(-1, len(cpt.states))
    free = int(np.count_nonzero(counts.sum(axis=1))) * (len(cpt.states) - 1)
    table = cpt.table.reshape(counts.shape)
    if (table[counts > 0] == 0).any():
        return math.inf, free
    shares = data.rows.counts[node] / data.rows.counts[node].sum()
    row, state = np.nonzero(counts)
    number, all_ = counts[row, state], counts.sum(axis=1)[row]
    others = (number - 1 + SMOOTHING * shares[state]) / (all_ - 1 + SMOOTHING)
    return float((number * np.log(others / table[row, state])).sum()), free


# -- The verdict, and a check as text ------------------------------------------------------------------------------

_MOST_ROWS = 15  # pairs that a table has without details


def network_verdict(
    gain: float,
    clearly: float,
    tables: RicherModel,
    pairs: Sequence[PairCheck],
    arrows: Sequence[PairCheck],
    *,
    epsilon: float,
    rows: int,
    noise: float | None,
    fit: Callable[[PairCheck | None], str],
) -> Verdict:
    """Return whether to go on with a network, why, and what next: ``fit`` is the command, maybe with one more arrow."""
    found = _found(pairs)
    leaking = [pair for pair in found if leaks_more(pair.richer, epsilon)]
    other_tables = gain > clearly and leaks_more(tables, epsilon)
    unknown = [pair for pair in found if pair.richer is None or pair.richer.leakage is None]
    few = sorted((pair for pair in pairs if pair.judged == "too few"), key=lambda pair: pair.expected)
    poor = sorted((pair for pair in arrows if pair.judged == "too few"), key=lambda pair: pair.expected)
    tested = [pair for pair in pairs if pair.judged != "not tested"]
    little = 2 * len(few) > len(tested)
    word = "go on"
    if leaking or other_tables:
        word = "do not go on"
    elif unknown or (gain > clearly and tables.leakage is None) or noise is None or little:
        word = "in doubt"
    reasons = [_why(leaking or found, epsilon)] if found else []
    if not found:
        reasons.append(f"none of {counted(len(tested), 'pair')} without an arrow is clearly dependent in {rows:,} rows")
    if gain > clearly:
        reasons.append(_of_tables(gain, tables, epsilon))
    if little:
        reasons.append(f"{counted(rows, 'row')} are few: use more public data")
    if few:
        reasons.append(
            f"there are too few data to judge {counted(len(few), 'pair')} without an arrow: "
            f"{some([_pair_of_few(pair) for pair in few])}; add its arrow if nobody can say that it is independent"
        )
    if poor:
        names = some([_arrow(pair) for pair in poor])
        reasons.append(f"there are too few data to judge {counted(len(poor), 'arrow')} of the model: {names}")
    needs = [(pair.richer, pair, "arrow") for pair in (leaking or unknown)[:1]]
    needs += [(tables, None, "tables")] if other_tables else []
    remedies = [
        Remedy(kind=kind, command=fit(pair), noise_multiplier=None if model is None else model.noise_multiplier)
        for model, pair, kind in needs
    ]
    reasons += [f"next: {_told(pair)}{more_noise(model, noise)}, and check again" for model, pair, _ in needs]
    return Verdict(word=word, reasons=tuple(reasons), remedies=tuple(remedies))  # type: ignore[arg-type]


def _told(pair: PairCheck | None) -> str:
    return "fit its tables to these data" if pair is None else f"add {_arrow(pair)} to its arrows"


def _why(found: Sequence[PairCheck], epsilon: float) -> str:
    """Say which pairs depend on each other, and what is leaked to those who know it."""
    names = some([f"{_pair(pair)} are not independent{_given(pair)}" for pair in found])
    known = [pair for pair in found if pair.richer is not None and pair.richer.leakage is not None]
    worst = max(known, key=lambda pair: getattr(pair.richer, "leakage", 0.0), default=None)
    noise = f"noise for ε = {at_most(epsilon)}"
    if worst is None or worst.richer is None:
        return f"{names}; the leakage of {noise} in that case is not computed"
    if leaks_more(worst.richer, epsilon):
        return f"{names}; {noise} would leak {leaks(worst.richer)} to somebody who knows {_arrow(worst)}"
    return f"{names}; but {noise} covers it: it leaks {leaks(worst.richer)}"


def _of_tables(gain: float, tables: RicherModel, epsilon: float) -> str:
    first = f"the model predicts the rows by {number(gain, 3)} nats worse than tables fitted to them"
    if math.isinf(gain):
        first = "some of the rows are impossible under the model"
    if tables.leakage is None:
        return f"{first}, and the leakage of its noise is not computed"
    if leaks_more(tables, epsilon):
        return f"{first}, and its noise would leak {leaks(tables)} under these"
    return f"{first}, but its noise covers these: it leaks {leaks(tables)}"


def _found(pairs: Sequence[PairCheck]) -> list[PairCheck]:
    """Return the pairs that depend on each other, those first that do most."""
    return sorted((pair for pair in pairs if pair.judged == "dependent"), key=lambda pair: -pair.gain)


def _pair(pair: PairCheck) -> str:
    return " and ".join(pair.nodes)


def _arrow(pair: PairCheck) -> str:
    return "->".join(pair.nodes)


def _given(pair: PairCheck) -> str:
    return f" given {listed(pair.given)}" if pair.given else ""


def _pair_of_few(pair: PairCheck) -> str:
    values = " and ".join(f"{node}={value}" for node, value in zip(pair.nodes, pair.rarest, strict=True))
    return f"{_pair(pair)}{_given(pair)} ({values} would meet by chance in {number(pair.expected, 2)} rows)"


# -- A check as text -------------------------------------------------------------------------------------------------

_HEAD = ("pair", "given", "gain", "degrees", "p", "rarest, rows", "judged", "leakage")


def network_text(check: NetworkCheck, reworded: Callable[[str], str] = str, *, details: bool = True) -> str:
    """Return a check as text, ``reworded`` where it quotes errors; without ``details`` the pairs that matter most."""
    return "\n".join(printable(line) for line in _lines(check, reworded, details))


def _lines(check: NetworkCheck, reworded: Callable[[str], str], details: bool) -> Iterator[str]:
    yield from str(check.verdict).splitlines()
    yield ""
    yield f"Θ: {check.origin}"
    yield f"checked against {check.source}: {counted(check.rows, 'row')}"
    if check.unread:
        yield f"not checked, because they or their parents have no column: {listed(check.unread[:8])}"
    better = "+∞: the model takes some of them as impossible" if math.isinf(check.gain) else f"{check.gain:+,.1f}"
    multiplier = "" if check.noise_multiplier is None else f" (multiplier {check.noise_multiplier:.3g})"
    yield ""
    yield (
        f"what the noise of all columns' marginals at ε = {at_most(check.epsilon)}{multiplier} leaks, in nats, if the "
        "model's tables were those of these data: "
        + (reworded(check.tables.reason or "") if check.tables.leakage is None else at_most(check.tables.leakage, 3))
    )
    yield (
        f"by how many nats these predict the rows better, each row by all others: {better} (above "
        f"{number(check.clearly, 3)} is clearly better)"
    )
    yield ""
    yield "pairs that the model calls independent; gain: by how many nats dependence fits better, p: as much by chance"
    yield from _table(check.pairs, details)
    yield ""
    yield "arrows of the model, each given the other parents"
    yield from _table(check.arrows, details)


def _table(pairs: Sequence[PairCheck], details: bool) -> Iterator[str]:
    """Yield the pairs that matter first: dependent ones, then those that the data are too few for."""
    order = {"dependent": 0, "too few": 1, "not seen": 2, "not tested": 3}
    ranked = sorted(pairs, key=lambda pair: (order[pair.judged], -pair.gain))
    shown = ranked if details else ranked[:_MOST_ROWS]
    yield from aligned(_HEAD, [_row(pair) for pair in shown], texts=2)
    if left := len(ranked) - len(shown):
        yield f"  and {left:,} more"
    if not pairs:
        yield "  none"


def _row(pair: PairCheck) -> tuple[str, ...]:
    rarest = f"{', '.join(pair.rarest)}: {number(pair.expected, 2)}" if pair.rarest else ""
    leaks = "" if pair.richer is None or pair.richer.leakage is None else at_most(pair.richer.leakage, 3)
    tested = pair.judged != "not tested"
    numbers = (f"{pair.gain:.1f}", f"{pair.freedom}", f"{pair.p:.2g}") if tested else ("", "", "")
    return (_arrow(pair), ", ".join(pair.given), *numbers, rarest, pair.judged, leaks)
