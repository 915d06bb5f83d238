"""What it takes to compute the proof of a release again: the query, the lengths, the settings, the exact noise.

The other fields of a release say in words and numbers what follows from these.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pufferfish._base.frozen import FrozenRecord
from pufferfish.errors import ParameterError
from pufferfish.mechanisms import MECHANISMS, ApproximateWasserstein, ParticipantDP
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.release.plain import NotPlain, made, plain
from pufferfish.theta.lengths import ChainLength

if TYPE_CHECKING:
    from pufferfish.release.facts import ReleaseFields

__all__ = ["CalibrationRecord", "calibration_again", "record_of"]

_Whole = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]

_MOST_CHAINS = 50_000_000
"""Chains that are made again: a record with more was changed, or no machine could hold them."""


class CalibrationRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the noise was calibrated from.

    Parameters
    ----------
    unit_scale : float
        Scale of the noise in whole units of the query, to the last bit.
    query : dict or None
        The query as it was given; None for a function of the user's.
    settings : dict or None
        What the mechanism was told besides Θ and lengths; None where that holds a function of the user's.
    lengths : list of (steps, observed records, chains)
        The chains that can decide: no other has as many steps and as many records. For mechanisms of one query all
        chains, in their order. Empty for models that know their records.
    records : int
        Observed records of all chains together; the rows of a network's table.
    places : list of list of int, optional
        For each of the lengths how many steps are observed, unobserved, observed, …, empty where that is not known;
        then the lengths are those of all chains. None where it is known of no chain.
    """

    unit_scale: float
    query: dict[str, Any] | None
    settings: dict[str, Any] | None
    lengths: list[tuple[_Whole, _Whole, _Whole]]
    records: _Whole
    places: list[list[_Whole]] | None = None

    def chains(self) -> tuple[ChainLength, ...]:
        """Return lengths of chains as they were: those that can decide, and shorter ones that make up the number.

        Raises
        ------
        ParameterError
            If there are more than can be, or they have more records than all chains together; or places are not those
            of the lengths.
        """
        left = self.records - sum(records * times for _, records, times in self.lengths)
        most = max((records for _, records, _ in self.lengths), default=1)
        if left < 0:
            raise ParameterError(f"its chains have more than {self.records:,} records, the number of all")
        if sum(times for *_, times in self.lengths) + left // most > _MOST_CHAINS:
            raise ParameterError(f"its chains are more than {_MOST_CHAINS:,}")
        unknown: list[list[int]] = [[]] * len(self.lengths)
        places = self.places or unknown
        if len(places) != len(self.lengths) or (self.places is not None and left):
            raise ParameterError("its places are not those of all its chains")
        each = [ChainLength(*chain[:2], tuple(own)) for chain, own in zip(self.lengths, places, strict=True)]
        found = [chain for chain, (*_, times) in zip(each, self.lengths, strict=True) for _ in range(times)]
        full, rest = divmod(left, most)
        return (*found, *[ChainLength(most, most)] * full, *([ChainLength(rest, rest)] if rest else []))


def record_of(calibration: Calibration) -> CalibrationRecord:
    """Return what a calibration was made from."""
    bound, theta = calibration.bound, calibration.theta
    lengths: list[tuple[int, int, int]] = []
    known = theta.of_chains and any(chain.places for chain in bound.length)
    chains = Counter[ChainLength](bound.length if known else ())
    if known:
        lengths = [(chain.steps, chain.records, times) for chain, times in chains.items()]
    elif theta.of_chains:
        lengths = _deciding(bound.length) if calibration.composes else _in_order(bound.length)
    return CalibrationRecord(
        unit_scale=calibration.unit_scale,
        query=_or_none(calibration.query),
        settings=_settings(calibration),
        lengths=lengths,
        records=bound.rows if theta.networks else sum(chain.records for chain in bound.length),
        places=[list(chain.places) for chain in chains] if known else None,
    )


def _settings(calibration: Calibration) -> dict[str, Any] | None:
    given: Any = calibration.bound
    found = {name: _or_none(value) for name, value in given.settings.items()}
    lost = any(value is not None and found[name] is None for name, value in given.settings.items())
    return None if lost else found


def _or_none(value: Any) -> Any:
    try:
        return plain(value)
    except NotPlain:
        return None


def _deciding(chains: Iterable[ChainLength]) -> list[tuple[int, int, int]]:
    """Return the chains that no other exceeds in both steps and records: losses of the others leak no more."""
    found: list[tuple[int, int, int]] = []
    for chain in sorted(set(chains), reverse=True):
        if not found or chain.records > found[-1][1]:
            found.append((chain.steps, chain.records, 1))
    return found


def _in_order(chains: Iterable[ChainLength]) -> list[tuple[int, int, int]]:
    """Return all chains, equal ones that follow each other together."""
    found: list[tuple[int, int, int]] = []
    for chain in chains:
        if found and found[-1][:2] == (chain.steps, chain.records):
            found[-1] = (chain.steps, chain.records, found[-1][2] + 1)
        else:
            found.append((chain.steps, chain.records, 1))
    return found


def calibration_again(found: "ReleaseFields", record: CalibrationRecord) -> Calibration:
    """Return the calibration of a release, made again from its record alone; nothing in it is proved yet.

    Raises
    ------
    PufferfishError
        If Θ, the mechanism, the query or the lengths are none, or do not go together.
    """
    name = found.mechanism.name
    kind = next((m for m in (*MECHANISMS, ParticipantDP, ApproximateWasserstein) if m.name == name), None)
    if kind is None:
        raise ParameterError(f"there is no mechanism {name!r}")
    theta = found.theta.any_theta()
    if theta is None:
        raise ParameterError("Θ is described by a function of the user's")
    length: Any = record.chains() if theta.of_chains else record.records if theta.networks else None
    settings = {key: made(value) for key, value in (record.settings or {}).items()}
    bound = kind.of(theta, length, **settings)
    query = made(record.query)
    return Calibration(
        epsilon=found.epsilon,
        unit_scale=record.unit_scale,
        query=query,
        linear=bound.bind(query),
        witness=found.mechanism.witness,
        bound=bound,
        strategy=found.strategy,
    )
