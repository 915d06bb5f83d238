"""Claims that are false by an independent linear program, with edited proofs, for both checkers of certificates.

    PYTHONPATH=.:tests python tests/false_claims.py 50000

makes so many, and prints how many each checker accepts: none. One in 50 is true, and has its own proof: a checker that
accepts nothing would show.
"""

import itertools
import json
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import pufferfish as pf
from certificate_files import accepted_in_node, accepted_in_python
from odd_classes import odd_class, odd_rows
from paper.audit.laws import some_laws
from pufferfish.errors import PufferfishError
from pufferfish.release import certificate
from pufferfish.release.checker import check
from pufferfish.release.record import encoded
from stretch_oracle import supremum_of_stretch

Generator = np.random.Generator
_OF_ONE = 50
"""False claims for each linear program."""
_LAWS = 4
"""So many laws of a class are looked at."""


_KINDS = ("ChainClass", "clocks or memory", "clocks or memory", "ForgettingClass", "mixed")
_QUERIES = (pf.Histogram(), pf.Count("0"), pf.Sum([0, 1, 3]), pf.Sum([0, 1]), pf.CDF(), pf.Transitions())
_SEQUENCES = 100
"""The linear programs are about at most so many."""


def _models(rng: Generator) -> Iterator[tuple[Any, int, Any, dict[str, Any]]]:
    """Yield classes of odd short chains with a number of records, a query, and what is hidden.

    That is one record, or so many in a row, of any values or of some pairs only: then what a step costs may be all that
    is told, and a proof that does not pay for it stands out.
    """
    while True:
        k = int(rng.integers(2, 4))
        states = [str(x) for x in range(k)]
        one_way_in = k == 3 and rng.random() < 0.4
        theta = _one_way_in(rng, states) if one_way_in else odd_class(rng, str(rng.choice(_KINDS)), states)
        length = int(rng.integers(2, 1 + int(np.log(_SEQUENCES) / np.log(k))))
        hidden: dict[str, Any] = {} if rng.random() < 0.7 else {"protect": int(rng.integers(1, length + 1))}
        if rng.random() < 0.4 or one_way_in:
            pairs = list(itertools.combinations(theta.states[one_way_in:], 2))
            hidden["within"] = [pairs[i] for i in rng.permutation(len(pairs))[: int(rng.integers(1, len(pairs) + 1))]]
        yield theta, length, _QUERIES[int(rng.integers(len(_QUERIES)))], hidden


def _one_way_in(rng: Generator, states: list[str]) -> pf.ChainClass:
    """A chain under any first law two of whose states come from one state only: of these no past tells more."""
    rows, source = odd_rows(rng, len(states), "plain"), int(rng.integers(len(states)))
    rows[np.arange(len(states)) != source, 1:] = 0
    return pf.ChainClass([pf.MarkovChain(rows / rows.sum(axis=1, keepdims=True), "any", states=states)])


def _near(states: Any, within: Any) -> Any:
    """Which values of a record are hidden from each other."""
    near = np.eye(len(states), dtype=bool)
    for one, other in within:
        i, j = states.index(one), states.index(other)
        near[i, j] = near[j, i] = True
    return near


def _of_sequences(law: Any, steps: Any, length: int) -> Any:
    """The law of all sequences, one axis per record."""
    for step in steps:
        law = law[..., None] * step  # axes are lined up from the last one
    return law.sum(axis=tuple(range(length, law.ndim)))


def _edited(proof: dict[str, Any], rng: Generator) -> dict[str, Any]:
    """Return a proof with other numbers, lists emptied, cut, doubled or turned round, other digits, other moves."""
    text = json.loads(json.dumps(proof))
    if rng.random() < 0.3:
        return _all_of_one_kind(text, rng)
    for _ in range(int(rng.integers(0, 4))):
        place: Any = text["members"]
        path = [place]
        while isinstance(place, list | dict) and place and rng.random() < 0.9:
            key = rng.choice(list(place)) if isinstance(place, dict) else int(rng.integers(len(place)))
            if not isinstance(place[key], list | dict):
                break
            place = place[key]
            path.append(place)
        if isinstance(place, dict) or not place:
            continue
        i = int(rng.integers(len(place)))
        kind = int(rng.integers(8))
        if kind == 0:
            place[:] = []
        elif kind == 1:
            place.pop(i)
        elif kind == 2:
            place.append(place[i])
        elif kind == 3:
            place.reverse()
        elif isinstance(place[i], int):
            place[i] = [0, place[i] // 2, int(place[i] * (1 - 10.0 ** -rng.uniform(1, 9))), place[i] * 2][kind - 4]
    if rng.random() < 0.1:
        text["digits"] = int(rng.integers(0, 19))
    if rng.random() < 0.1:
        text["members"] = [None, [], [*text["members"], None], [None]][int(rng.integers(4))]
    members = text["members"] or []
    for member in members:
        if rng.random() < 0.3 and isinstance(member, dict):
            cells = range(max(len(each["future"][0]) for each in proof["members"] if each))
            moves = [[int(n) for n in rng.choice(cells, 2 * int(rng.integers(1, 4)))] for _ in range(4)]
            member["moves"] = {"future": [moves], "past": [moves[::-1]] * int(rng.integers(0, 3))}
    return text


def _all_of_one_kind(proof: dict[str, Any], rng: Generator) -> dict[str, Any]:
    """Edit all bounds of a side at once, those of a pair of cells, of a row, of a column or of all, in one way.

    Bounds follow from each other, so that an edit of one of them is found out by the next; these fit together.
    """
    smaller, past_one = float(rng.choice([0.0, 0.0, 0.5, 0.99, 1 - 1e-6])), int(rng.choice([0, 0, 1, 10**3]))
    sides = [("past",), ("future",), ("past", "future")][int(rng.integers(3))]
    for bounds in (member[side] for member in proof["members"] if member for side in sides):
        x, y = rng.permutation(len(bounds[0]))[:2]
        rows = [x, y] if rng.random() < 0.5 else [x] if rng.random() < 0.5 else range(len(bounds[0]))
        columns = [x, y] if rng.random() < 0.5 else [y] if rng.random() < 0.5 else range(len(bounds[0]))
        keep = int(rng.integers(len(bounds))) if rng.random() < 0.2 else 0
        for bound, i, j in itertools.product(bounds[keep:], rows, columns):
            bound[i][j] = max(past_one, int(bound[i][j] * smaller)) if i != j else 0
    return proof


def claiming(record: Any, epsilon: float) -> str:
    """Return the text of a release that promises another ε."""
    text = json.loads(encoded(record)) | {"epsilon": epsilon}
    before, about = text["promise"].split(" times as likely", 1)
    text["promise"] = f"{before.split('e^')[0]}e^{epsilon * (1 + 1e-12):.17f} times as likely{about}"
    return json.dumps(text, ensure_ascii=False)


def claims(many: int, seed: int = 0) -> Iterator[tuple[str, str, bool]]:
    """Yield texts of releases and proofs, and whether their ε is above the truth rather than below."""
    rng, made = np.random.default_rng(seed), 0
    for theta, length, query, hidden in _models(rng):
        try:
            noise = pf.LeakagePropagation(theta, length).calibrate(query, float(rng.uniform(0.2, 2)), **hidden)
            record = certificate.record_of_noise(noise)
            claim = certificate.claim_of(record)
            losses = np.array([[float(loss) for loss in row] for row in claim.losses])
            claim.epsilon = check.Fraction(1, 10**6)  # so that the sum of all losses is no proof
            members, leakage = certificate.proved(claim, named=bool(rng.random() < 0.5))
        except PufferfishError:
            continue
        if not leakage < math.inf:  # a member that no certificate covers
            continue
        k = len(theta.states)
        apart = np.broadcast_to(losses, (length, k, k))
        laws = [_of_sequences(*law, length) for law in some_laws(theta, length)]
        some = [laws[i] for i in rng.permutation(len(laws))[:_LAWS]]
        near = _near(theta.states, hidden["within"]) if "within" in hidden else None
        told = [
            supremum_of_stretch(law, apart, claim.records, step=float(claim.step), most=40, near=near) for law in some
        ]
        truth = max(told)
        assert truth <= leakage * (1 + 1e-9), (theta, length, query, hidden, truth, leakage)
        if not truth > 1e-3 or not any(members):
            continue
        proof = {"format": "pufferfish-proof", "version": 1, "digits": claim.digits, "members": members}
        yield claiming(record, leakage * (1 + 1e-9)), json.dumps(proof), True
        for _ in range(_OF_ONE - 1):
            yield claiming(record, truth * (1 - 10.0 ** -rng.uniform(0.5, 6))), json.dumps(_edited(proof, rng)), False
        made += _OF_ONE
        if made >= many:
            return


def accepted(many: int, seed: int = 0) -> dict[str, dict[bool, str]]:
    """Return how many of the true and of the false claims each checker accepts; what runs without Node has one."""
    found: dict[str, dict[bool, list[bool]]] = {}

    def look(batch: list[tuple[str, str, bool]]) -> None:
        says = {"Python": [accepted_in_python(release, proof) for release, proof, _ in batch]}
        in_node = accepted_in_node([(release, proof, None) for release, proof, _ in batch])
        if in_node is not None:
            says["JavaScript"] = in_node
        for checker, answers in says.items():
            for (_, _, true), answer in zip(batch, answers, strict=True):
                found.setdefault(checker, {True: [], False: []})[true].append(answer)

    batch = list[tuple[str, str, bool]]()
    for claim in claims(many, seed):
        batch.append(claim)
        if len(batch) == 1000:
            look(batch)
            batch = []
    look(batch)
    return {name: {true: f"{sum(a)} of {len(a)}" for true, a in of.items()} for name, of in found.items()}


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]] or [1000]
    print(f"accepted of true and of false claims: {accepted(*numbers)}")
