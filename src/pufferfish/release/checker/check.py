"""Check the proof of a pufferfish release: python check.py release.json proof.json [model.json].

The release says what was asked, of which chains, with which noise; the proof brings bounds on what earlier and later
records tell. All else is computed again from the release, in whole numbers and fractions: neither rounding nor a search
nor any line of the program that made the proof has to be right. docs/proofs/certificate.md has the theorem and explains
each part. Exit code 0: PROVED, and what. 1: NOT PROVED, and why. 2: called wrongly. Needs Python 3.9, nothing else.
check_networks.py and check_more.py, which use this file, cover Bayesian networks, rarer chains and queries, and several
releases together.
"""

import hashlib
import json
import math
import re
import sys
from fractions import Fraction
from itertools import permutations, product, zip_longest

ONE = 10**18  # the factor 1: factors are whole numbers over ONE, rounded up
FINE = 10**40  # finer, for what is rounded on the way


class NotProved(Exception):
    """Why nothing is proved."""


def need(true, why):
    if not true:
        raise NotProved(why)


# -- 1. Reading: every key once and no other, every value of its type, numbers exact ---------------------------------

UNSEEN, LATER = object(), object()  # nothing is asked of it; it is looked at below
WHOLE = range(2**63)
LOOSE = (WHOLE,)  # it only has to go with the rest
NUMBER = (int, Fraction)
MORE = "; check_more.py covers more"  # check_networks.py is a part of it
LAW = "discrete Laplace, P(Z = z) ∝ exp(-|z| unit/scale)"


def keys(names, **others):
    """The schema of an object: nothing is asked of some keys."""
    return {**dict.fromkeys(names.split(), UNSEEN), **others}


MEASUREMENT = {"states": [str], "scale": NUMBER, "sharpness": WHOLE}
RELEASE = keys(
    "created software warnings values postprocessing quantiles accuracy_95 promises not_promised assumptions checked "
    "ledger",
    **{"format": "pufferfish-release", "version": 4, "noisy_values": [NUMBER], "epsilon": NUMBER, "delta": NUMBER},
    **{"hides": str, "promise": str, "groups": None, "subjects": None},
    query=keys("kind description lipschitz", labels=[str], divided_by=(None, WHOLE)),
    noise=keys("noise_multiplier", law=LAW, scale=NUMBER, unit=NUMBER, measurements=(None, [MEASUREMENT])),
    counted={"each": str, "of": [str], "adds": [[[[int]]]], "factors": None, "scale": str},
    mechanism=keys("name title leakage witness", secrets=None, longest_chain=LOOSE),
    data=keys(
        "base subjects places steps usual_step clock_changes",
        **{"chains": LOOSE, "records": LOOSE, "longest_chain": LOOSE, "lengths": [[LOOSE]]},
        **{"rows": None, "observed": None},
    ),
    theta=keys("origin names", states=[str], kind=str, chains=[LATER], members=[LATER]),
    calibration=keys("places", unit_scale=NUMBER, query=LATER, settings=LATER, lengths=[[LOOSE]], records=LOOSE),
)
BOUNDS = {"future": [[[WHOLE]]], "past": [[[WHOLE]]]}
MOVES = {**BOUNDS, "moves": {"future": [[[WHOLE]]], "past": [[[WHOLE]]]}}
PROOF = {"format": "pufferfish-proof", "version": 1, "digits": WHOLE, "members": [(None, BOUNDS, MOVES)]}


def fits(value, schema):
    """Whether a value has the type, the keys or the entries that a schema says; a tuple is a choice."""
    if type(schema) is tuple:
        return any(fits(value, each) for each in schema)
    if type(schema) is dict:
        return type(value) is dict and value.keys() == schema.keys() and all(fits(value[k], schema[k]) for k in schema)
    if type(schema) is list:
        return type(value) is list and all(fits(each, schema[0]) for each in value)
    if type(schema) is range:
        return type(value) is int and value in schema
    if isinstance(schema, type):
        return type(value) is schema
    return schema in (UNSEEN, LATER) or (type(value) is type(schema) and value == schema)


def fields_unseen(schema, path=""):
    """The fields of which nothing is asked, or only that they go with the rest."""
    while type(schema) is list:
        (schema,) = schema
    parts = schema.items() if type(schema) is dict else []
    inner = [name for key, part in parts for name in fields_unseen(part, f"{path}.{key}".strip("."))]
    return [path] if schema is UNSEEN or schema is LOOSE else inner


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
    parts = schema if type(schema) is dict and type(value) is dict and value.keys() == schema.keys() else {}
    wrong = ", ".join(key for key in parts if not fits(value[key], schema[key]))
    need(fits(value, schema), f"the {what} is damaged, or of a version or kind that is not covered: {wrong}")
    return value


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# -- 2. Numbers ------------------------------------------------------------------------------------------------------


def exp(x, up):
    """e^x for a fraction x >= 0, over ONE, rounded up or down: a sum of Taylor's at x / 2^h, squared h times."""
    need(0 <= x < 700, "a loss is out of range")
    halvings = math.ceil(x).bit_length() + 8
    term = total = Fraction(1)
    for n in range(1, 16):
        term *= Fraction(x) / 2**halvings / n
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


def entrywise(make, *parts):
    """What is made of entries in the same place of matrices, or of lists of them."""
    return [entrywise(make, *each) for each in zip(*parts)] if type(parts[0]) is list else make(*parts)


def multiplied(*matrices):
    return [[over(*entries) for entries in zip(*rows)] for rows in zip(*matrices)]


def dot(one, other):
    return sum(a * b for a, b in zip(one, other))


def law(row, length):
    """Probabilities as whole numbers in their proportions, whatever their sum is; it must be nearly 1."""
    need(len(row) == length and min(row) >= 0 and abs(sum(row) - 1) * 10**8 < 1, "a row of Θ is no probability law")
    common = math.lcm(*(Fraction(entry).denominator for entry in row))
    return [int(entry * common) for entry in row]


def laws(rows, length):
    need(len(rows) == length, "a matrix is of other states")
    return [law(row, length) for row in rows]


def stationary(rows):
    """The only law that stays as it is, each entry over its row's sum: cells are taken out one after another."""
    rates, taken_out, before = [list(row) for row in rows], [], 1
    for n in reversed(range(1, len(rows))):
        leaves = sum(rates[n][:n])
        need(leaves > 0, "a chain has no single stationary law with every state in it")
        taken_out.insert(0, (leaves, [rates[i][n] for i in range(n)]))
        for i, j in product(range(n), repeat=2):
            rates[i][j] = (rates[i][j] * leaves + rates[i][n] * rates[n][j]) // before
        before = leaves
    mass = [1]
    for leaves, into in taken_out:
        mass = [leaves * entry for entry in mass] + [dot(mass, into)]
    stays = all(dot(mass, column) == entry * sum(row) for entry, row, column in zip(mass, rows, zip(*rows)))
    need(stays and min(mass) > 0, "a chain has no single stationary law with every state in it")
    return mass


# -- 3. The one inequality: p·v ≤ factor q·v for all v > 0 with v(y) ≤ R(y, z) v(z) ----------------------------------


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
    """What R says of cells gives a factor to each two rows. The true ones are these times numbers from 1 to slack."""

    def __init__(self, rows, slack=1, alive=None, pairs=None):
        self.rows, self.error = rows, Fraction(slack) ** 2
        self.alive = range(len(rows[0])) if alive is None else alive
        self.pairs = list(permutations(range(len(rows)), 2)) if pairs is None else pairs

    def moves(self, bound):
        return sorted((bound[y][z], y, z) for y, z in permutations(self.alive, 2))

    def cases(self, x, x_):
        """All p and q of which p·v ≤ factor q·v is asked."""
        ours, others = sum(self.rows[x]), sum(self.rows[x_])
        yield [a * others for a in self.rows[x]], [a * ours for a in self.rows[x_]]

    def holds(self, x, x_, factor, bound, moves):
        least = math.floor(factor / self.error)
        scaled = (([a * ONE for a in p], [a * least for a in q]) for p, q in self.cases(x, x_))
        return all(covers(p, q, moves) for p, q in scaled)

    def all_hold(self, bound, factors, named=()):
        """Whether it holds for all pairs; for some of them moves are named, which are made before all others."""
        moves, first = self.moves(bound), {}
        for x, x_, *ends in named:
            need({*ends} <= {*self.alive} and len(ends) % 2 == 0, "a named move is none, or of a cell no record has")
            first[x, x_] = [(bound[y][z], y, z) for y, z in zip(ends[::2], ends[1::2])]
        return all(self.holds(x, y, factors[x][y], bound, first.get((x, y), []) + moves) for x, y in self.pairs)


# -- 4. Chains: which inequalities bound what later and earlier records tell -----------------------------------------


class Chain:
    """A stationary Markov chain of cells, each of which has a state; rows are in whole numbers."""

    paid = 0  # how many of its steps a record pays for; otherwise bounds do when one follows from another

    def __init__(self, rows, states):
        self.rows, self.states = rows, states
        mass = stationary(rows)
        self.mass, self.slack = [entry * FINE**2 // max(mass) for entry in mass], 1 + Fraction(1, FINE)
        need(min(self.mass) > FINE, "a state is too rare to be followed")

    def links(self, bounds, longest):
        """From which bound a step leads to which; from the last one to itself if a series may be longer."""
        need(0 < bounds <= longest, "a side needs a bound, and no more of them than a series has records")
        return [(j, j + 1) for j in range(bounds - 1)] + [(bounds - 1, bounds - 1)] * (bounds < longest)

    def future(self, bounds, longest):
        """Bound j is for records with j records after them, the last one for all with more."""
        step = Step(self.rows)
        return [(i, j, step) for i, j in self.links(bounds, longest)]

    def past(self, bounds, longest):
        """Bound j is for records with j records before them: row x is the law of the cell before cell x."""
        step = Step([[mass * p for mass, p in zip(self.mass, into)] for into in zip(*self.rows)], self.slack)
        return [(i, j, step) for i, j in self.links(bounds, longest)]

    def told(self, pasts, futures, longest):
        """The bounds that meet at a record of a series; the laws of its cell, given its state, and these states."""
        states, law = sorted(set(self.states)), [mass * sum(row) for mass, row in zip(self.mass, self.rows)]
        step = Step([[mass * (state == x) for mass, state in zip(law, self.states)] for x in states], self.slack)
        return [(i, j, step, states) for i, j in product(range(pasts), range(futures)) if i + j < longest]

    def losses(self, claim):
        """Factors of what a record tells the future and the past, besides others in its cell, and of a step."""
        of_states = claim.factors(self.paid)
        of_cells = [[of_states[a][b] for b in self.states] for a in self.states]
        return of_cells, of_cells, [[ONE] * len(row) for row in of_cells], exp(claim.step, True)

    def of_stretch(self, claim):
        """The losses of the records and steps of a stretch, at most."""
        return claim.records * claim.most_near + (claim.records - 1) * claim.step

    def prove(self, proof, claim):
        need(proof is not None, "the losses of all records together are more than ε")
        futures, pasts = ([claim.bound(rows, len(self.states)) for rows in proof[side]] for side in ("future", "past"))
        ahead, behind, _, of_step = self.losses(claim)
        named = proof.get("moves", {"future": [], "past": []})
        future = futures, ahead, self.future(len(futures), claim.longest), named["future"]
        past = pasts, behind, self.past(len(pasts), claim.longest), named["past"]
        for bounds, loss, steps, moves in (future, past):
            for (i, j, step), of_step_moves in zip_longest(steps, moves, fillvalue=()):
                least = [[entry * ONE // of_step for entry in row] for row in bounds[j]]
                follows = step.all_hold(multiplied(loss, bounds[i]), least, of_step_moves)
                need(follows, "a bound does not follow from the one before")
        need(self.tells_at_most(claim.limit, futures, pasts, claim), "more than ε leaks")

    def tells_at_most(self, limit, futures, pasts, claim):
        """Whether no more is told of what is hidden, by what the bounds say of all before and after it."""
        if claim.records > 1:
            most = [max(entry for bound in bounds for row in bound for entry in row) for bounds in (futures, pasts)]
            return over(exp(self.of_stretch(claim), True), *most) <= limit
        beside, of_states = self.losses(claim)[2], claim.factors(self.paid)
        for i, j, step, states in self.told(len(pasts), len(futures), claim.longest):
            step.pairs = [(v, w) for v, w in step.pairs if claim.near[states[v]][states[w]]]
            least = [[limit * ONE // of_states[x][y] for y in states] for x in states]
            if not step.all_hold(multiplied(pasts[i], futures[j], beside), least):
                return False
        return True


def rows_of_stays(model, k):
    """Rows between cells, each a state and its kind of stay, drawn whenever it is entered; and the state of each."""
    leaves, stays = laws(model["exits"], k), model["stays"]
    need(len(stays) == k and not any(leaves[x][x] for x in range(k)), "stays are of other states, or do not end")
    shares = [law([share for share, _ in kinds], len(kinds)) for kinds in stays]
    cells = [(x, i, Fraction(keep)) for x, kinds in enumerate(stays) for i, (_, keep) in enumerate(kinds)]
    need(all(0 <= keep < 1 for _, _, keep in cells), "a stay goes on for ever")

    def goes(c, d):
        enters = Fraction(leaves[c[0]][d[0]], sum(leaves[c[0]])) * Fraction(shares[d[0]][d[1]], sum(shares[d[0]]))
        return (1 - c[2]) * enters + c[2] * (c == d)

    return laws([[goes(c, d) for d in cells] for c in cells], len(cells)), [x for x, _, _ in cells]


# -- 5. The release --------------------------------------------------------------------------------------------------

STAYS = {"exits": [[NUMBER]], "stays": [[[NUMBER]]], "initial_distribution": "stationary"}
MARKOV = {"transition_matrix": [[NUMBER]], "initial_distribution": "stationary"}
# Kinds of members of Θ: their schema, and what makes a chain of them. check_more.py adds some, here and to QUERIES.
KINDS = {
    "Markov chains": (MARKOV, lambda model, k: Chain(laws(model["transition_matrix"], k), range(k))),
    "chains with several kinds of stay": (STAYS, lambda model, k: Chain(*rows_of_stays(model, k))),
}


def members_of(theta):
    """Kind and description of each member of Θ."""
    members, several = theta["chains"] or theta["members"], {"kind": str, "model": LATER, "origin": LATER}
    need(members and not (theta["chains"] and theta["members"]), "theta has no members, or of two kinds")
    if theta["kind"] != "mixed chains":
        return [(theta["kind"], member) for member in members]
    need(all(fits({"origin": None, **member}, several) for member in members), "a member of theta is damaged")
    return [(member["kind"], member["model"]) for member in members]


def chosen(states, among):
    need(len(set(states)) == len(states) and set(states) <= set(among), "other states are counted, or one twice")
    return [int(state in states) for state in among]


def histogram(query, states):
    return [[int(x == y) for y in states] for x in states], 1, states


def count(query, states):
    row = chosen(query["states"], states)
    need(0 < sum(row) < len(row), "the query counts nothing, or all")
    return [row], 1, ["+".join(query["states"])]


def total(query, states):
    values = query["values"]
    if type(values) is dict:
        need(values.keys() == {"map"} and set(values["map"]) <= {*states, "*"}, "the query has values of other states")
        values = [values["map"].get(state, values["map"].get("*")) for state in states]
    need(fits(values, [NUMBER]) and len(values) == len(states) and any(values), "the query has no value for each state")
    parts = [Fraction(value) for value in values]
    unit = Fraction(math.gcd(*(part.numerator for part in parts)), math.lcm(*(part.denominator for part in parts)))
    return [[int(part / unit) for part in parts]], unit, [query["is"].lower()]


def transitions(query, states):
    steps = list(product(states, repeat=2))
    return [[int(step == other) for other in steps] for step in steps], 1, [f"{x} → {y}" for x, y in steps]


# Queries: their schema, and what gives whole numbers for each output and state (or step), their unit, and the labels.
QUERIES = {
    "Histogram": ({"relative": bool}, histogram), "Transitions": ({"relative": bool}, transitions),
    "Count": ({"states": [str]}, count), "Frequency": ({"states": [str]}, count),
    "Sum": ({"values": LATER}, total), "Mean": ({"values": LATER}, total),
}  # fmt: skip


def rank(rows):
    rows, found = [list(map(Fraction, row)) for row in rows], 0
    while rows:
        first = rows.pop()
        place = next((i for i, entry in enumerate(first) if entry), None)
        if place is not None:
            found += 1
            rows = [[a - b * row[place] / first[place] for a, b in zip(row, first)] for row in rows]
    return found


def added(columns):
    """What each column adds to which numbers."""
    return [[[j, weight] for j, weight in enumerate(column) if weight] for column in columns]


def near(one, other):
    """Whether two numbers are one, but for the last digits of a double."""
    return abs(one - other) <= abs(other) / 2**50


class Claim:
    """What a release promises: how much at most is told of so many records, and by which losses."""

    form = RELEASE

    def __init__(self, release):
        made, query, self.states = release["calibration"], release["query"], release["theta"]["states"]
        self.release, self.query, self.epsilon = release, made["query"], Fraction(release["epsilon"])
        need(self.epsilon > 0 and release["delta"] == 0, "epsilon must be above 0, and delta 0")
        need(1 < len(set(self.states)) == len(self.states), "states must be two or more, and different")
        need(type(self.query) is dict, "a query of somebody's own is not covered")
        self.limit, self.kind = exp(self.epsilon, False), self.query.get("is")
        self.lengths(release["data"], made, release["mechanism"]["longest_chain"])
        rows, unit, labels, over_all = self.asked(self.query, self.states, self.of_records)
        need(query["divided_by"] == over_all, "it is divided by another number of records")
        need(query["labels"] == labels, "the labels are not those of the query")
        need(len(release["noisy_values"]) == len(rows), "there are other values than the query has outputs")
        rows = self.noise(release, rows, Fraction(unit) / (over_all or 1))
        losses = self.moves(release["counted"], rows, len(rows[0]) > len(self.states))
        self.hidden(made["settings"], release["data"]["base"])
        self.pays(*losses)

    def asked(self, query, states, records):
        """What each state, or step, adds to each output; the unit, the labels, and by what shares are divided."""
        kind = query.get("is")
        need(kind in QUERIES, f"a query that is not covered: {kind}{MORE}")
        schema, adds = QUERIES[kind]
        need(fits(query, {"is": str, **schema}), f"{kind} is damaged")
        relative = query.get("relative", kind in ("Frequency", "Mean"))
        return (*adds(query, states), records if relative else None)

    def lengths(self, data, made, longest_of_noise):
        """The steps of the longest chain, and the records of all."""
        self.longest = max(data["longest_chain"], longest_of_noise)
        for part, longest in ((data, data["longest_chain"]), (made, longest_of_noise)):
            need(part["lengths"], "no series of records have lengths")
            need(max(steps for steps, _, _ in part["lengths"]) == longest > 0, "the longest chain has another length")
            # the shortest ones need not be listed
            need(sum(seen * many for _, seen, many in part["lengths"]) <= part["records"], "lengths of more records")
        self.of_records = made["records"]
        need(0 < data["records"] <= self.of_records, "the noise is for fewer records than were read")
        need(data["records"] <= data["chains"] * self.longest, "there are more records than such chains have")

    def noise(self, release, rows, unit):
        """Hold all that is said of the scale against each other, and values against the grid; return what got noise."""
        noise, scale = release["noise"], release["counted"]["scale"]
        need(re.fullmatch("[1-9][0-9]{0,400}(/[1-9][0-9]{0,400})?", scale), "the scale is no fraction")
        self.scale, parts = Fraction(scale), noise["measurements"]
        every = [{"scale": noise["scale"], "sharpness": 1}] if parts is None else parts
        need(every and noise["scale"] == max(each["scale"] for each in every), "the scale is not that of measurements")
        pairs = [(release["calibration"]["unit_scale"], self.scale), (noise["unit"], unit)]
        pairs += [(each["scale"] * each["sharpness"], self.scale * unit) for each in every]
        need(all(near(stated, exact) for stated, exact in pairs), "two scales of the noise, or two units")
        on_grid = all(near(value, round(value / unit) * unit) for value in release["noisy_values"])
        need(on_grid, "values are off the grid")
        if parts is None:
            return rows
        need(len(rows[0]) == len(self.states), "measurements of steps are not covered")
        measured = [[each["sharpness"] * entry for entry in chosen(each["states"], self.states)] for each in parts]
        known = [*measured, [1] * len(self.states)]
        need(rank(known + rows) == rank(known), "the outputs are not sums of what was measured")
        return measured

    def moves(self, counted, rows, of_steps):
        """The losses of a record from state to state, and of a step: how far they move all that got noise, over b."""
        columns = list(zip(*rows))
        need(counted["adds"] == [added(columns)] and counted["of"] == [], "counted is not what the query counts")
        need(counted["each"] == ("step" if of_steps else "record"), "counted counts something else than the query")
        moved = self.moved(columns)
        return ([[0] * len(self.states)] * len(self.states), max(map(max, moved))) if of_steps else (moved, 0)

    def moved(self, columns):
        return [[Fraction(sum(abs(a - b) for a, b in zip(x, y))) / self.scale for y in columns] for x in columns]

    def hidden(self, settings, base):
        """What is hidden, by the settings; the release's own sentence must say the same."""
        of_mechanism = {"max_quilt_length", "max_quilts", "support"}  # how it searches; nothing of what is hidden
        need(type(settings) is dict and settings.keys() <= {"protect", "within", *of_mechanism}, "unknown settings")
        protect, within = settings.get("protect", 1), settings.get("within")
        need(fits(protect, (WHOLE, "subject")) and fits(within, (None, [[str]])), "a protection is not covered")
        self.records = self.longest if protect == "subject" else protect
        self.cut = base is not None and base["gaps"] != "unobserved"
        need(self.records > 0 and (protect == 1 or not self.cut), "a stretch over gaps, which cut the chains, or none")
        need(within is None or within, "no pair of states is hidden")
        need(all(sum(chosen(pair, self.states)) == 2 for pair in within or []), "no such pair of states")
        pairs = [{*pair} for pair in within or product(self.states, repeat=2)]
        self.near = [[{x, y} in pairs for y in self.states] for x in self.states]
        told = "; ".join(" or ".join(pair) for pair in (within or [])[:4]) + "; …" * (len(within or []) > 4)
        self.words(protect, told)
        self.hides += f", between the values of these pairs: {within}" if within else ""

    def words(self, protect, near):
        """The sentences of what is hidden, made again."""
        changes, differ, every = "takes one course as if it takes another", "differ by", "every two courses it can take"
        if protect == 1:
            what, one = "any one record (the state of one subject at one time)", "record"
            changes, differ, every = "has one value as if it has another", "are", "every two values it can have"
        elif protect == "subject":
            what, one = "the whole series of one subject", "subject"
        else:
            what, one = f"any stretch of {protect:,} steps in a row of one subject", "such stretch"
        among = f" that {differ} pairs that are named ({near})" if near else ""
        only = f", between these states only: {near}" if near else ""
        lasts = r"( \([^()]*, where no step takes less than [^()]*\))?"
        hides = re.fullmatch(re.escape(what) + lasts + re.escape(only), self.release["hides"])
        need(hides, "hides says something else")
        self.promised(f"if {what}{hides[1] or ''} {changes}, for every {one}, {every}{among}, and every")
        self.hides = f"{what} {changes}"

    def promised(self, about):
        """The sentence of the promise, with an ε that is no smaller."""
        most = r"Whatever is released here is at most e\^([0-9.e-]+)(?: ≈ ([0-9.e+]+))? times as likely "
        rest = f"{about} distribution in Θ, the records' correlation with each other included."
        promise = re.fullmatch(most + re.escape(rest), self.release["promise"])
        need(promise and Fraction(promise[1]) >= self.epsilon, "the promise says something else than what is proved")
        factor = Fraction(promise[2] or Fraction(self.limit, ONE)) * ONE
        need(abs(factor - self.limit) * 100 < self.limit, "the promise says another factor than its epsilon")

    def extent(self):
        """Of how many records it is."""
        cut = ", where gaps cut a series into independent ones" if self.cut else ""
        return f"in series of at most {self.longest:,} steps, with {self.of_records:,} records in all{cut}"

    def pays(self, losses, step):
        self.losses, self.step, self.most = losses, step, max(map(max, losses))
        self.most_near = max(max(loss * is_near for loss, is_near in zip(*rows)) for rows in zip(losses, self.near))
        self.of_all = self.of_records * self.most + (self.of_records - 1) * step

    def factors(self, steps):
        """Factors of a record that goes from state to state, with so many of its steps; of one that does not, 1."""
        losses = {loss for row in self.losses for loss in row}
        known = {loss: exp(loss + steps * self.step, True) for loss in losses}
        return [[ONE if x == y else known[loss] for y, loss in enumerate(row)] for x, row in enumerate(self.losses)]

    def bound(self, rows, size):
        """A bound of the proof: n stands for the factor 1 + n / 10^digits; from a cell to itself it is 1."""
        need([len(row) for row in rows] == [size] * size, "a bound is of other states")
        need(not any(rows[x][x] for x in range(size)), "a bound is not 0 from a state to itself")
        return [[ONE + n * 10 ** (18 - self.digits) for n in row] for row in rows]


def prove(claim, proof):
    """Check the proof of every member of Θ; without bounds the losses of all records together must be enough."""
    claim.digits, members = proof["digits"], members_of(claim.release["theta"])
    need(claim.digits <= 18 and len(proof["members"]) == len(members), "the proof is of other members of Θ")
    for i, ((kind, model), brought) in enumerate(zip(members, proof["members"])):
        try:
            if brought is not None or claim.of_all > claim.epsilon:
                model_of(kind, model, len(claim.states)).prove(brought, claim)
        except NotProved as error:
            raise NotProved(f"theta[{i}]: {error}") from None


def model_of(kind, model, k):
    """What has a proof: a chain, or what check_more.py knows."""
    schema, make = KINDS.get(kind, ((), None))
    need(fits(model, schema), f"{kind} that are damaged, or not covered{MORE}")
    return make(model, k)


CLAIMS = {}  # kinds of Θ whose releases have another form. check_networks.py adds one.


def claim_of(content):
    """What the text of a release promises."""
    kind = parsed(content, LATER, "release")["theta"]["kind"]
    need(
        kind in CLAIMS or kind != "Bayesian networks",
        "Bayesian networks are not covered; check_networks.py covers them",
    )
    make = CLAIMS.get(kind, Claim)
    return make(parsed(content, make.form, "release"))


def statement(claim, what, path=None):
    """What is proved, of what, and what was not looked at; Θ is compared with that of a model file, if there is one."""
    theta = claim.release["theta"]
    digest = hashlib.sha256(json.dumps(theta, sort_keys=True, default=str).encode()).hexdigest()
    whose = f"its digest is {digest[:16]}; name a model to compare it with"
    if path is not None:
        model, whose = parsed(text_of(path), LATER, "model"), f"that of {path}"
        need(all(model[name] == part for name, part in theta.items()), "Θ is not that of the model")
    most = f"e^{claim.epsilon}" if claim.epsilon.denominator == 1 else f"e^({claim.epsilon})"
    return f"""PROVED: {what} at most {most} times as likely
if {claim.hides};
under every member of Θ, {len(members_of(theta))} of {theta["kind"]} ({whose}),
{claim.extent()};
by noise of the law {LAW}, scale/unit = {claim.scale}.
NOT CHECKED: that such noise was drawn, once, and added to the true numbers; the table, how it was read, and whether Θ
describes it; other releases of the same records; {", ".join(fields_unseen(claim.form))}."""


def main(release, proof, model=None):
    claim = claim_of(text_of(release))
    prove(claim, parsed(text_of(proof), PROOF, "proof"))
    print(statement(claim, f"this release of {claim.kind}, by itself, is", model))


def run(check, *files):
    if len(files) < 2 or (check is main and len(files) > 3):
        print("usage: python check.py RELEASE PROOF [MODEL]")
        print("totals: python check_more.py RELEASE RELEASE … PROOF [MODEL]")
        sys.exit(2)
    try:
        check(*files)
    except Exception as error:
        print(f"NOT PROVED: {error if type(error) is NotProved else f'a file is not what it must be: {error!r}'}")
        sys.exit(1)


if __name__ == "__main__":
    run(main, *sys.argv[1:])
