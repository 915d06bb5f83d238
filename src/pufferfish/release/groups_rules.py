"""What follows of a release by groups from itself: its values from its noise, its groups from how the table was read.

All else is checked as for a release of all records together with the same noise, whose values are 0
(:func:`stand_in`): the promise, the proof and the query of both are the same.
"""

import math

import msgspec

from pufferfish.data.groups import in_order
from pufferfish.queries import KINDS, Joint
from pufferfish.release.facts import AccuracyRecord, NoiseRecord, ReleaseFields
from pufferfish.release.groups import GroupsRecord, of_the_whole
from pufferfish.release.noise import fits
from pufferfish.release.postprocessing import ClippedByGroup, Projected
from pufferfish.release.query_rules import OF_ROWS, Rules, blocks_of, near, nodes_of
from pufferfish.release.strategy_rules import measured_well

__all__ = ["groups_rules", "stand_in"]

_SAME = 1e-9


def groups_rules(found: ReleaseFields, groups: GroupsRecord) -> Rules:
    """Check the groups of a release, then its values."""
    rules = _of_groups(found, groups)
    if all(holds for holds, _ in rules):
        rules += _of_values(found, groups)
    return rules


def stand_in(found: ReleaseFields, groups: GroupsRecord) -> ReleaseFields:
    """Return a release of all records together with the same noise, and 0 for values."""
    query, noise = found.query, found.noise
    by = None if groups.divided_by is None else sum(groups.divided_by)
    over, zeros = by or 1, [0.0] * len(query.labels)
    alone = msgspec.structs.replace(
        found,
        groups=None,
        query=msgspec.structs.replace(
            query,
            description=of_the_whole(query.description, over),
            lipschitz=None if query.lipschitz is None else query.lipschitz / over,
            divided_by=by,
        ),
        noise=msgspec.structs.replace(
            noise,
            scale=noise.scale / over,
            unit=noise.unit / over,
            measurements=None
            if noise.measurements is None
            else [msgspec.structs.replace(m, scale=m.scale / over) for m in noise.measurements],
        ),
        values=zeros,
        noisy_values=zeros,
        postprocessing=None,
    )
    each, joint = (alone.accuracy(0.05, joint=joint) for joint in (False, True))
    outputs = None if noise.measurements is None else alone.accuracies(0.05).tolist()
    return msgspec.structs.replace(alone, accuracy_95=AccuracyRecord(0.05, each, joint, outputs))


def _of_groups(found: ReleaseFields, groups: GroupsRecord) -> Rules:
    data, n = found.data, len(groups.cells)
    read = data.rows if data.base is None else data.base
    all_records = data.subjects if data.rows is not None else data.records
    kind = KINDS.get(found.query.kind)
    rules = [
        (read is not None and read.by is not None and list(read.by) == groups.by, "groups are those that were read"),
        (0 < n == len(groups.records) == len(groups.error_95), "every group has a number of records, and an error"),
        (all(len(cell) == len(groups.by) for cell in groups.cells), "every group has a label under each grouping"),
        (len({tuple(cell) for cell in groups.cells}) == n, "groups differ"),
        (_in_order(groups), "groups are in their order"),
        (all(count >= 1 for count in groups.records), "every group has records"),
        (sum(groups.records) == all_records, "the records of all groups are those of the table"),
        (kind is not None, "the query is one of numbers of records"),
        (kind is not None and kind.relative == (groups.divided_by is not None), "shares and means are divided"),
        (found.query.divided_by is None, "it is groups that are divided by their records"),
        (
            _sound(found.noise, sum(groups.divided_by or [1])),
            "scale and unit are positive, and those of noise that fits",
        ),
        (measured_well(found.noise), "measurements have positive scales, and a sharpness above 0"),
        (
            n * len(found.query.labels) == len(found.values) == len(found.noisy_values) > 0,
            "there is one value for each group and label",
        ),
    ]
    if groups.divided_by is not None and all(holds for holds, _ in rules):
        times = groups.divided_by[0] // groups.records[0] if groups.divided_by else 0
        most = len(nodes_of(found)) if data.rows is not None and found.query.kind not in OF_ROWS else 1
        rules += [
            (1 <= times <= most, "a group is divided by its records, or by those of some columns"),
            (groups.divided_by == [times * count for count in groups.records], "all groups are divided alike"),
        ]
    return rules


def _of_values(found: ReleaseFields, groups: GroupsRecord) -> Rules:
    noise, m = found.noise, len(found.query.labels)
    by = groups.divided_by or [1] * len(groups.cells)
    done, said = found.postprocessing, found.accuracy_95
    values = found.noisy_values if done is None else done.of(found.noisy_values)
    size = max(map(abs, values))
    again = [found.accuracy(0.05, joint=joint) for joint in (False, True)]
    units = (value * by[i // m] / noise.unit for i, value in enumerate(found.noisy_values))
    errors = found.accuracies(0.05)
    outputs = said.outputs if noise.measurements is None else errors.max(axis=0).tolist()
    return [
        (
            found.values == values
            if done is None
            else all(abs(a - b) <= _SAME * size for a, b in zip(found.values, values, strict=True)),
            "values are what the post-processing makes of noisy_values",
        ),
        (all(_whole(number) for number in units), "noisy_values are whole numbers of units"),
        (all(map(_as_said, errors.max(axis=1), groups.error_95)), "error_95 is that of the noise, for each group"),
        (
            (noise.measurements is None) == (said.outputs is None)
            and len(said.outputs or ()) == len(outputs or ())
            and all(map(_as_said, outputs or (), said.outputs or ())),
            "outputs have errors of their own where noise is added to measurements, the largest of any group",
        ),
        (
            said.alpha == 0.05 and all(map(_as_said, again, (said.each, said.joint))),
            "accuracy_95 is that of the noise, in the group where it is most",
        ),
        *_possible(found, groups, by),
    ]


def _possible(found: ReleaseFields, groups: GroupsRecord, by: list[int]) -> Rules:
    """Check totals and ranges of the possible values of each group."""
    done, query, m = found.postprocessing, found.query, len(found.query.labels)
    if done is None:
        return []
    worth = [n * found.noise.unit / d for n, d in zip(groups.records, by, strict=True)]
    histogram = query.kind.startswith(("histogram", "marginal")) or query.kind in Joint.kinds
    rules = [
        (isinstance(done, Projected if histogram else ClippedByGroup), "histograms are projected, all else is clipped"),
        (found.data.rows is None or found.data.rows.missing == "refuse", "no cells are missing"),
    ]
    if isinstance(done, Projected):
        blocks = blocks_of(list(query.labels), nodes_of(found)) if query.kind.startswith("marginal") else None
        own = [list(range(m))] if blocks is None else [places for _, places in blocks]
        places = [[g * m + place for place in block] for g in range(len(worth)) for block in own]
        given, expected = list(done.totals), [w for w in worth for _ in own]
        rules.append(([list(block) for block in done.outputs] == places, "each group has its totals"))
    elif isinstance(done, ClippedByGroup):
        given = [high - low for low, high in zip(done.low, done.high, strict=False)]
        expected = [w / found.noise.unit * (query.lipschitz or 0.0) for w in worth]
        zero = query.kind not in ("count", "frequency") or not any(done.low)
        rules.append((done.outputs == m and zero, "each group has its range"))
    else:
        return rules
    times = round(given[0] / expected[0]) if given and expected[0] else 0
    most = len(nodes_of(found)) if found.data.rows is not None else 1
    same = len(given) == len(expected) and all(near(a, times * b) for a, b in zip(given, expected, strict=True))
    rules.append((same and 1 <= times <= most, "totals and ranges are those of so many records"))
    return rules


def _sound(noise: NoiseRecord, over: int) -> bool:
    """Whether noise is some, also where it is divided by so many records."""
    positive = all(0 < number < math.inf for number in (noise.scale, noise.unit))
    return over > 0 and positive and noise.unit / over > 0 and fits(noise.scale / noise.unit)


def _in_order(groups: GroupsRecord) -> bool:
    cells = [tuple(cell) for cell in groups.cells]
    return len({len(cell) for cell in cells}) == 1 and list(in_order(cells)) == cells


def _as_said(computed: float, said: float) -> bool:
    return abs(computed - said) <= _SAME * computed + 1e-300


def _whole(number: float) -> bool:
    return abs(number) < 2.0**63 and abs(number - round(number)) <= 2.0**-48 * abs(number)
