"""What a check of a model found: numbers that stand in its file, and how they print."""

from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.writing import record_kind

__all__ = [
    "CHECK",
    "CheckFields",
    "NetworkCheckFields",
    "OverlapAfter",
    "PairCheck",
    "RicherModel",
    "StateStays",
    "SubjectCheck",
]

FORMAT, VERSION = "pufferfish-check", 1

CHECK = record_kind("check", FORMAT, "name another file, or give --overwrite")


class SubjectCheck(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How well laws predict one subject's transitions: log-likelihood per transition, in nats.

    Parameters
    ----------
    subject : str
        The subject; "" where the table is one chain.
    transitions : int
        How many there are.
    model : float
        Under the model, as it stands: under the member of Θ that fits this subject best. −∞ where a transition is
        impossible.
    member : int
        That member.
    pooled, order2 : float
        Held out: under one chain for all subjects, and one whose next state depends on two.
    own, hour : float or None
        Held out: under a chain of the subject's own, where there are several subjects; under a chain for each hour,
        where times are known.
    """

    subject: str
    transitions: int
    model: float
    member: int
    pooled: float
    order2: float
    own: float | None = None
    hour: float | None = None


class StateStays(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How many records a state lasts: mean and 95% quantile.

    Parameters
    ----------
    state : str
        The state.
    observed : tuple of float or None
        In the data, by Kaplan and Meier's estimate; None where no stay was seen to end.
    least, most : tuple of float
        Under the members of Θ with the shortest and the longest stays.
    """

    state: str
    observed: tuple[float, float] | None
    least: tuple[float, float]
    most: tuple[float, float]


class OverlapAfter(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How much is forgotten after some steps: the least share that laws given two states have in common.

    Parameters
    ----------
    steps : int
        After (and before) so many steps.
    worst : float
        Of the subject with the least.
    subject : str
        That subject.
    pooled : float
        Of all subjects taken as one.
    model : float or None
        Of the model, the least of its members; None for chains that have no stationary law.
    """

    steps: int
    worst: float
    subject: str
    pooled: float
    model: float | None


class RicherModel(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model that says more, and what noise for the checked model leaks to somebody who knows it.

    Parameters
    ----------
    kind : {"pooled", "own", "hour", "order2", "forgets"}
        One chain fitted to these data; every subject's own; a matrix for each hour; a chain of order 2; how soon the
        least forgetful subject forgets.
    leakage : float or None
        In nats; infinite where nothing is proved.
    noise_multiplier : float or None
        The noise that this model needs at the same ε.
    decided_by : str or None
        The member that decides, where there are several.
    reason : str or None
        Why there are no numbers.
    """

    kind: str
    leakage: float | None = None
    noise_multiplier: float | None = None
    decided_by: str | None = None
    reason: str | None = None


class CheckFields(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a check of a model found, as its file holds it.

    Parameters
    ----------
    verdict : str
        In plain words.
    origin, source : str
        Where Θ came from, and what it was held against.
    epsilon : float
        Privacy parameter of the noise that is spoken of.
    noise_multiplier : float or None
        Of a histogram of these records under the model, by :class:`LeakagePropagation`.
    records, transitions : int
        Observed records and transitions.
    gains : dict of str to float
        By how many nats in all "pooled", "own", "order2" and "hour" predict the transitions better than what is
        simpler; below 0 where they do not.
    richer : tuple of RicherModel
        What the noise leaks under richer models.
    subjects : tuple of SubjectCheck
        Likelihoods.
    stays : tuple of StateStays
        How long states last.
    overlaps : tuple of OverlapAfter
        How soon the present is forgotten.
    states : tuple of str
        Names of the states.
    occupancy : tuple of tuple of int or None
        Records by hour (rows) and state.
    stationary : tuple of tuple of float
        For every state the least and the largest share under the members of Θ; empty without stationary laws.
    """

    format: str = FORMAT
    version: int = VERSION
    verdict: str
    origin: str
    source: str
    epsilon: float
    noise_multiplier: float | None
    records: int
    transitions: int
    gains: dict[str, float]
    richer: tuple[RicherModel, ...]
    subjects: tuple[SubjectCheck, ...]
    stays: tuple[StateStays, ...]
    overlaps: tuple[OverlapAfter, ...]
    states: tuple[str, ...]
    occupancy: tuple[tuple[int, ...], ...] | None
    stationary: tuple[tuple[float, float], ...]


# -- Checks of networks ----------------------------------------------------------------------------------------------


class PairCheck(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether public data show that two nodes of a network depend on each other, given others.

    Parameters
    ----------
    nodes : tuple of str
        The nodes: the second is the one whose parents are given, and to which an arrow would go.
    given : tuple of str
        The parents of the second; of an arrow of the model its other parents.
    gain : float
        By how many nats in all the dependence fits the data better, as it was tested: half of the statistic G.
    freedom : int
        The degrees of freedom of G; 0 where what is given leaves nothing open.
    p : float
        The probability of as much by chance, for this pair alone.
    expected : float
        The rows in which two of their values would meet by chance, for the two that would meet least often.
    rarest : tuple of str
        These values.
    judged : {"dependent", "not seen", "too few", "not tested"}
        What the data say: that the nodes depend on each other; nothing, though they would show a strong dependence; or
        nothing, for they are too few; or that what is given leaves nothing open, or has too many combinations.
    richer : RicherModel or None
        What the model's noise leaks under the network with this arrow, for pairs without one that are dependent.
    """

    nodes: tuple[str, str]
    given: tuple[str, ...]
    gain: float
    freedom: int
    p: float
    expected: float
    rarest: tuple[str, ...]
    judged: str
    richer: RicherModel | None = None


class NetworkCheckFields(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a check of a network found, as its file holds it.

    Parameters
    ----------
    verdict : str
        In plain words.
    origin, source : str
        Where Θ came from, and what it was held against.
    epsilon : float
        Privacy parameter of the noise that is spoken of.
    noise_multiplier : float or None
        Of the marginals of all columns under the model, by :class:`LeakagePropagation`.
    rows : int
        Rows of data.
    gain : float
        By how many nats in all tables of these data, with the model's arrows, predict each row from all others better
        than the model's tables do; below 0 where they do not.
    tables : RicherModel
        What the noise leaks under the network of these tables.
    pairs : tuple of PairCheck
        The pairs that the model calls independent given the parents of one of them.
    arrows : tuple of PairCheck
        The model's arrows.
    unread : tuple of str
        Nodes without a column, and those with such a parent: what cannot be checked of them is left out.
    """

    format: str = FORMAT
    version: int = VERSION
    kind: str = "Bayesian networks"
    verdict: str
    origin: str
    source: str
    epsilon: float
    noise_multiplier: float | None
    rows: int
    gain: float
    clearly: float
    tables: RicherModel
    pairs: tuple[PairCheck, ...]
    arrows: tuple[PairCheck, ...]
    unread: tuple[str, ...]
