"""Check the proof of a pufferfish release: python check.py release.json proof.json [model.json].

The release says what was asked, of which chains, with which noise; the proof brings bounds on what earlier and later
records tell. All else is computed again from the release, in whole numbers and fractions: neither rounding nor a search
nor any line of the program that made the proof has to be right. docs/proofs/certificate.md has the theorem and explains
each part. Exit code 0: PROVED, and what. Exit code 1: NOT PROVED, and why. Needs Python 3.9, and nothing else.
"""

import hashlib
import json
import math
import re
import sys
from fractions import Fraction
from itertools import combinations, permutations, product

ONE = 10**18  # the factor 1: factors are whole numbers over ONE, rounded up
FINE = 10**40  # the probability 1: probabilities are whole numbers over FINE, rounded down


class NotProved(Exception):
    """Why nothing is proved."""


def need(true, why):
    if not true:
        raise NotProved(why)


# -- 1. Reading: every key once and no other, every value of its type, numbers exact ---------------------------------


def unseen(value):
    return True


def loose(value):
    return whole(value)  # it only has to go with the rest


def later(value):
    return True  # it is looked at below


def text(value):
    return type(value) is str


def integer(value):
    return type(value) is int


def whole(value):
    return type(value) is int and 0 <= value < 2**63


def number(value):
    return type(value) in (int, Fraction)


def truth(value):
    return type(value) is bool


START = ("stationary", "any", [number], [[number]], [[[number]]], [[[[number]]]])
KINDS = {
    "Markov chains": {"transition_matrix": [[number]], "initial_distribution": START},
    "periodic Markov chains": {
        "matrices": [[[number]]], "initial_distribution": START, "clock": (None, text), "step": (None, text)
    },
    "Markov chains of higher order": {"tensor": [later], "initial_distribution": START},
    "chains with several kinds of stay": {"exits": [[number]], "stays": [[[number]]], "initial_distribution": START},
    "Markov processes that forget": {"steps": [whole], "overlap": [number]},
}  # fmt: skip
WHETHER, STATES, VALUES = {"relative": truth}, {"states": [text]}, {"values": later}
QUERIES = {
    "Histogram": WHETHER, "CDF": WHETHER, "Count": STATES, "Frequency": STATES, "Sum": VALUES, "Mean": VALUES,
    "Transitions": WHETHER, "Switches": WHETHER,
}  # fmt: skip
RELEASE = {
    "format": "pufferfish-release", "version": 4, "created": unseen, "software": unseen, "warnings": unseen,
    "query": {
        "kind": unseen, "description": unseen, "labels": [text], "lipschitz": unseen, "divided_by": (None, whole),
    },
    "values": unseen, "noisy_values": [number], "postprocessing": unseen, "quantiles": unseen, "accuracy_95": unseen,
    "epsilon": number, "delta": number, "hides": text, "promise": text, "promises": unseen, "not_promised": unseen,
    "assumptions": unseen, "checked": unseen, "ledger": unseen, "groups": None, "subjects": None,
    "noise": {
        "law": "discrete Laplace, P(Z = z) ∝ exp(-|z| unit/scale)", "scale": number, "unit": number,
        "noise_multiplier": unseen, "measurements": (None, [{"states": [text], "scale": number, "sharpness": whole}]),
    },
    "counted": {"each": text, "of": [text], "adds": [[[[integer]]]], "factors": None, "scale": text},
    "mechanism": {
        "name": unseen, "title": unseen, "leakage": unseen, "longest_chain": loose, "witness": unseen, "secrets": None
    },
    "data": {
        "base": unseen, "subjects": unseen, "chains": loose, "records": loose, "longest_chain": loose,
        "lengths": [[loose]], "places": unseen, "rows": None, "observed": None, "steps": unseen, "usual_step": unseen,
        "clock_changes": unseen,
    },
    "theta": {
        "origin": unseen, "states": [text], "kind": text, "names": unseen, "chains": [KINDS["Markov chains"]],
        "members": [later],
    },
    "calibration": {
        "unit_scale": number, "query": later, "lengths": [[loose]], "records": loose, "places": unseen,
"settings": later,
    },
}  # fmt: skip
BOUNDS = {"future": [[[whole]]], "past": [[[whole]]]}
PROOF = {"format": "pufferfish-proof", "version": 1, "digits": whole, "members": [(None, BOUNDS)]}


def fits(value, schema):
    """Whether a value has the type, the keys or the entries that a schema says; a tuple is a choice."""
    if type(schema) is tuple:
        return any(fits(value, each) for each in schema)
    if type(schema) is dict:
        known = type(value) is dict and value.keys() == schema.keys()
        return known and all(fits(value[key], schema[key]) for key in schema)
    if type(schema) is list:
        return type(value) is list and all(fits(each, schema[0]) for each in value)
    return schema(value) if callable(schema) else type(value) is type(schema) and value == schema


def fields_unseen(schema, path=""):
    """The fields of which nothing is asked, or only that they go with the rest."""
    while type(schema) is list:
        schema = schema[0]
    parts = schema.items() if type(schema) is dict else []
    inner = [name for key, part in parts for name in fields_unseen(part, f"{path}.{key}".strip("."))]
    return [path] if schema in (unseen, loose) else inner


def parsed(content, schema, what):
    """What a text of JSON holds, if it fits."""

    def once(pairs):
        need(len({key for key, _ in pairs}) == len(pairs), f"the {what} has a key twice")
        return dict(pairs)

    def exact(digits):
        mantissa, exponent, *_ = (digits.lower() + "e0").split("e")
        need(len(mantissa) + abs(int(exponent)) < 400, f"the {what} has a number out of range")
        return Fraction(digits)

    value = json.loads(content, parse_float=exact, parse_constant=exact, object_pairs_hook=once)
    keys = schema if type(schema) is dict and type(value) is dict and value.keys() == schema.keys() else {}
    wrong = [key for key in keys if not fits(value[key], schema[key])]
    need(not wrong, f"the {what} is damaged, or of a kind that is not covered, at {', '.join(wrong)}")
    need(fits(value, schema), f"it is no {what} of the version that is covered")
    return value


def read(path, schema, what):
    with open(path, encoding="utf-8") as file:
        return parsed(file.read(), schema, what)


# -- 2. Numbers: e^x; probabilities with their error -----------------------------------------------------------------


def exp(x, up):
    """e^x for a fraction x >= 0, over ONE, rounded up or down: a sum of Taylor's at x / 2^h, squared h times."""
    need(0 <= x < 700, "a loss is out of range")
    halvings = math.ceil(x).bit_length() + 8
    term = total = Fraction(1)
    for n in range(1, 16):
        term *= x / 2**halvings / n
        total += term
    value = math.ceil((total + term) * FINE) if up else math.floor(total * FINE)  # what is left out is below term
    for _ in range(halvings):
        value = -(-value * value // FINE) if up else value * value // FINE
    return -(-value * ONE // FINE) if up else value * ONE // FINE


def over(*factors):
    """The product of factors, rounded up."""
    value = ONE
    for factor in factors:
        value = -(-value * factor // ONE)
    return value


def multiplied(*matrices):
    return [[over(*entries) for entries in zip(*rows)] for rows in zip(*matrices)]


def table(rows, slack=Fraction(1)):
    """Rows over FINE², as rows over FINE and a slack: true entries are what stands there, up to slack times that."""
    down = [[math.floor(entry) // FINE for entry in row] for row in rows]
    least = min((small for row, floors in zip(rows, down) for entry, small in zip(row, floors) if entry), default=FINE)
    need(least > 10**20, "a probability is too small to be followed")
    return down, Fraction(math.ceil(slack * (1 + Fraction(1, least)) * FINE), FINE)


def laws(rows, length):
    """Rows of decimals as probabilities: each is divided by its sum, which must be nearly 1."""
    for row in rows:
        need(len(row) == length and min(row) >= 0 and abs(sum(row) - 1) * 10**8 < 1, "a row of Θ is no probability law")
    return table([[Fraction(entry) * FINE**2 / sum(row) for entry in row] for row in rows])


def identity(k):
    return [[FINE * (x == y) for y in range(k)] for x in range(k)], Fraction(1)


def dot(one, other):
    return sum(a * b for a, b in zip(one, other))


def times(one, other):
    return table([[dot(row, column) for column in zip(*other[0])] for row in one[0]], one[1] * other[1])


def stationary(kernel):
    """The only law π with π = πP, by taking out one state after another: sums and quotients, rounded both ways."""
    low, k = [list(row) for row in kernel[0]], len(kernel[0])
    high, leave = [[math.ceil(entry * kernel[1]) for entry in row] for row in low], [(0, 0)] * k
    for n in reversed(range(1, k)):
        leave[n] = sum(low[n][:n]), sum(high[n][:n])
        need(leave[n][0] > 0, "a chain has no single stationary law with every state in it")
        for i, j in product(range(n), repeat=2):
            low[i][j] += low[i][n] * low[n][j] // leave[n][1]
            high[i][j] -= -high[i][n] * high[n][j] // leave[n][0]
    least, most = [FINE], [FINE]
    for n in range(1, k):
        least.append(dot(least, [low[i][n] for i in range(n)]) // leave[n][1])
        most.append(-(-dot(most, [high[i][n] for i in range(n)]) // leave[n][0]))
    need(min(least) > 10**20, "a chain has no single stationary law with every state in it")
    return [least], max(Fraction(upper, lower) for lower, upper in zip(least, most))


def backwards(law, kernel):
    """Rows P(record before is y | record is x), each up to a factor of its own."""
    return table([[a * p for a, p in zip(law[0][0], column)] for column in zip(*kernel[0])], law[1] * kernel[1])


def living(rows):
    """The places where some row has mass; all others have no part, neither in pairs nor in moves."""
    return [place for place, column in enumerate(zip(*rows)) if any(column)]


# -- 3. The one inequality: p·v ≤ q·v for all v > 0 with v(y) ≤ R(y, z) v(z) -----------------------------------------


def covers(p, q, moves):
    """Move what p has too much to where q has more. If all fits in the end it holds, whatever the moves were."""
    left = [a - b for a, b in zip(p, q)]
    for factor, y, z in moves:
        if left[y] > 0 > left[z]:
            moved = min(left[y], -left[z] * ONE // factor)
            left[y] -= moved
            left[z] -= -moved * factor // ONE
    return max(left) <= 0


class Step:
    """What R says of the cells ``alive`` gives a factor to each of ``pairs``: row x times v to row x' times v."""

    def __init__(self, kernel, alive, pairs):
        (self.rows, slack), self.alive, self.pairs = kernel, alive, pairs
        self.error = slack**2

    def moves(self, bound):
        return sorted((bound[y][z], y, z) for y, z in permutations(self.alive, 2))

    def cases(self, x, x_):
        """All p and q of which p·v ≤ factor q·v is asked; what stands here may be off by ``error`` together."""
        ours, others = sum(self.rows[x]), sum(self.rows[x_])
        yield [a * others for a in self.rows[x]], [a * ours for a in self.rows[x_]]

    def holds(self, x, x_, factor, bound, moves):
        least = math.floor(factor / self.error)
        scaled = (([a * ONE for a in p], [a * least for a in q]) for p, q in self.cases(x, x_))
        return all(covers(p, q, moves) for p, q in scaled)


class StepOfAnyLaw(Step):
    """A step back to a record that ``power`` leads to from the first one, whose law may be any."""

    def __init__(self, kernel, alive, pairs, power):
        super().__init__(kernel, alive, pairs)
        both = [(law, [dot(law, column) for column in zip(*self.rows)]) for law in power[0]]
        self.laws, self.slack, self.error = (
            [*zip(both, both), *combinations(both, 2)],
            kernel[1],
            self.error * power[1] ** 2,
        )

    def cases(self, x, x_):
        into, other = ([row[z] for row in self.rows] for z in (x, x_))
        for (v, b), (w, d) in self.laws:
            p = [(d[x_] * a + b[x_] * c) * entry for a, c, entry in zip(v, w, into)]
            yield p, [(d[x] * a + b[x] * c) * entry for a, c, entry in zip(v, w, other)]

    def holds(self, x, x_, factor, bound, moves):
        return self.holds_for_two(x, x_, factor, bound) or super().holds(x, x_, factor, bound, moves)

    def holds_for_two(self, x, x_, factor, bound):
        """Whether (1 + rs + 2√(rs)) / (r + s + 2√(rs)) is at most factor for all y, y', r their cross ratio, s R."""
        for y, y_ in permutations(self.alive, 2):
            a, b = self.rows[y][x] * self.rows[y_][x_], self.rows[y][x_] * self.rows[y_][x]
            s, root = bound[y][y_], 2 * math.isqrt(a * b * bound[y][y_] * ONE)
            if (b * ONE + a * s + root) * ONE * self.slack**4 > factor * (a * ONE + b * s + root):
                return False
        return True


# -- 4. Chains: which inequalities bound what later and earlier records tell -----------------------------------------


class Chain:
    """A Markov chain of cells, each of which holds the states of m records in a row; a kernel for each phase."""

    def __init__(self, kernels, cells, start):
        while type(start) is list and start and type(start[0]) is list:
            start = [entry for row in start for entry in row]
        self.kernels, self.cells, self.phases, self.given = kernels, cells, len(kernels), None
        if type(start) is list:
            self.given, start = laws([start], len(cells)), "given" if self.phases == 1 else "any"
        self.start = start  # the clock of a chain with phases may begin at any of them
        first = self.given[0] if start == "given" else identity(len(cells))[0]
        self.reached = living(first)
        for _ in cells:  # those that no record can have are none
            self.reached = living([*first, *(kernels[0][0][c] for c in self.reached)])

    def laws_at(self, bounds):
        """The law of the record of each bound of the past; for any first law the power that leads to it."""
        law = self.given if self.start == "given" else identity(len(self.cells))
        if self.start == "stationary":
            for kernel in self.kernels:
                law = times(law, kernel)
            law = stationary(law)
        found, always = [law], self.start == ("any" if self.phases > 1 else "stationary")
        for j in range(bounds - 1):
            found.append(law if always else times(found[-1], self.kernels[j % self.phases]))
        return found

    def links(self, bounds, longest):
        """From which bound a step leads to which: around the clock; or on and on, and from the last one to itself."""
        if self.phases > 1:
            need(bounds == self.phases, "a clock needs a bound for each of its phases")
            return [(j, (j + 1) % bounds) for j in range(bounds)]
        need(0 < bounds <= longest, "a side needs a bound, and no more of them than a series has records")
        return [(j, j + 1) for j in range(bounds - 1)] + [(bounds - 1, bounds - 1)] * (bounds < longest)

    def future(self, bounds, longest):
        """Bound j is for records with j records after them, the last one for all with more."""
        for i, j in self.links(bounds, longest):
            kernel = self.kernels[-(i + 1) % self.phases]
            yield i, j, Step(kernel, self.reached, list(permutations(self.reached, 2)))

    def past(self, at, longest):
        """Bound j is for records with j records before them, the last one for all with more."""
        alive = [living(law[0]) for law in at]
        for i, j in self.links(len(at), longest):
            kernel, law, pairs = self.kernels[i % self.phases], at[i], list(permutations(alive[j], 2))
            if self.start == "any":
                again = i == j or self.phases > 1
                need(not again or living(times(law, kernel)[0]) == alive[i], "a state dies out after the last bound")
                yield i, j, StepOfAnyLaw(kernel, alive[i], pairs, law)
                continue
            if self.given and i == j:  # each later law is the stationary one times numbers between these ratios
                need(len(alive[i]) == len(self.cells), "the first law does not come near the stationary one")
                settled = stationary(kernel)
                ratios = [Fraction(a, b) for a, b in zip(law[0][0], settled[0][0])]
                law = settled[0], settled[1] ** 2 * law[1] * max(ratios) / min(ratios)
            yield i, j, Step(backwards(law, kernel), alive[i], pairs)

    def places(self, pasts, futures, longest):
        """Which bounds of the past and the future meet at a record: of one phase, or in a series of at most longest."""
        every = product(range(pasts), range(futures))
        return [(i, j) for i, j in every if (i + j < longest if self.phases == 1 else (i + j) % self.phases == 0)]

    def factors(self, of_states, part):
        """Factors of cells from those of states: the product over a part of their records."""
        parts = [cell[part] for cell in self.cells]
        return [[over(*(of_states[a][b] for a, b in zip(one, other))) for other in parts] for one in parts]

    def reading(self, law):
        """The last step, from cells to the states of their first records; with the state of each of its rows."""
        names = [cell[0] for cell in self.cells]
        states, rows = names, identity(len(names))
        if self.start == "stationary" and len(set(names)) < len(names):
            states = sorted(set(names))
            rows = [[entry * (name == state) for entry, name in zip(law[0][0], names)] for state in states], law[1]
        alive = living(law[0])
        there = [v for v, row in enumerate(rows[0]) if any(row[c] for c in alive)]
        return Step(rows, alive, [(v, w) for v, w in permutations(there, 2) if states[v] != states[w]]), states


def holds(step, bound, factors):
    """Whether the inequality of a step holds for all of its pairs with these factors."""
    moves = step.moves(bound)
    return all(step.holds(x, x_, factors[x][x_], bound, moves) for x, x_ in step.pairs)


def sides_of(chain, claim, futures, pasts):
    """For both sides the factors of the record that a step passes, and the steps; the law at each bound of the past."""
    m, at, of_states = len(chain.cells[0]), chain.laws_at(pasts), claim.factors(chain)
    ahead, behind = (chain.factors(of_states, slice(place, place + 1)) for place in (m - 1, 0))
    return ((ahead, chain.future(futures, claim.longest)), (behind, chain.past(at, claim.longest))), at


def prove_chain(chain, proof, claim):
    bounds = [[claim.bound(each, chain) for each in proof[side]] for side in ("future", "past")]
    need(all(bounds), "a side needs a bound")
    of_step = claim.step_factor(chain)
    sides, at = sides_of(chain, claim, *map(len, bounds))
    for of_side, (loss, steps) in zip(bounds, sides):
        for i, j, step in steps:
            left = [[entry * ONE // of_step for entry in row] for row in of_side[j]]
            need(holds(step, multiplied(loss, of_side[i]), left), "a bound does not follow from the one before")
    need(tells_at_most(claim.limit, chain, *bounds, at, claim), "more than ε leaks")


def tells_at_most(limit, chain, future, past, at, claim):
    """Whether no more than the limit is told of what is hidden, by what the bounds say of all before and after it."""
    m, of_states = len(chain.cells[0]), claim.factors(chain)
    if claim.records > 1:
        most = [max(entry for bound in bounds for row in bound for entry in row) for bounds in (future, past)]
        most += [max(map(max, multiplied(of_states, claim.near)))] * claim.records
        most += [max(map(max, of_states))] * (m - claim.records)  # what a cell has beside a short stretch: any values
        return over(*most, *[claim.step_factor(chain)] * (claim.records - 1)) <= limit
    others = chain.factors(of_states, slice(1, m))
    for i, j in chain.places(len(past), len(future), claim.longest):
        step, states = chain.reading(at[i])
        step.pairs = [(v, w) for v, w in step.pairs if claim.near[states[v]][states[w]]]
        left = [[limit * ONE // of_states[x][y] for y in states] for x in states]
        if not holds(step, multiplied(others, past[i], future[j]), left):
            return False
    return True


def prove_forgetting(model, claim):
    """The closed form for n steps after which laws share an overlap: e^A = (1 - σ) e^(nd) / (1 - σ e^(nd))."""
    need(fits(model, KINDS["Markov processes that forget"]), "a class that forgets is damaged")
    need(len(model["steps"]) == len(model["overlap"]), "a class that forgets has steps without an overlap")
    each = claim.most + claim.step
    for n, overlap in zip(model["steps"], model["overlap"]):
        need(n > 0 and 0 < overlap <= 1, "an overlap is out of range")
        apart, loss = 1 - Fraction(overlap), Fraction(exp(n * each, True), ONE)
        left = claim.limit * Fraction(exp(2 * each, False), exp(claim.records * each + claim.step, True))
        if apart * loss < 1 and ((1 - apart) * loss / (1 - apart * loss)) ** 2 * ONE <= left:
            return
    raise NotProved("more than ε leaks")


# -- 5. The release --------------------------------------------------------------------------------------------------


def square(rows, k):
    need(len(rows) == k, "a matrix is of other states")
    return laws(rows, k)


def chain_of(kind, model, k):
    """The chain of a member of Θ: its kernels, what its cells are, and its first law."""
    need(kind in KINDS and fits(model, KINDS[kind]), f"{kind} are damaged, or not covered")
    start, states = model["initial_distribution"], [(x,) for x in range(k)]
    if kind == "Markov chains":
        return Chain([square(model["transition_matrix"], k)], states, start)
    if kind == "periodic Markov chains":
        kernels, step = [square(rows, k) for rows in model["matrices"]], model["step"] or "1s"
        clocks = {None: (len(kernels), 1), "hour": (24, 3600), "weekday": (7, 86400), "weekday-hour": (168, 3600)}
        phases, lasts = clocks[model["clock"]]
        units, long = {"s": 1, "min": 60, "h": 3600, "d": 86400}, re.fullmatch("([1-9][0-9]{0,5})(s|min|h|d)", step)
        need(
            long and len(kernels) == phases > 0, "a clock has other matrices than phases, or steps that are not covered"
        )
        steps = Fraction(lasts, int(long[1]) * units[long[2]])
        need(steps.denominator == 1, "a phase of a clock is no whole number of steps")
        return Chain([kernel for kernel in kernels for _ in range(int(steps))], states, start)
    if kind == "Markov chains of higher order":
        rows, order = model["tensor"], 1
        while type(rows[0][0]) is list:
            rows, order = [row for part in rows for row in part], order + 1
        cells = list(product(range(k), repeat=order))
        need(fits(rows, [[number]]) and len(rows) == len(cells), "a tensor has another shape than it must")
        following, slack = laws(rows, k)
        rows = [[law[d[-1]] * (c[1:] == d[:-1]) for d in cells] for c, law in zip(cells, following)]
        return Chain([(rows, slack)], cells, start)
    (leaves, slack), stays = square(model["exits"], k), model["stays"]
    need(len(stays) == k and all(leaves[x][x] == 0 for x in range(k)), "stays are of other states, or do not end")
    shares = [laws([[share for share, _ in kinds]], len(kinds)) for kinds in stays]
    kinds = [(x, i, Fraction(keep)) for x, of_state in enumerate(stays) for i, (_, keep) in enumerate(of_state)]
    need(all(0 <= keep < 1 for _, _, keep in kinds), "a stay goes on for ever")
    cells = [(x, keep, shares[x][0][0][i], (x, i)) for x, i, keep in kinds]
    rows = [[(1 - c[1]) * leaves[c[0]][d[0]] * d[2] + FINE**2 * c[1] * (c[3] == d[3]) for d in cells] for c in cells]
    return Chain([table(rows, slack * max(error for _, error in shares))], [cell[:1] for cell in cells], start)


def members_of(theta):
    """Kind and description of each member of Θ."""
    members, several = theta["chains"] or theta["members"], {"kind": text, "model": later, "origin": later}
    need(members and not (theta["chains"] and theta["members"]), "theta has no members, or of two kinds")
    if theta["kind"] != "mixed chains":
        return [(theta["kind"], member) for member in members]
    need(all(fits({"origin": None, **member}, several) for member in members), "a member of theta is damaged")
    return [(member["kind"], member["model"]) for member in members]


def asked(query, states):
    """What a query adds: whole numbers for each output and state, or each output and step; its unit and its labels."""
    kind, k, one = query["is"], len(states), Fraction(1)
    if kind in ("Transitions", "Switches"):
        steps = list(product(states, repeat=2))
        if kind == "Switches":
            return [[int(x != y) for x, y in steps]], one, ["switch-rate" if query["relative"] else "switches"]
        return [[int(step == other) for other in steps] for step in steps], one, [f"{x} → {y}" for x, y in steps]
    if kind == "Histogram":
        return [[int(x == y) for y in states] for x in states], one, states
    if kind == "CDF":
        return [[int(y <= x) for y in range(k)] for x in range(k - 1)], one, [f"up to {x}" for x in states[:-1]]
    if kind in ("Count", "Frequency"):
        chosen = query["states"]
        need(0 < len(set(chosen)) == len(chosen) and set(chosen) < set(states), "the query counts other states")
        return [[int(state in chosen) for state in states]], one, ["+".join(chosen)]
    values = query["values"]
    if type(values) is dict:
        need(values.keys() == {"map"} and set(values["map"]) <= {*states, "*"}, "the query has values of other states")
        values = [values["map"].get(state, values["map"].get("*")) for state in states]
    need(fits(values, [number]) and len(values) == k and any(values), "the query has no value for each state")
    parts = [Fraction(value) for value in values]
    unit = Fraction(math.gcd(*(part.numerator for part in parts)), math.lcm(*(part.denominator for part in parts)))
    return [[int(part / unit) for part in parts]], unit, [kind.lower()]


def spans(given, rows):
    """Whether rows are sums of given ones, each times a number: by taking out one entry after another."""
    known = []

    def left(row):
        for place, other in known:
            row = [a - Fraction(row[place]) * b for a, b in zip(row, other)]
        return row

    for row in map(left, given):
        place = next((i for i, entry in enumerate(row) if entry), None)
        if place is not None:
            known.append((place, [Fraction(entry) / row[place] for entry in row]))
    return not any(any(left(row)) for row in rows)


def near(one, other):
    """Whether two numbers are one, but for the last digits of a double."""
    return abs(one - other) <= abs(other) / 2**50


class Claim:
    """What a release promises: how much at most is told of so many records, and by which losses."""

    def __init__(self, release):
        made, query = release["calibration"], release["query"]
        self.release, self.states, self.epsilon = release, release["theta"]["states"], Fraction(release["epsilon"])
        need(self.epsilon > 0 and release["delta"] == 0, "epsilon must be above 0, and delta 0")
        need(1 < len(set(self.states)) == len(self.states), "states must be two or more, and different")
        self.limit, self.query = exp(self.epsilon, False), made["query"]
        kind = self.query.get("is") if type(self.query) is dict else "a function"
        need(kind in QUERIES and fits(self.query, {"is": kind, **QUERIES[kind]}), f"{kind} is damaged, or not covered")
        self.lengths(release["data"], made, release["mechanism"])
        rows, unit, labels = asked(self.query, self.states)
        relative = self.query.get("relative", kind in ("Frequency", "Mean"))
        need(
            query["divided_by"] == (made["records"] if relative else None), "it is divided by another number of records"
        )
        need(query["labels"] == labels, "the labels are not those of the query")
        need(len(release["noisy_values"]) == len(rows), "there are other values than the query has outputs")
        measured = self.noise(release, made, unit / made["records"] if relative else unit)
        if measured:
            need(kind not in ("Transitions", "Switches"), "measurements of steps are not covered")
            need(spans([*measured, [1] * len(self.states)], rows), "the outputs are not sums of what was measured")
        rows = measured or rows
        self.moves(release["counted"], rows, kind in ("Transitions", "Switches"))
        self.of_all = made["records"] * self.most + (made["records"] - 1) * self.step
        self.hidden(made["settings"], release["data"]["base"])

    def lengths(self, data, made, mechanism):
        """The steps of the longest chain, and the records of all; what is said of them in two places must agree."""
        for part, longest in ((data, data["longest_chain"]), (made, mechanism["longest_chain"])):
            chains = part["lengths"]
            need(chains and all(len(each) == 3 for each in chains), "lengths are damaged")
            need(max(steps for steps, _, _ in chains) == longest > 0, "the longest chain is not that of the lengths")
            need(sum(seen * many for _, seen, many in chains) <= part["records"], "chains have more records than all")
        self.longest, self.of_records = max(data["longest_chain"], mechanism["longest_chain"]), made["records"]
        need(0 < data["records"] <= made["records"], "the noise is for fewer records than were read")
        need(data["records"] <= data["chains"] * self.longest, "there are more records than such chains have")

    def noise(self, release, made, unit):
        """Hold all that is said of the scale against each other, and values against the grid; return measurements."""
        noise, scale = release["noise"], release["counted"]["scale"]
        need(re.fullmatch("[1-9][0-9]{0,400}(/[1-9][0-9]{0,400})?", scale), "the scale is no fraction")
        self.scale, parts = Fraction(scale), noise["measurements"]
        every = [{"scale": noise["scale"], "sharpness": 1}] if parts is None else parts
        need(every and noise["scale"] == max(each["scale"] for each in every), "the scale is not that of measurements")
        pairs = [(made["unit_scale"], self.scale), (noise["unit"], unit)]
        pairs += [(each["scale"] * each["sharpness"], self.scale * unit) for each in every]
        need(all(near(stated, exact) for stated, exact in pairs), "two scales of the noise, or two units")
        need(
            all(near(value, round(value / unit) * unit) for value in release["noisy_values"]), "values are off the grid"
        )
        for each in parts or []:
            chosen = set(each["states"])
            need(chosen <= set(self.states) and len(chosen) == len(each["states"]), "a measurement is of other states")
        return [[each["sharpness"] * (state in each["states"]) for state in self.states] for each in parts or []]

    def moves(self, counted, rows, of_steps):
        """The losses of a record from state to state, or of a step: how far they move all that got noise, over b."""
        columns = list(zip(*rows))
        adds = [[[j, weight] for j, weight in enumerate(column) if weight] for column in columns]
        need(counted["adds"] == [adds] and counted["of"] == [], "counted is not what the query counts")
        need(counted["each"] == ("step" if of_steps else "record"), "counted counts something else than the query")
        moved = [[Fraction(sum(abs(a - b) for a, b in zip(x, y))) / self.scale for y in columns] for x in columns]
        largest, nothing = max(map(max, moved)), [[Fraction(0)] * len(self.states)] * len(self.states)
        self.losses = nothing if of_steps else moved
        self.most, self.step = (Fraction(0), largest) if of_steps else (largest, Fraction(0))

    def hidden(self, settings, base):
        """What is hidden, by the settings; the release's own sentence must say the same."""
        of_mechanism = {"max_quilt_length", "max_quilts", "support"}  # how it searches; nothing of what is hidden
        need(type(settings) is dict and settings.keys() <= {"protect", "within", *of_mechanism}, "unknown settings")
        protect, within = settings.get("protect", 1), settings.get("within")
        need(fits(protect, (whole, "subject")) and fits(within, (None, [[text]])), "a protection is not covered")
        self.records = self.longest if protect == "subject" else protect
        need(0 < self.records <= 10**6, "nothing is hidden, or too long a stretch")
        self.cut = base is not None and base["gaps"] != "unobserved"
        need(protect == 1 or not self.cut, "a stretch may go over gaps, which cut the chains here")
        pairs = [set(pair) for pair in within or []]
        need(within is None or pairs, "no pair of states is hidden")
        need(all(len(p) == len(q) == 2 and p <= set(self.states) for p, q in zip(pairs, within or [])), "no such pair")
        told = re.escape("; ".join(map(" or ".join, (within or [])[:4])) + "; …" * (len(within or []) > 4))
        self.near = [[ONE * (within is None or x == y or {x, y} in pairs) for y in self.states] for x in self.states]
        what, every = (
            f"any stretch of {protect} steps in a row of one subject",
            "such stretch, every two courses it can take",
        )
        if protect == 1:
            what, every = (
                "any one record (the state of one subject at one time)",
                "record, every two values it can have",
            )
        if protect == "subject":
            what, every = "the whole series of one subject", "subject, every two courses it can take"
        lasts, among = (
            r"( \([^()]*, where no step takes less than [^()]*\))?",
            "" if within is None else rf" that [a-z ]+ pairs that are named \({told}\)",
        )
        changes = "has one value as if it has another" if protect == 1 else "takes one course as if it takes another"
        sentence = (
            rf"Whatever is released here is at most e\^([0-9.e-]+)(?: ≈ ([0-9.e+]+))? times as likely if "
            rf"{re.escape(what)}{lasts} {changes}, for every {every}{among}, and every distribution in Θ, the records' "
            "correlation with each other included."
        )
        promise = re.fullmatch(sentence, self.release["promise"])
        need(promise and Fraction(promise[1]) >= self.epsilon, "the promise says something else than what is proved")
        about = Fraction(promise[2] or Fraction(self.limit, ONE)) * ONE
        need(abs(about - self.limit) * 100 < self.limit, "the promise says another factor than its epsilon")
        named = "" if within is None else f", between these states only: {told}"
        need(re.fullmatch(re.escape(what) + lasts + named, self.release["hides"]), "hides says something else")
        self.hides = f"{what} {changes}" + ("" if within is None else f", between the values of these pairs: {within}")

    def bound(self, rows, chain):
        """A bound of the proof: n stands for the factor 1 + n / 10^digits; from a cell to itself it is 1."""
        size = range(len(chain.cells))
        need([len(row) for row in rows] == [len(size)] * len(size), "a bound is of other states")
        need(not any(rows[x][x] for x in size), "a bound is not 0 from a state to itself")
        return [[ONE + n * 10 ** (18 - self.digits) for n in row] for row in rows]

    def step_factor(self, chain):
        """The factor of a step between two cells; where cells hold several records these pay for their steps."""
        return exp(self.step, True) if len(chain.cells[0]) == 1 else ONE

    def factors(self, chain):
        """Factors of a record that goes from state to state, and of both of its steps where nothing else pays them."""
        steps = 0 if len(chain.cells[0]) == 1 else 2 * self.step
        known = {loss: exp(loss + steps, True) for loss in {loss for row in self.losses for loss in row}}
        return [[ONE if x == y else known[loss] for y, loss in enumerate(row)] for x, row in enumerate(self.losses)]


def prove(claim, proof):
    """Check the proof of every member of Θ."""
    claim.digits, members = proof["digits"], members_of(claim.release["theta"])
    need(claim.digits <= 18 and len(proof["members"]) == len(members), "the proof is of other members of Θ")
    for i, ((kind, member), brought) in enumerate(zip(members, proof["members"])):
        try:
            if brought is not None:
                prove_chain(chain_of(kind, member, len(claim.states)), brought, claim)
            elif claim.of_all > claim.epsilon:
                need(kind == "Markov processes that forget", "the losses of all records together are more than ε")
                prove_forgetting(member, claim)
        except NotProved as error:
            raise NotProved(f"theta[{i}]: {error}") from None


def main(release, proof, model=None):
    claim = Claim(read(release, RELEASE, "release"))
    prove(claim, read(proof, PROOF, "proof"))
    theta, kind = claim.release["theta"], claim.query["is"]
    digest = hashlib.sha256(json.dumps(theta, sort_keys=True, default=str).encode()).hexdigest()
    whose = f"its digest is {digest[:16]}; name a model to compare it with"
    if model is not None:
        given = read(model, later, "model")
        need(all(given[name] == part for name, part in theta.items()), "Θ is not that of the model")
        whose = f"that of {model}"
    cut = ", where gaps cut a series into independent ones" if claim.cut else ""
    print(f"""PROVED: this release of {kind}, by itself, is at most e^{claim.epsilon} times as likely if {claim.hides};
under every member of Θ, {len(theta["chains"] or theta["members"])} of {theta["kind"]} ({whose}),
in series of at most {claim.longest:,} steps, with {claim.of_records:,} records in all{cut};
by noise of the law {claim.release["noise"]["law"]}, scale/unit = {claim.scale}.
NOT CHECKED: that such noise was drawn, once, and added to the true numbers; the table, how it was read, and whether Θ
describes it; other releases of the same records; {", ".join(fields_unseen(RELEASE))}.""")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:
        print(f"NOT PROVED: {error if type(error) is NotProved else f'a file is not what it must be: {error!r}'}")
        sys.exit(1)
