"""Whether a release that was read agrees with itself: everything that follows from something else is computed again.

A changed number somewhere in a file must not pass for what was promised. For every field, what fixes it:

==================================  ===================================================================================
field                               follows from, or is bounded by
==================================  ===================================================================================
values                              noisy_values and postprocessing
noisy_values                        whole numbers of noise.unit, one per label
postprocessing                      query.kind; totals and range: data.records, data.observed, lipschitz, noise.unit
epsilon                             promise; at least mechanism.leakage
delta                               promise; mechanism.name says whether it is 0
promise                             epsilon, delta, mechanism.secrets and theta.kind, where this version wrote it
assumptions                         theta.origin; data.base or data.rows, where this version wrote them
not_promised                        ledger.entry and ledger.spent; mechanism and theta.kind, where this version wrote it
query.kind                          one of the known ones
query.labels                        query.kind and theta.states, or the states of the nodes of theta
query.lipschitz, divided_by         query.kind, noise.unit, data.records, and each other
noise.scale, noise_multiplier       each other and query.lipschitz
accuracy_95                         noise and the number of labels; with measurements, the outputs that follow from them
noise.measurements                  query.kind and theta.states; scale, sharpness and noise_multiplier each other
                                    (strategy_rules.py); what the witness itself tells
quantiles                           noisy_values, noise, query.kind and theta.states
mechanism.name, title               each other
mechanism.leakage                   epsilon, and what the witness tells
mechanism.longest_chain             theta; at least data.longest_chain and the witness's length; below 2^60
mechanism.witness                   mechanism.name, theta, noise; its fields each other (witness_rules.py)
data                                theta where it names its records; base or rows; each other
theta                               a class of models; theta.states and theta.kind as above
ledger                              spent is at most budget; not_promised
groups                              data, query.kind, noise; values are those of each group (groups_rules.py)
==================================  ===================================================================================

Words (description, warnings, created, software) cannot be checked beyond that.
"""

import math
from collections.abc import Iterator
from typing import Any

from pufferfish._base.durations import is_moment
from pufferfish._base.words import at_most
from pufferfish.mechanisms import MECHANISMS, ApproximateWasserstein
from pufferfish.mechanisms.words import not_promised_of, promise_of
from pufferfish.release.facts import ReleaseFields
from pufferfish.release.groups_rules import groups_rules, stand_in
from pufferfish.release.noise import fits
from pufferfish.release.query_rules import Rules, near, nodes_of, on_grid, postprocessing_rules, query_rules
from pufferfish.release.strategy_rules import strategy_rules
from pufferfish.release.witness_rules import BOUND_NAMES, TITLES, witness_rules
from pufferfish.release.words import assumed_of, versions
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import CHAIN_MODELS
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.given_laws import GivenLaws
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.lengths import MOST_STEPS
from pufferfish.theta.model_class import CONTINUUM_KINDS

__all__ = ["PROGRAM", "contradictions"]

_SAME = 1e-9
"""What is computed again may differ by this share: other versions of numpy round otherwise."""

PROGRAM = "pufferfish-privacy"

_FOR_ONE_QUERY = [kind.name for kind in (*MECHANISMS, ApproximateWasserstein) if not kind.composes]

_OF_CHAINS = ("Markov chains", *CONTINUUM_KINDS, *(m.kind for m in CHAIN_MODELS))


def contradictions(found: ReleaseFields) -> Iterator[str]:
    """Say what was expected of a release and does not hold.

    Raises
    ------
    PufferfishError, ValueError
        Where a part of it is none by itself.
    """
    groups = found.groups
    if groups is not None:
        own = groups_rules(found, groups)
        yield from (rule for holds, rule in own if not holds)
        if not all(holds for holds, _ in own):
            return
        found = stand_in(found, groups)
    elif any(read is not None and read.by is not None for read in (found.data.base, found.data.rows)):
        yield "a table that was read by groups is released by groups"
    rules = [*_numbers(found), *_places(found)]
    yield from (rule for holds, rule in rules if not holds)
    if all(holds for holds, _ in rules):
        # these compute with numbers that are sound by now
        later = (query_rules, strategy_rules, _values, postprocessing_rules, witness_rules, _sentences)
        yield from (rule for rules_of in later for holds, rule in rules_of(found) if not holds)


def _numbers(found: ReleaseFields) -> Rules:
    noise, query = found.noise, found.query
    labels = len(query.labels)
    positive = 0 < noise.scale < math.inf and 0 < noise.unit < math.inf
    unit_scale = noise.scale / noise.unit if positive else 0.0
    several = None if query.lipschitz is None or not positive else query.lipschitz / noise.unit
    multiplier = noise.noise_multiplier
    return [
        (0 < labels == len(found.values) == len(found.noisy_values), "there is one value per label"),
        (0 < found.epsilon < math.inf, "epsilon is positive and finite"),
        (0 <= found.delta < 1, "delta is a probability below 1"),
        (
            (found.delta > 0) == (found.mechanism.name == ApproximateWasserstein.name),
            "delta is above 0 for the one mechanism that has it",
        ),
        (0 <= found.mechanism.leakage <= found.epsilon, "the leakage is at most epsilon"),
        (positive, "scale and unit are positive"),
        (positive and fits(unit_scale), "scale over unit is that of noise which fits 64-bit integers"),
        ((query.lipschitz is None) == (multiplier is None), "lipschitz and noise_multiplier are there together"),
        (several is None or _whole(several), "lipschitz is a positive whole number of units"),
        (
            noise.measurements is None or found.mechanism.name in BOUND_NAMES,
            "measurements are of a mechanism that composes",
        ),
        (
            noise.measurements is None or len(noise.measurements) > 0,
            "measurements are some, or there are none",
        ),
        (
            noise.measurements is not None
            or multiplier is None
            or query.lipschitz is None
            or near(noise.scale, multiplier * query.lipschitz),
            "the scale is noise_multiplier times lipschitz",
        ),
        (is_moment(found.created), "created is a time"),
        (len(found.assumptions) > 0, "it says what is assumed"),
        (len(found.not_promised) > 0, "it says what is not promised"),
        (f"e^{at_most(found.epsilon)} " in found.promise, f"the promise speaks of e^{at_most(found.epsilon)}"),
        (PROGRAM in found.software, f"software names the version of {PROGRAM}"),
    ]


def _places(found: ReleaseFields) -> Rules:
    """Check data, mechanism and ledger."""
    data, booked, mechanism, theta = found.data, found.ledger, found.mechanism, found.theta
    of_chains, base = theta.kind in _OF_CHAINS, data.base
    cut = base is not None and base.gaps == "independent"
    rules = [
        (mechanism.name in TITLES, "the mechanism is one of this program's"),
        (
            TITLES.get(mechanism.name, mechanism.title) == mechanism.title,
            f"the mechanism {mechanism.name!r} has the title {TITLES.get(mechanism.name)!r}",
        ),
        (mechanism.secrets is None or len(mechanism.secrets) > 0, "secrets are pairs, or none are given"),
        (min(data.subjects, data.chains, data.longest_chain) >= 1, "there are subjects, chains and steps"),
        (
            data.records >= (0 if data.rows is not None else data.chains),
            "the number of records is none below 0, nor below that of the chains",
        ),
        (data.records <= data.chains * data.longest_chain, "no chain has more records than steps"),
        (base is None or data.rows is None, "the data are sequences or rows"),
        (base is None or of_chains or theta.kind == Cliques.kind, "sequences are of chains, or cliques"),
        (data.rows is None or theta.kind == BayesianNetwork.kind, "rows are of networks"),
        ((data.rows is None) == (data.observed is None), "rows say how many cells of each column were observed"),
        (base is not None or data.rows is not None or data.subjects == 1, "one database is of one subject"),
        (
            base is None or (data.subjects <= data.chains if cut else data.subjects == data.chains),
            "every subject is a chain, or several where gaps cut it",
        ),
        (mechanism.longest_chain < MOST_STEPS, "the noise is for chains as long as there can be"),
        (
            all(text is None or text.strip() for text in _optional_texts(found)),
            "how the table was read says nothing where there was no filter, gap or step, and no empty text",
        ),
        (data.longest_chain <= mechanism.longest_chain, "the noise is for chains as long as the longest of the data"),
        *_of_named_records(found),
    ]
    if booked is not None:
        rules += [
            (booked.entry >= 1, "the place in the ledger is at least 1"),
            (0 < booked.budget < math.inf and 0 <= booked.spent <= booked.budget, "what is spent is in the budget"),
            (booked.mechanism in BOUND_NAMES, "the ledger's mechanism is one of this program's"),
        ]
    return rules


def _optional_texts(found: ReleaseFields) -> list[str | None]:
    """Return what was asked of a table's rows, or was not."""
    base, rows = found.data.base, found.data.rows
    return [
        *([] if base is None else [base.where, base.max_gap, base.step, base.time_zone]),
        *([] if rows is None else [rows.where]),
    ]


def _of_named_records(found: ReleaseFields) -> Rules:
    """Check the numbers of records that Θ itself tells: of networks, joint laws and cliques."""
    data, mechanism, theta = found.data, found.mechanism, found.theta
    nodes = nodes_of(found)
    if nodes:
        own = [(mechanism.longest_chain == len(nodes), "longest_chain are the nodes of the network")]
        if data.rows is None or data.observed is None:
            return [*own, (data.records == len(nodes), "the records of one row are the nodes of the network")]
        cells = data.observed
        least = data.subjects if data.rows.missing == "refuse" else 0
        return [
            *own,
            (data.longest_chain == len(nodes), "the longest chain are the nodes of the network"),
            (data.subjects == data.chains, "every row is a subject"),
            (cells.keys() == data.rows.columns.keys(), "the observed columns are those that were read"),
            (
                all(least <= n <= data.subjects for n in cells.values()),
                "no column has more observed cells than rows, nor fewer where none may be missing",
            ),
            (sum(cells.values()) == data.records, "records are the observed cells"),
            (cells.keys() <= nodes.keys(), "the columns that were read are nodes of theta"),
        ]
    if theta.kind == GivenLaws.kind:
        own = data.chains == 1 and data.records == data.longest_chain == mechanism.longest_chain
        return [(own, "laws of your own are about one group of records")]
    sizes: list[int] | None = None
    if theta.kind == JointDistribution.kind:
        sizes = [len(theta.members[0]["variables"])]
    elif theta.kind == Cliques.kind:
        laws: list[Any] = theta.members[0]["laws"]
        sizes = [len(law) - 1 for law in laws]
    if sizes is None:
        return []
    stated = data.chains, data.records, data.longest_chain, mechanism.longest_chain
    return [(stated == (len(sizes), sum(sizes), max(sizes), max(sizes)), "the records are those of theta")]


def _values(found: ReleaseFields) -> Rules:
    """Check values, their grid, and their accuracy; computed where the numbers they rest on are sound."""
    noise, said = found.noise, found.accuracy_95
    done = found.postprocessing
    values = found.noisy_values if done is None else done.of(found.noisy_values)
    size = max(map(abs, values), default=0.0)
    again = [found.accuracy(said.alpha, joint=joint) for joint in (False, True)] if said.alpha == 0.05 else []
    return [
        (
            found.values == values
            if done is None
            else all(abs(a - b) <= _SAME * size for a, b in zip(found.values, values, strict=True)),
            "values are what the post-processing makes of noisy_values",
        ),
        (all(on_grid(v / noise.unit) for v in found.noisy_values), "noisy_values are whole numbers of units"),
        (
            len(again) == 2
            and all(
                on_grid(b / noise.unit) and abs(a - b) <= noise.unit * (1 + _SAME) + _SAME * a
                for a, b in zip(again, (said.each, said.joint), strict=True)
            ),
            "accuracy_95 is that of the noise",
        ),
    ]


def _sentences(found: ReleaseFields) -> Rules:
    """Check what sentences say: numbers and names always, all the words where this very version wrote them."""
    theta, data, booked = found.theta, found.data, found.ledger
    rules = [(f"({theta.origin})." in found.assumptions[0], "the first assumption says where theta comes from")]
    if booked is not None:
        number, spent = f"number {booked.entry})", f"at most {at_most(booked.spent)};"
        told = any(number in sentence and spent in sentence for sentence in found.not_promised)
        rules.append((told, "what is not promised speaks of the ledger's entry, and of what it spent"))
    if found.software[PROGRAM] != versions()[PROGRAM]:
        return rules
    networks, of_chains = theta.kind == BayesianNetwork.kind, theta.kind in _OF_CHAINS
    secrets = found.mechanism.secrets
    promise = promise_of(found.epsilon, found.delta, secrets, of_chains=of_chains, networks=networks)
    rules.append((found.promise == promise, "the promise speaks of epsilon, delta, theta and the secrets"))
    composes = found.mechanism.name not in _FOR_ONE_QUERY
    not_promised = not_promised_of(secrets, booked, kind=theta.kind, composes=composes)
    rules.append((found.not_promised == not_promised, "what is not promised is what this program says"))
    read = data.rows if data.base is None else data.base
    assumed = assumed_of(read, of_chains=of_chains)
    rules.append((found.assumptions[1:] == assumed, "the assumptions say how the table was read, and nothing else"))
    return rules


def _whole(number: float) -> bool:
    return 0 < number < math.inf and round(number) >= 1 and near(number, round(number))
