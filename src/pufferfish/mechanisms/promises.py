"""What a release promises, and what it does not, in words: for releases, and for what would be released."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

from pufferfish._base.words import at_most, number
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_intervals import IntervalChain
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.given_laws import GivenLaws

__all__ = ["TOGETHER", "not_promised_of", "promise_of", "secrets_of"]

TOGETHER = "Together with the releases before it in its ledger"
"""How the sentence begins that says what a ledger promises: it stands in ``not_promised``, for what it excludes."""


class Booked(Protocol):
    """The place of a release in a ledger."""

    @property
    def entry(self) -> int:
        """Its number."""
        ...

    @property
    def spent(self) -> float:
        """What all releases up to it leak together at most."""
        ...


def promise_of(
    epsilon: float, delta: float, secrets: Sequence[tuple[str, str]] | None, *, of_chains: bool, networks: bool
) -> str:
    """Say what is promised, in one sentence."""
    factor = f"e^{at_most(epsilon)}" + (f" ≈ {number(math.exp(epsilon))}" if epsilon < 700 else "")
    if secrets is None:
        record = ""
        if of_chains:
            record = " (the state of one subject at one time)"
        elif networks:
            record = " (one cell of one row)"
        about = (
            f"if any one record{record} has one value as if it has another, for every record, every two values it can "
            "have, and every distribution in Θ"
        )
    else:
        pairs = "; ".join(f"({a}) or ({b})" for a, b in secrets[:4]) + ("; …" if len(secrets) > 4 else "")
        about = f"under one as under the other secret of each pair, namely {pairs}, for every distribution in Θ"
    much = f"Whatever is released here is at most {factor} times as likely {about}"
    if delta:
        bounded = f"at most {factor} times the probability, plus {delta:g},"
        much = f"Every set of possible releases has {bounded} {about}"
    return f"{much}, the records' correlation with each other included."


def secrets_of(calibration: Calibration) -> list[tuple[str, str]] | None:
    """Return the pairs of secrets in words; None for any two values of any record."""
    pairs: Any = calibration.bound.secrets
    given = [member for member in calibration.theta.members if isinstance(member, GivenLaws)]
    if given:
        pairs = dict.fromkeys(pair for m in given for pair in m.pairs_of(m.laws_of(calibration.query)))
    return None if pairs is None else [(str(a), str(b)) for a, b in pairs]


def not_promised_of(
    secrets: Sequence[tuple[str, str]] | None, booked: Booked | None, *, kind: str, composes: bool
) -> list[str]:
    """Say what is not promised, of which kind Θ is, and whether the noise is for more than this one query."""
    others = "Other releases of the same records add up with this one; their epsilons alone do not say to how much."
    if not composes:
        others = (
            "This noise is for this one query. Its epsilon adds to that of no other release of the same records: what "
            "both leak together is bounded by their record-level losses, not by their epsilons."
        )
    if booked is not None:
        others = (
            f"{TOGETHER} (it is number {booked.entry}) this one leaks at most "
            f"{at_most(booked.spent)}; releases that are not in the ledger add to that."
        )
    average = "how many rows have some value" if kind == BayesianNetwork.kind else "a subject's average over a month"
    facts = f"Facts about many records at once, such as {average}, are not hidden."
    if secrets is not None:
        facts = "Facts other than the secrets named in the promise are not hidden."
    outside = "Distributions outside Θ: if the records follow another law, more can leak."
    if kind == IntervalChain.kind:
        outside += (
            " Bounds that were estimated from public data miss the true transition probabilities with the probability "
            "that their confidence leaves, and say nothing of people or times that follow other ones."
        )
    if kind == ForgettingClass.kind:
        outside += (
            " An overlap that was estimated from public data says nothing of people or times that forget more slowly."
        )
    return [
        outside,
        facts,
        "Who is in the data, how many rows it has and which cells are missing, is taken as public."
        if kind == BayesianNetwork.kind
        else "Who is in the data, how many records each subject has and when, is taken as public.",
        others,
    ]
