"""Check the proof of pufferfish releases of rarer kinds, or of several: python check_more.py FILES.

It uses check.py, which stands beside it. FILES are a release and its proof, or several releases of the same records and
the proof of their total, and the model if it is there. Over check.py it covers clocks, chains of higher order, given
first laws, all first laws ("any"), classes that forget, and the queries CDF and Switches. Prints and exits as check.py.
"""

import os
import sys
from copy import copy
from fractions import Fraction
from itertools import combinations, permutations, product
from math import ceil, floor, isqrt
from re import fullmatch

if __package__:
    from . import check, check_networks
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    try:
        import check
        import check_networks  # noqa: F401  (networks enter themselves into the tables of check.py)
    except ModuleNotFoundError as error:
        print(f"check_more.py needs {error.name}.py beside it; pufferfish checker writes all of them")
        sys.exit(2)

from_check = check.ONE, check.FINE, check.need, check.dot, check.exp, check.fits, check.laws, check.NUMBER
ONE, FINE, need, dot, exp, fits, laws, NUMBER = from_check

# -- 1. Probabilities over FINE, rounded down, with a slack: true entries are what stands there, up to slack times that


def table(rows, slack=1):
    down = [[floor(entry) for entry in row] for row in rows]
    least = min((small for row, floors in zip(rows, down) for entry, small in zip(row, floors) if entry), default=FINE)
    need(least > 10**20, "a probability is too small to be followed")
    return down, Fraction(ceil(slack * (1 + Fraction(1, least)) * FINE), FINE)


def probabilities(rows):
    return table([[Fraction(entry * FINE, sum(row)) for entry in row] for row in rows])


def identity(k):
    return [[FINE * (x == y) for y in range(k)] for x in range(k)], 1


def times(one, other):
    product_of = [[Fraction(dot(row, column), FINE) for column in zip(*other[0])] for row in one[0]]
    return table(product_of, one[1] * other[1])


def stationary(kernel):
    """By the sums over trees that it is made of, each entry is off by the slack of one entry for each other cell.

    Cells that others do not lead to have none of it: all lead to those of the only closed class, and these to no other.
    """
    rows, slack = kernel
    follow = [{y for y, entry in enumerate(row) if entry} for row in rows]
    for _ in rows:
        follow = [some.union(*(follow[y] for y in some)) for some in follow]
    closed = sorted(set.intersection(*follow))
    mass = check.stationary([[rows[x][y] for y in closed] for x in closed])
    of_all = dict(zip(closed, mass))
    return table([[Fraction(of_all.get(x, 0) * FINE, max(mass)) for x in range(len(rows))]], slack ** (len(mass) - 1))


def living(rows):
    """The places where some row has mass; all others have no part, neither in pairs nor in moves."""
    return [place for place, column in enumerate(zip(*rows)) if any(column)]


# -- 2. Chains with a clock, of higher order, with a given first law, or any ------------------------------------------


PARTS = 16  # over the number of cells: into so many parts what lies between two laws is cut at most


def between(one, other):
    """Pairs of neighbours among laws from one to another, or one twice, each with what follows from it."""
    apart = max(Fraction(max(a, b), min(a, b)) if a and b else 1 for a, b in zip(one[0], other[0]))
    parts = max(1, min(PARTS // len(one[0]), ceil(4 * (apart - 1))))
    laws = [[[(parts - n) * a + n * b for a, b in zip(*both)] for both in zip(one, other)] for n in range(parts + 1)]
    return [(law, law) for law in laws[1:-1]] + [(laws[n], laws[n + 1]) for n in range(parts)]


class StepOfAnyLaw(check.Step):
    """A step back to a record that ``power`` leads to from the first one, whose law may be any."""

    def __init__(self, kernel, alive, pairs, power):
        super().__init__(kernel[0], kernel[1] * power[1], alive, pairs)
        following = [(law, [dot(law, column) for column in zip(*self.rows)]) for law in power[0]]
        self.laws, self.of_kernel = [*zip(following, following)], kernel[1] ** 4
        for one, other in combinations(following, 2):
            self.laws += between(one, other)

    def cases(self, x, x_):
        into, other = ([row[z] for row in self.rows] for z in (x, x_))
        for (v, b), (w, d) in self.laws:
            p = [(d[x_] * a + b[x_] * c) * entry for a, c, entry in zip(v, w, into)]
            yield p, [(d[x] * a + b[x] * c) * entry for a, c, entry in zip(v, w, other)]

    def holds(self, x, x_, factor, bound, moves):
        return self.holds_for_two(x, x_, factor, bound) or super().holds(x, x_, factor, bound, moves)

    def holds_for_two(self, x, x_, factor, bound):
        """Whether factor is at least 1 and (1 + rs + 2√(rs)) / (r + s + 2√(rs)) for all y, y'; r: cross ratio, s: R."""
        if factor < ONE:  # where x and x' come from one state only, no y, y' say so
            return False
        for y, y_ in permutations(self.alive, 2):
            a, b = self.rows[y][x] * self.rows[y_][x_], self.rows[y][x_] * self.rows[y_][x]
            s, root = bound[y][y_], 2 * isqrt(a * b * bound[y][y_] * ONE)
            if (b * ONE + a * s + root) * ONE * self.of_kernel > factor * (a * ONE + b * s + root):
                return False
        return True


class Chain(check.Chain):
    """A chain of cells, each of which holds the states of m records in a row; a kernel for each phase of a clock."""

    def __init__(self, kernels, cells, start):
        while type(start) is list and type(start[0]) is list:
            start = [entry for row in start for entry in row]
        self.cells, self.states, self.phases = cells, [cell[0] for cell in cells], len(kernels)
        self.paid = 2 if len(cells[0]) > 1 else 0
        self.kernels, self.given, self.known = [probabilities(rows) for rows in kernels], None, {}
        if type(start) is list:
            self.given, start = probabilities([check.law(start, len(cells))]), "given" if self.phases == 1 else "any"
        self.start = start  # the clock of a chain with phases may begin at any of them
        first = identity(len(cells)) if start == "any" or self.phases > 1 else self.laws_at(1)[0]
        self.reached = living(first[0])
        for _ in cells:  # those that no record can have are none
            self.reached = living([identity(len(cells))[0][c] for c in self.reached]
                                  + [self.kernels[0][0][c] for c in self.reached])  # fmt: skip

    def laws_at(self, bounds):
        """The law of the record of each bound of the past; for any first law the power that leads to it."""
        if bounds not in self.known:
            law = self.given if self.start == "given" else identity(len(self.cells))
            if self.start == "stationary":
                for kernel in self.kernels:
                    law = times(law, kernel)
                law = stationary(law)
            found, always = [law], self.start == ("any" if self.phases > 1 else "stationary")
            for j in range(bounds - 1):
                found.append(law if always else times(found[-1], self.kernels[j % self.phases]))
            self.known[bounds] = found
        return self.known[bounds]

    def links(self, bounds, longest):
        """Around the clock; or as without one."""
        if self.phases == 1:
            return super().links(bounds, longest)
        need(bounds == self.phases, "a clock needs a bound for each of its phases")
        return [(j, (j + 1) % bounds) for j in range(bounds)]

    def future(self, bounds, longest):
        for i, j in self.links(bounds, longest):
            kernel = self.kernels[-(i + 1) % self.phases]
            yield i, j, check.Step(*kernel, self.reached, list(permutations(self.reached, 2)))

    def past(self, bounds, longest):
        at = self.laws_at(bounds)
        alive = [living(law[0]) for law in at]
        for i, j in self.links(bounds, longest):
            kernel, law, pairs = self.kernels[i % self.phases], at[i], list(permutations(alive[j], 2))
            if self.start == "any":
                again = i == j or self.phases > 1
                need(not again or living(times(law, kernel)[0]) == alive[i], "a state dies out after the last bound")
                yield i, j, StepOfAnyLaw(kernel, alive[i], pairs, law)
                continue
            if self.given and i == j:  # each later law is the stationary one times numbers between these ratios
                settled = stationary(kernel)
                every = len(alive[i]) == len(self.cells) == len(living(settled[0]))
                need(every, "the first law does not come near the stationary one")
                ratios = [Fraction(a, b) for a, b in zip(law[0][0], settled[0][0])]
                law = settled[0], settled[1] ** 2 * law[1] * max(ratios) / min(ratios)
            before = [[mass * p for mass, p in zip(law[0][0], into)] for into in zip(*kernel[0])]
            yield i, j, check.Step(before, law[1] * kernel[1], alive[i], pairs)

    def told(self, pasts, futures, longest):
        """Under a given or any first law each cell is a row of its own: what the law of the record is, is not asked."""
        laws_at, names = self.laws_at(pasts), self.states
        for i, j in product(range(pasts), range(futures)):
            if i + j < longest if self.phases == 1 else (i + j) % self.phases == 0:
                states, (rows, slack) = names, identity(len(names))
                if self.start == "stationary":
                    (law,), slack = laws_at[i]
                    states = sorted(set(names))
                    rows = [[mass * (name == state) for mass, name in zip(law, names)] for state in states]
                alive = living(laws_at[i][0])
                there = [v for v, row in enumerate(rows) if any(row[c] for c in alive)]
                pairs = [(v, w) for v, w in permutations(there, 2) if states[v] != states[w]]
                yield i, j, check.Step(rows, slack, alive, pairs), states

    def losses(self, claim):
        """Where cells have several records each of these pays for both of its steps; no step pays by itself."""
        of_states, m = claim.factors(self.paid), len(self.cells[0])
        if m == 1:
            return super().losses(claim)

        def of(part):
            parts = [cell[part] for cell in self.cells]
            return [[check.over(*(of_states[a][b] for a, b in zip(one, other))) for other in parts] for one in parts]

        return of(slice(m - 1, m)), of(slice(0, 1)), of(slice(1, m)), ONE

    def of_stretch(self, claim):
        """Records that a cell has beside a short stretch may have any values."""
        steps, beside = self.paid * claim.step, max(0, len(self.cells[0]) - claim.records)
        inner = 0 if self.paid else (claim.records - 1) * claim.step
        return claim.records * (claim.most_near + steps) + beside * (claim.most + steps) + inner


def markov_chain(model, k):
    return Chain([laws(model["transition_matrix"], k)], [(x,) for x in range(k)], model["initial_distribution"])


def stays(model, k):
    rows, states = check.rows_of_stays(model, k)
    return Chain([rows], [(state,) for state in states], model["initial_distribution"])


def clock(model, k):
    kernels, step = [laws(rows, k) for rows in model["matrices"]], model["step"] or "1s"
    clocks = {None: (len(kernels), 1), "hour": (24, 3600), "weekday": (7, 86400), "weekday-hour": (168, 3600)}
    phases, lasts = clocks[model["clock"]]
    units, long = {"s": 1, "min": 60, "h": 3600, "d": 86400}, fullmatch("([1-9][0-9]{0,5})(s|min|h|d)", step)
    need(long and len(kernels) == phases > 0, "a clock has other matrices than phases, or steps that are not covered")
    steps = Fraction(lasts, int(long[1]) * units[long[2]])
    need(steps.denominator == 1, "a phase of a clock is no whole number of steps")
    repeated = [kernel for kernel in kernels for _ in range(int(steps))]
    return Chain(repeated, [(x,) for x in range(k)], model["initial_distribution"])


def higher_order(model, k):
    rows, order = model["tensor"], 1
    while type(rows[0][0]) is list:
        rows, order = [row for part in rows for row in part], order + 1
    cells = list(product(range(k), repeat=order))
    need(fits(rows, [[NUMBER]]) and len(rows) == len(cells), "a tensor has another shape than it must")
    following = [check.law(row, k) for row in rows]
    kernel = [[law[d[-1]] * (c[1:] == d[:-1]) for d in cells] for c, law in zip(cells, following)]
    return Chain([kernel], cells, model["initial_distribution"])


class Forgetting:
    """The closed form for n steps after which laws share an overlap: e^A = (1 - σ) e^(nd) / (1 - σ e^(nd))."""

    def __init__(self, model, k):
        self.steps, self.overlaps = model["steps"], model["overlap"]
        need(len(self.steps) == len(self.overlaps), "a class that forgets has steps without an overlap")

    def prove(self, proof, claim):
        need(proof is None, "a class that forgets has no bounds")
        need(self.tells_at_most(claim.limit, claim), "more than ε leaks")

    def tells_at_most(self, limit, claim):
        each, known = claim.most + claim.step, []
        for n, overlap in zip(self.steps, self.overlaps):
            need(n > 0 and 0 < overlap <= 1, "an overlap is out of range")
            apart, loss = 1 - Fraction(overlap), Fraction(exp(n * each, True), ONE)
            left = limit * Fraction(exp(2 * each, False), exp(claim.records * each + claim.step, True))
            known.append(apart * loss < 1 and ((1 - apart) * loss / (1 - apart * loss)) ** 2 * ONE <= left)
        return any(known)


START = ("stationary", "any", [NUMBER], [[NUMBER]], [[[NUMBER]]], [[[[NUMBER]]]])
CLOCK = {"matrices": [[[NUMBER]]], "clock": (None, str), "step": (None, str), "initial_distribution": START}


def with_other_starts(kind, make):
    """Covers a kind of chain of check.py from other first laws too."""
    schema, plain = check.KINDS[kind]

    def chain(model, k):
        return (plain if model["initial_distribution"] == "stationary" else make)(model, k)

    return {**schema, "initial_distribution": START}, chain


check.KINDS.update({
    "Markov chains": with_other_starts("Markov chains", markov_chain),
    "chains with several kinds of stay": with_other_starts("chains with several kinds of stay", stays),
    "periodic Markov chains": (CLOCK, clock),
    "Markov chains of higher order": ({"tensor": [check.LATER], "initial_distribution": START}, higher_order),
    "Markov processes that forget": ({"steps": [check.WHOLE], "overlap": [NUMBER]}, Forgetting),
})  # fmt: skip

# -- 3. Queries ------------------------------------------------------------------------------------------------------


def cdf(query, states):
    cuts = range(len(states) - 1)
    return [[int(y <= x) for y in range(len(states))] for x in cuts], 1, [f"up to {states[x]}" for x in cuts]


def switches(query, states):
    label = "switch-rate" if query["relative"] else "switches"
    return [[int(x != y) for x, y in product(states, repeat=2)]], 1, [label]


check.QUERIES.update({"CDF": ({"relative": bool}, cdf), "Switches": ({"relative": bool}, switches)})
check.MORE = ""

# -- 4. Several releases ---------------------------------------------------------------------------------------------


TOTAL = {**check.PROOF, "epsilon": NUMBER}


def together(claims, epsilon):
    """The claim that releases of the same rows cost so much together: losses add, whatever each asked."""
    claim = copy(claims[0])
    for other in claims:
        rows = [{**each.release["data"], "steps": None} for each in (claim, other)]
        need(rows[0] == rows[1], "the releases are of other rows")
        need(other.release["theta"] == claim.release["theta"], "the releases are of other Θ")
        need(other.release["hides"] == claim.release["hides"], "the releases hide other things")
        need((other.records, other.near, other.cut) == (claim.records, claim.near, claim.cut), "they hide others")
        nodes = [[*getattr(each, "nodes", ())] for each in (claim, other)]  # losses are added by their places
        need(nodes[0] == nodes[1], "the releases list the nodes of Θ in another order")
    claim.longest, claim.of_records = (max(getattr(c, name) for c in claims) for name in ("longest", "of_records"))
    claim.scale = ", ".join(str(other.scale) for other in claims)
    claim.epsilon, claim.limit = epsilon, exp(epsilon, False)
    losses = check.entrywise(lambda *each: sum(each), *(other.losses for other in claims))
    claim.pays(losses, sum(other.step for other in claims))
    return claim


def total(releases, proof, model=None):
    proof = check.parsed(check.text_of(proof), TOTAL, "proof of a total")
    claims = [check.claim_of(check.text_of(path)) for path in releases]
    claim = together(claims, Fraction(proof["epsilon"]))
    check.prove(claim, proof)
    kinds = ", ".join(other.kind for other in claims)
    what = f"these {len(claims)} releases, of {kinds}, together are, if they are of the same rows,"
    print(check.statement(claim, what, model))


def main(*files):
    """Files may stand in any order: each says what it is."""
    kinds = {}
    for path in files:
        kind = check.parsed(check.text_of(path), check.LATER, "file").get("format")
        kinds.setdefault(kind, []).append(path)
    releases, proofs, models = (kinds.get(f"pufferfish-{kind}", []) for kind in ("release", "proof", "model"))
    need(len(releases + proofs + models) == len(files), "a file is no release, proof or model")
    need(releases and len(proofs) == 1 and len(models) < 2, "name releases, one proof, and at most one model")
    if len(releases) == 1:
        check.main(*releases, *proofs, *models)
    else:
        total(releases, *proofs, *models)


if __name__ == "__main__":
    check.run(main, *sys.argv[1:])
