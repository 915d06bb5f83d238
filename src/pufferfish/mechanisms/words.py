"""In words: what a release promises and what not, which record decides the noise, and where noise hides everything.

A value of n records lies in a range that n records span: n times what one of them can move it. Where its interval (the
value ± the error of the noise) is as wide as this range, a release warns; where the error alone is as large, whatever
is released could have been said without the data, and no budget is spent on it unasked. How many records there are is
public, and so is the noise: a warning tells nothing of the data, and is there before anything is spent.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any, Protocol

import msgspec

from pufferfish._base.view import Html, counted, join, tag
from pufferfish._base.words import at_most, number
from pufferfish._draw.page import table
from pufferfish.errors import shortened
from pufferfish.mechanisms import witness
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.protection import ROW, SUBJECT, ColumnsProtection, Protection
from pufferfish.queries import BoundQuery, JointQuery, LinearQuery, StepQuery
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import CONTINUA
from pufferfish.theta.joint_distribution import GivenLaws
from pufferfish.theta.model_class import Described, Theta
from pufferfish.theta.record import NEVER_CHECKED, Checking
from pufferfish.theta.states import phase_name

# -- Warnings where there are so few records that noise hides what they say ------------------------------------------

_NAMED = 3


def noise_hides_everything(calibration: Calibration, records: Sequence[int]) -> bool:
    """Whether the noise hides all that each of these numbers of records, of a table or of its groups, would say."""
    return len(_too_few(calibration, calibration.linear, records, 1.0)) == len(records)


def wide_quantiles(calibration: Calibration, records: int, bins: int) -> str | None:
    """Return what is wrong with quantiles whose intervals would span half of their range, if values lay evenly."""
    error = float(max(calibration.accuracies(0.05, joint=True))) * (calibration.linear.divided_by or 1) / records

    def width(count: int) -> float:
        grown = (count - 1) * math.log((count - 1) / 0.05) / ((bins - 1) * math.log((bins - 1) / 0.05))
        return 2 * error * grown + 1 / count

    if width(bins) < _HALF:
        return None
    best = min(range(2, max(bins, 40)), key=width)
    instead = f"about {best} bins, " if width(best) < _HALF else ""
    return (
        f"with {bins} bins the interval of a quantile would span {min(width(bins), 1):.0%} of their range, if values "
        f"lie evenly there. Nothing is spent: take {instead}more records, or a larger"
    )


def few_in_all(calibration: Calibration, bound: BoundQuery, records: int) -> list[str]:
    """Return the warning that a whole table has too few records, if it has."""
    if not _too_few(calibration, bound, [records]):
        return []
    error = f"{_least_error(calibration):.3g}"
    return [
        f"The noise hides nearly all: the error of ± {error} is as large as the range of possible values of "
        f"{counted(records, 'row' if calibration.theta.networks else 'record')}. {_REMEDY}"
    ]


def few_as_planned(calibration: Calibration) -> list[str]:
    """Return the same of the records that noise was calibrated for, of which there may be no table yet."""
    records = calibration.bound.rows if calibration.theta.networks else calibration.records
    return few_in_all(calibration, calibration.linear, records)


def few_in_groups(
    calibration: Calibration, bound: BoundQuery, cells: Sequence[Sequence[str]], records: Sequence[int]
) -> list[str]:
    """Return the warning that some groups have too few records, which names the first of them."""
    few = _too_few(calibration, bound, records)
    if not few:
        return []
    names = "; ".join(shortened(", ".join(cells[g])) for g in few[:_NAMED]) + ("; …" if len(few) > _NAMED else "")
    whole = "the one group" if len(records) == 1 else f"{len(few):,} of {len(records):,} groups"
    return [
        f"The noise hides nearly all that {whole} would say ({names}): with so few records the error is as large as "
        f"the range of possible values. Make groups larger, for example by month instead of by date. {_REMEDY}"
    ]


def few_of_subjects(calibration: Calibration, bound: BoundQuery, records: Sequence[int]) -> list[str]:
    """Return the warning that some subjects have too few records for a value of their own."""
    few = _too_few(calibration, bound, records)
    words = (
        f"The noise hides nearly all that the values of {len(few):,} of {counted(len(records), 'subject')} would say: "
        f"with so few records the error is as large as the range of possible values. {_REMEDY}"
    )
    return [words] if few else []


_REMEDY = "Take more records, ask for less (one state, coarser bins), or take a larger epsilon."

_HALF = 0.5


def _too_few(calibration: Calibration, bound: BoundQuery, records: Sequence[int], share: float = _HALF) -> list[int]:
    """Return the places of the numbers of records of whose range the noise's error is such a share or more."""
    span = _span_of_one(bound, calibration.theta)
    if span is None:
        return []
    error = _least_error(calibration) / float(calibration.linear.unit)
    return [place for place, n in enumerate(records) if error >= share * span * n]


def _least_error(calibration: Calibration) -> float:
    """Return the error of the output that has the least noise; what follows from public numbers has none."""
    errors = calibration.accuracies(0.05)
    return float(min(errors[errors > 0], default=0.0))


def _span_of_one(bound: BoundQuery, theta: Theta) -> int | None:
    """Return how many units one record, step, or row of a network can add to an output; None where that differs."""
    if isinstance(bound, JointQuery | StepQuery):
        return 1
    if not isinstance(bound, LinearQuery) or not (theta.networks or (theta.of_chains and bound.factors is None)):
        return None
    return int(bound.spans.max())


# -- What a release promises, and what it does not, in words ---------------------------------------------------------

TOGETHER = "Together with the releases before it in its ledger"  # begins what a ledger promises, in ``not_promised``


class Booked(Protocol):
    """The place of a release in a ledger."""

    @property
    def entry(self) -> int:
        """Its number."""

    @property
    def spent(self) -> float:
        """What all releases up to it leak together at most, about the following."""

    @property
    def protection(self) -> Protection | None:
        """None for one record and any two of its values."""

    @property
    def secrets(self) -> Sequence[tuple[str, str]] | None:
        """None for any two values of any record."""


ONE_STATE, ONE_CELL = "the state of one subject at one time", "one cell of one row"


def hidden_in_words(
    secrets: Sequence[tuple[str, str]] | None,
    protection: Protection | None,
    step: str | None,
    *,
    of_chains: bool,
    networks: bool,
    brief: bool = False,
) -> str:
    """Say what is hidden, where a step takes so long; for headings in few words."""
    if secrets is not None:
        return "the secrets named" if brief else f"which of two secrets holds, namely {_named(secrets)}"
    if protection is not None:
        return protection.in_words(step, brief=brief)
    what = ONE_STATE if of_chains else ONE_CELL if networks else ""
    return "any one record" + (f" ({what})" if what and not brief else "")


def alternatives_of(secrets: Sequence[tuple[str, str]] | None, protection: Protection | None) -> str:
    """Say of which two things the odds change."""
    if secrets is not None:
        return "two secrets of a pair"
    return "two values of one record" if protection is None else protection.alternatives


def checked_of(model: Described | None) -> Checking | None:
    """Return what a check said of a model, as a release says it: a fingerprint belongs to the model's file alone."""
    checked: Checking | None = None if model is None else model.checked
    return None if checked is None else msgspec.structs.replace(checked, fingerprint=None)


def law_assumed(theta_in_words: str, origin: str, checked: Checking | None) -> str:
    """Say which law records are assumed to have, and whether that was held against public data."""
    return f"The distribution of the records is {theta_in_words} ({origin}). Θ was {check_in_words(checked)}."


def check_in_words(checked: Checking | None) -> str:
    """Say whether Θ was held against public data, and what was found."""
    return NEVER_CHECKED if checked is None else checked.in_words()


def promise_of(
    epsilon: float,
    delta: float,
    secrets: Sequence[tuple[str, str]] | None,
    *,
    of_chains: bool,
    networks: bool,
    protection: Protection | None = None,
    step: str | None = None,
) -> str:
    """Say what is promised, in one sentence."""
    factor = f"e^{at_most(epsilon)}" + (f" ≈ {number(math.exp(epsilon))}" if epsilon < math.log(1000) else "")
    if secrets is None and protection is not None:
        about = f"{protection.condition(step)}, and every distribution in Θ"
    elif secrets is None:
        record = f" ({ONE_STATE if of_chains else ONE_CELL})" if of_chains or networks else ""
        about = (
            f"if any one record{record} has one value as if it has another, for every record, every two values it can "
            "have, and every distribution in Θ"
        )
    else:
        about = (
            f"under one as under the other secret of each pair, namely {_named(secrets)}, for every distribution in Θ"
        )
    much = f"Whatever is released here is at most {factor} times as likely {about}"
    if delta:
        bounded = f"at most {factor} times the probability, plus {delta:g},"
        much = f"Every set of possible releases has {bounded} {about}"
    return f"{much}, the records' correlation with each other included."


def secrets_of(calibration: Calibration) -> list[tuple[str, str]] | None:
    """Return the pairs of secrets in words; None for any two values of any record."""
    pairs: Any = calibration.bound.secrets
    given_laws = [member for member in calibration.theta.members if isinstance(member, GivenLaws)]
    if given_laws:
        pairs = dict.fromkeys(pair for m in given_laws for pair in m.pairs_of(m.laws_of(calibration.query)))
    return None if pairs is None else [(str(a), str(b)) for a, b in pairs]


def _named(secrets: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"({a}) or ({b})" for a, b in secrets[:4]) + ("; …" if len(secrets) > 4 else "")


def not_promised_of(
    secrets: Sequence[tuple[str, str]] | None,
    booked: Booked | None,
    *,
    kinds: Collection[str],
    composes: bool,
    protection: Protection | None = None,
) -> list[str]:
    """Say what is not promised, of which kinds members of Θ are, and whether the noise is for more than one query."""
    others = "Other releases of the same records add up with this one; their epsilons alone do not say to how much."
    if not composes:
        others = (
            "This noise is for this one query. Its epsilon adds to that of no other release of the same records: what "
            "both leak together is bounded by their record-level losses, not by their epsilons."
        )
    if booked is not None:
        about = ""
        if (booked.protection or protection) is not None:  # the ledger may add up what is told of something else
            networks = BayesianNetwork.kind in kinds
            hidden = hidden_in_words(None, booked.protection, None, of_chains=not networks, networks=networks)
            about = f", of {hidden},"
        elif booked.secrets is None and secrets is not None:
            about = ", of any one record,"
        elif booked.secrets is not None and booked.secrets != secrets:
            about = f", of the ledger's own secrets alone ({_named(booked.secrets)}),"
        others = (
            f"{TOGETHER} (it is number {booked.entry}) this one leaks{about} at most "
            f"{at_most(booked.spent)}; releases that are not in the ledger add to that."
        )
    of_rows = BayesianNetwork.kind in kinds
    average = "how many rows have some value" if of_rows else "a subject's average over a month"
    facts = [f"Facts about many records at once, such as {average}, are not hidden."]
    if secrets is not None:
        facts = ["Facts other than the secrets named in the promise are not hidden."]
    elif protection is not None:
        facts = [*protection.not_hidden] if protection.is_stretch else [*facts, *protection.not_hidden]
    whole = protection is not None and not protection.only_near and protection.settings["protect"] in (SUBJECT, ROW)
    known = "" if whole else ", or somebody knows some of them for certain,"
    outside = [f"Distributions outside Θ: if the records follow another law{known or ','} more can leak."]
    outside += dict.fromkeys(CONTINUA[kind].outside for kind in kinds if kind in CONTINUA)
    return [
        " ".join(filter(None, outside)),
        *facts,
        "Who is in the data, how many rows it has and which cells are missing, is taken as public."
        if of_rows
        else "Who is in the data, how many records each subject has and when, is taken as public.",
        others,
    ]


_MOST_NODES = 12

_LEAST_SEEN, _LEAST_NAMED = 0.1, 4.0  # percent of the leakage from which a part is drawn, and has room for its number


def witness_part(seen: witness.AnyWitness, leakage: float, epsilon: float, theta: Theta | None) -> Html:
    """Return which secret decides the noise, in words, and what tells how much of it."""
    networks = theta is not None and bool(theta.networks)
    which = _where(seen, networks=networks, of_chains=theta is None or theta.of_chains)
    pair = "."
    if seen.pair_in_words is not None:
        a, b = seen.pair_in_words
        pair = f": whether it is {a!r} or {b!r}."
    sentence = f"Of this secret at most {at_most(leakage)} leaks, and ε = {at_most(epsilon)} is allowed."
    return join(
        tag("p", f"The noise is for the secret that needs most; {which}{pair} {sentence}"), *_why(seen, leakage, theta)
    )


def _where(seen: witness.AnyWitness, *, networks: bool, of_chains: bool) -> str:
    if isinstance(seen, witness.ColumnsWitness):
        return f"here {ColumnsProtection(seen.columns).in_words()}"
    if seen.node is None:
        return "all records are alike"
    if networks:
        return f"here the column {seen.node!r} of a row"
    if isinstance(seen.node, int) and of_chains:
        return f"here record {seen.node} (counted from 0) of a chain of {seen.length:,} steps"
    return f"here record {seen.node!r}" if isinstance(seen.node, str) else f"here record {seen.node}"


def _why(seen: witness.AnyWitness, leakage: float, theta: Theta | None) -> Sequence[Html]:
    parts: list[tuple[str, float]] = []
    words = ""
    match seen:
        case witness.AloneWitness():
            words = "Records are independent of each other in every distribution of Θ: each tells of itself alone."
        case witness.QuiltWitness(active_quilt=(), nearby=nearby):
            words = f"The proof counts all {nearby:,} records that may depend on it in full."
        case witness.QuiltWitness(active_quilt=quilt, nearby=nearby, influence=influence):
            names = ", ".join(map(str, quilt[:_MOST_NODES])) + (", …" if len(quilt) > _MOST_NODES else "")
            words = (
                f"The proof draws a line around it, a Markov quilt ({names}): the {nearby:,} records inside count in "
                "full, and those outside only by what the quilt can tell of it."
            )
            parts = [(f"the {nearby:,} records inside", leakage - influence), ("the records outside", influence)]
        case witness.PropagationWitness() | witness.ForgettingWitness() | witness.StretchWitness():
            itself, shown, told = "the record itself", "the record itself", "values"
            if isinstance(seen, witness.PhaseWitness):
                clock = getattr(theta.members[seen.theta], "clock", None) if theta is not None else None
                words = f"It stands at {phase_name(clock, seen.phase)} of the clock. "
            if isinstance(seen, witness.StretchWitness) and seen.steps > 1:
                words = f"It is the first of {seen.steps:,} steps in a row. "
                itself, shown, told = "these steps themselves", "the steps themselves", "courses"
            words += f"How well {itself}, all earlier records and all later ones tell the two {told} apart:"
            parts = [(shown, seen.own), ("the earlier records", seen.past), ("the later records", seen.future)]
        case witness.ClusterWitness():
            words = "How well the record itself tells, and each group of columns around it with all that lies behind:"
            behind = [(", ".join(names[:_MOST_NODES]) or "the rest", nats) for names, nats in seen.neighbours]
            parts = [("the record itself", seen.own), *behind]
        case witness.ColumnsWitness(by="row"):
            words = "The proof counts the losses of all columns of a row in full, whatever their law is."
        case witness.ColumnsWitness():
            words = "How well these columns themselves, and all other ones, tell the two combinations of values apart:"
            parts = [("the columns themselves", seen.own), ("the other columns", seen.others)]
        case witness.MatrixWitness():
            words = "Its row in the matrix of influences between records (GK16) is the one that decides."
        case witness.CouplingWitness():
            words = (
                f"The law of the answer moves by {number(seen.distance)} at most from one secret to the other "
                "(∞-Wasserstein distance), and noise must hide such a move."
            )
        case witness.LawWitness():
            words = "The laws of the noisy answer, given the one secret and given the other, differ most here."
    blocks = [tag("p", words)]
    if parts:
        blocks += [_bar(parts)]
    if seen.nearest is not None:
        more = f"{number(100 * seen.nearest.gap, 2)}% above what a member of it needs"
        blocks += [tag("p", f"Θ is a continuum that was searched: the noise is {more}.", class_="soft")]
    return blocks


def _bar(parts: Sequence[tuple[str, float]]) -> Html:
    total = sum(max(nats, 0.0) for _, nats in parts) or 1.0
    shares = [100 * max(nats, 0.0) / total for _, nats in parts]
    spans = [
        tag("span", str(i) if share > _LEAST_NAMED else "", style=f"width:{share:.2f}%")
        for i, share in enumerate(shares, 1)
        if share > _LEAST_SEEN
    ]
    rows: list[Any] = [
        [f"{i}. {name}", number(max(nats, 0.0)), f"{share:.0f}%"]
        for i, ((name, nats), share) in enumerate(zip(parts, shares, strict=True), 1)
    ]
    bar = tag("div", spans, class_="parts", aria_hidden="true")
    return join(bar, table(["what tells", "leakage (nats)", "share"], rows, "What tells how much of the worst secret"))
