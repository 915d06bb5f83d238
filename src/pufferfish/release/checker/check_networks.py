"""Check the proof of a release of a table whose columns are the nodes of Bayesian networks.

    python check_networks.py release.json proof.json [model.json]

It uses check.py, which stands beside it, and prints and exits as that does. The proof brings a tree of clusters of
nodes, and bounds on what each side of an edge tells of the nodes that its two clusters share. The laws of clusters are
computed here, in whole numbers, without any error. docs/proofs/certificate.md has the theorem.
"""

import os
import sys
from itertools import permutations, product
from math import gcd, lcm, prod

if __package__:
    from . import check
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import check

ONE, LATER, NUMBER, WHOLE, need, fits, over = (
    check.ONE, check.LATER, check.NUMBER, check.WHOLE, check.need, check.fits, check.over
)  # fmt: skip

# -- 1. Networks: a table of whole numbers for each node, whose rows have one sum --------------------------------------

NODE = {"states": [str], "parents": [str], "table": [LATER]}


def entries(table, sizes):
    """The entries of a table with so many values along each axis, those of the last one fastest."""
    if not sizes:
        return [table]
    need(type(table) is list and len(table) == sizes[0], "a table has another shape than its nodes")
    return [entry for part in table for entry in entries(part, sizes[1:])]


def states_of(model):
    """The states of each node, in order; every arrow leads from a node to one that it does not come from."""
    nodes, known = model["nodes"], set()
    need(type(nodes) is dict and nodes and all(fits(node, NODE) for node in nodes.values()), "a network is damaged")
    for node in nodes.values():
        need(0 < len(set(node["states"])) == len(node["states"]), "a node has no states, or one twice")
        need(len(set(node["parents"])) == len(node["parents"]), "a node has a parent twice")
    for _ in nodes:
        known |= {name for name, node in nodes.items() if known.issuperset(node["parents"])}
    need(len(known) == len(nodes), "arrows of a network go round, or come from no node")
    return {name: node["states"] for name, node in nodes.items()}


def table_of(name, nodes):
    """The nodes of a table, and a whole number for each of their values (places in their states)."""
    scope = (*nodes[name]["parents"], name)
    sizes = [len(nodes[node]["states"]) for node in scope]
    flat = entries(nodes[name]["table"], sizes)
    need(fits(flat, [NUMBER]), "a table has an entry that is no number")
    rows = [check.law(flat[i : i + sizes[-1]], sizes[-1]) for i in range(0, len(flat), sizes[-1])]
    common = lcm(*map(sum, rows))
    whole = [entry * common // sum(row) for row in rows for entry in row]
    return scope, dict(zip(product(*map(range, sizes)), whole))


# -- 2. A tree of clusters, and their laws -----------------------------------------------------------------------------


def part_of(cluster, nodes):
    """What gives the values of some nodes of a cluster, of the values of all."""
    places = [cluster.index(node) for node in nodes]
    return lambda values: tuple([values[place] for place in places])


def summed(law, part):
    sums = {}
    for values, mass in law.items():
        sums[part(values)] = sums.get(part(values), 0) + mass
    return sums


class Tree:
    """Clusters, each but the first under one before it: tables lie in one, and those of a node hang together."""

    def __init__(self, network, clusters, parents):
        states, self.clusters, self.edges = network.states, clusters, list(enumerate(parents, 1))
        need(len(parents) + 1 == len(clusters), "a cluster but the first one is under none, or there is no cluster")
        need(all(parent < child for child, parent in self.edges), "a cluster is under one that is not before it")
        for cluster in clusters:
            need(len({*cluster}) == len(cluster) and states.keys() >= {*cluster}, "a cluster has a node twice, or none")
            need(prod(len(states[node]) for node in cluster) <= 10**6, "a cluster has too many values")
        for node in states:
            edges = sum(node in clusters[child] and node in clusters[parent] for child, parent in self.edges)
            hold = sum(node in cluster for cluster in clusters)
            need(hold - edges == 1, "a node is in no cluster, or its clusters do not hang together")
        self.shared = {}
        for i, j in self.edges:
            self.shared[i, j] = self.shared[j, i] = [node for node in clusters[i] if node in clusters[j]]
        self.laws = [dict.fromkeys(product(*(range(len(states[v])) for v in cluster)), 1) for cluster in clusters]
        for scope, table in network.tables:
            into = [i for i, cluster in enumerate(clusters) if {*scope} <= {*cluster}]
            need(into, "a table is in no cluster")
            self.multiply(into[0], scope, table)
        sums = {}
        for child, parent in reversed(self.edges):
            sums[child] = self.summed(child, self.shared[child, parent])
            self.multiply(parent, self.shared[child, parent], sums[child])
        for child, parent in self.edges:  # each sum is one of products with the child's, so the division leaves no rest
            of_all = self.summed(parent, self.shared[child, parent])
            others = {values: mass // sums[child][values] for values, mass in of_all.items()}
            self.multiply(child, self.shared[child, parent], others)
        for i, law in enumerate(self.laws):
            common = gcd(*law.values())
            self.laws[i] = {values: mass // common for values, mass in law.items()}

    def multiply(self, i, nodes, table):
        """Multiply the law of a cluster by a table of some of its nodes; what cannot occur is left out."""
        part, law = part_of(self.clusters[i], nodes), self.laws[i]
        self.laws[i] = {values: mass * table[part(values)] for values, mass in law.items() if table.get(part(values))}

    def summed(self, i, nodes):
        return summed(self.laws[i], part_of(self.clusters[i], nodes))

    def home(self, nodes):
        """The cluster with the fewest values of those that hold some nodes, the first one of these."""
        hold = [i for i, cluster in enumerate(self.clusters) if {*nodes} <= {*cluster}]
        need(hold, "no cluster holds what is hidden")
        return min(hold, key=lambda i: len(self.laws[i]))


class Bound:
    """Factors by which what is told may differ between two values of some nodes; of values that can occur alone."""

    def __init__(self, nodes, values, factors):
        self.nodes, self.place, self.factors = nodes, {each: n for n, each in enumerate(values)}, factors

    def between(self, one, other):
        return self.factors[self.place[one]][self.place[other]]


class Told:
    """What bounds on parts of a cluster tell of some of its nodes: factors for each two values of these.

    Bounds on these nodes alone are passed on as they are. Values of the cluster that no other bound tells apart are one
    cell; the rows are P(cell | values of the nodes), times their sums.
    """

    def __init__(self, tree, i, nodes, bounds):
        self.passed = [(part_of(nodes, bound.nodes), bound) for bound in bounds if {*bound.nodes} <= {*nodes}]
        others = [bound for bound in bounds if not {*bound.nodes} <= {*nodes}]
        self.bounds = [bound for bound in others if max(map(max, bound.factors)) > ONE]
        parts = [(part_of(tree.clusters[i], bound.nodes), bound.place) for bound in self.bounds]
        about, cells, rows, self.known = part_of(tree.clusters[i], nodes), {}, {}, {}
        for values, mass in tree.laws[i].items():
            cell = cells.setdefault(tuple([place[part(values)] for part, place in parts]), len(cells))
            row = rows.setdefault(about(values), {})
            row[cell] = row.get(cell, 0) + mass
        self.cells = [*cells]
        self.rows = {value: [row.get(cell, 0) for cell in range(len(cells))] for value, row in sorted(rows.items())}

    def factor(self, y, z):
        """By which factor what is told may differ between two cells."""
        if (y, z) not in self.known:
            places = zip(self.bounds, self.cells[y], self.cells[z])
            self.known[y, z] = over(*[bound.factors[a][b] for bound, a, b in places])
        return self.known[y, z]

    def holds(self, s, s_, factor, named=()):
        """Whether such a factor is enough for two values, by moves that are named and then all others."""
        least = factor * ONE // over(*[bound.between(part(s), part(s_)) for part, bound in self.passed])
        ours, others = sum(self.rows[s]) * least, sum(self.rows[s_]) * ONE
        p, q = [mass * others for mass in self.rows[s]], [mass * ours for mass in self.rows[s_]]
        more, less = ([y for y, (a, b) in enumerate(zip(*both)) if a > b] for both in ((p, q), (q, p)))
        moves = sorted((self.factor(y, z), y, z) for y, z in product(more, less))
        return check.covers(p, q, [(self.factor(y, z), y, z) for y, z in named] + moves)

    def follow(self, asked, named):
        """Whether these factors are enough; for some pairs moves are named, which are made before all others."""
        values = [*self.rows]
        first = {(values[n], values[m]): [*zip(ends[::2], ends[1::2])] for n, m, *ends in named}
        return all(self.holds(*pair, factor, first.get(pair, ())) for pair, factor in asked.items())


class Network:
    """A Bayesian network, whose proof is a tree of clusters and bounds for both ways of each of its edges."""

    def __init__(self, model, _):
        self.states = states_of(model)
        self.tables = [table_of(name, model["nodes"]) for name in model["nodes"]]

    def prove(self, proof, claim):
        need(proof is not None and claim.secrets, "the losses of all cells of a row together are more than ε")
        tree = Tree(self, proof["clusters"], proof["parents"])
        edges, moves = [*tree.edges, *((parent, child) for child, parent in tree.edges)], proof["moves"]
        of_edges = [proof["up"], proof["down"], moves["up"], moves["down"]]
        need(all(len(part) == len(tree.edges) for part in of_edges), "there are other bounds or moves than edges")
        need(len(moves["hidden"]) == len(claim.secrets), "there are moves for other nodes than are hidden")
        messages = {edge: self.bound(tree, *edge, claim, n) for edge, n in zip(edges, proof["up"] + proof["down"])}
        losses = self.losses(tree, claim)
        for edge, named in zip(edges, moves["up"] + moves["down"]):
            bound = messages[edge]
            asked = {pair: bound.between(*pair) for pair in permutations(bound.place, 2)}
            told = Told(tree, edge[0], bound.nodes, self.bounds_at(messages, losses, *edge))
            need(told.follow(asked, named), "a bound does not follow from those of other edges")
        for (nodes, pairs), named in zip(claim.secrets, moves["hidden"]):
            home = tree.home(nodes)
            told = Told(tree, home, nodes, self.bounds_at(messages, losses, home))
            asked = [pair for pair in permutations(told.rows, 2) if pairs is None or pair in pairs]
            need(told.follow(dict.fromkeys(asked, claim.limit), named), "more than ε leaks")

    @staticmethod
    def bound(tree, i, j, claim, numbers):
        """What the side of one cluster tells its neighbour of the values that both share, of those that can occur."""
        nodes = tree.shared[i, j]
        values = sorted(tree.summed(i, nodes))
        return Bound(nodes, values, claim.bound(numbers, len(values)))

    def losses(self, tree, claim):
        """The loss of each node, with the one cluster that is its home."""
        every = zip(claim.nodes, claim.factors())
        return [(tree.home([node]), Bound([node], [(x,) for x in range(len(loss))], loss)) for node, loss in every]

    @staticmethod
    def bounds_at(messages, losses, i, but=None):
        """The losses at home in a cluster, and what its neighbours tell it, but for one of them."""
        told = [bound for (sender, receiver), bound in messages.items() if receiver == i and sender != but]
        return [loss for home, loss in losses if home == i] + told


check.KINDS["Bayesian networks"] = {"nodes": LATER}, Network
LISTS = [[[WHOLE]]]
TREE = {"clusters": [[str]], "parents": [WHOLE], "up": LISTS, "down": LISTS}
TREE["moves"] = {"up": LISTS, "down": LISTS, "hidden": LISTS}
check.PROOF["members"] = [(*check.PROOF["members"][0], TREE)]

# -- 3. The release of a table -----------------------------------------------------------------------------------------

NAMES, STATEWISE = [(str, WHOLE)], ("Histogram", "Count", "Frequency", "Sum", "Mean")
QUERIES = {
    "Marginals": {"records": (None, NAMES), "relative": bool},
    "Joint": {"records": NAMES, "relative": bool},
    "Subset": {"records": NAMES, "query": LATER},
}
TABLE = {
    **check.RELEASE,
    "noise": {**check.RELEASE["noise"], "measurements": None},
    "mechanism": {**check.RELEASE["mechanism"], "secrets": (None, [[str]])},
    "theta": {**check.RELEASE["theta"], "kind": "Bayesian networks"},
    "data": {**check.RELEASE["data"], **dict.fromkeys(("subjects", "lengths", "rows", "observed"), check.UNSEEN)},
    "calibration": {**check.RELEASE["calibration"], "lengths": check.UNSEEN},
}


class Table(check.Claim):
    """What the release of a table promises: what is told of cells of a row, which no other row tells of."""

    form, cut = TABLE, False

    def lengths(self, data, made, _):
        self.nodes, *others = map(states_of, self.release["theta"]["members"])
        need(all(nodes == self.nodes for nodes in others), "members are of other nodes")
        every = dict.fromkeys(state for states in self.nodes.values() for state in states)
        need(self.states == [*every], "the states are not those of the nodes")
        self.longest, self.of_records = len(self.nodes), made["records"]
        need(0 < data["subjects"] <= self.of_records, "the noise is for fewer rows than were read")

    def extent(self):
        return f"in tables of {self.of_records:,} rows, which are independent of each other"

    def chosen(self, names):
        names = [str(name) for name in names]
        need(
            0 < len({*names}) == len(names) and {*names} <= self.nodes.keys(), "columns are none, or one is named twice"
        )
        return names

    def asked(self, query, states, rows):
        """What each state of each node, or each combination of those of some, adds to each output."""
        kind, self.joint = query.get("is"), ()
        need(kind in STATEWISE or fits(query, {"is": str, **QUERIES.get(kind, {})}), f"{kind}, which is not covered")
        read = [*self.nodes] if query.get("records") is None else self.chosen(query["records"])
        cells = [(node, state) for node, known in self.nodes.items() for state in known]
        named = [[f"{node}={state}" for state in self.nodes[node]] for node in read]
        if kind == "Joint":
            need(len(read) > 1, "one column is no table of several")
            self.joint, labels = read, [", ".join(each) for each in product(*named)]
            return [[label] for label in labels], 1, labels, rows if query["relative"] else None
        if kind == "Marginals":
            outputs = [(node, state) for node in read for state in self.nodes[node]]
            numbers = [[int(cell == output) for cell in cells] for output in outputs]
            return numbers, 1, [label for part in named for label in part], rows if query["relative"] else None
        inner = query["query"] if kind == "Subset" else query
        need(inner.get("is") in STATEWISE, "a query of columns that is not covered")
        states = [*dict.fromkeys(state for node in read for state in self.nodes[node])]
        weights, *rest = super().asked(inner, states, rows * len(read))
        known = [dict(zip(states, row)) for row in weights]
        return [[row[state] if node in read else 0 for node, state in cells] for row in known], *rest

    def moves(self, counted, rows, _):
        """The losses of each node. A cell that changes moves its row from one combination to another."""
        columns, far = [*zip(*rows)], 2 / self.scale
        if self.joint:
            each, of, adds = "row", self.joint, [[[[n, 1]] for n in range(len(rows))]]
            read = [(known, node in of) for node, known in self.nodes.items()]
            losses = [[[far * (x != y and counts) for y in known] for x in known] for known, counts in read]
        else:
            parts = [[columns.pop(0) for _ in known] for known in self.nodes.values()]
            each, of, adds = "cell", [*self.nodes], [check.added(part) for part in parts]
            losses = [self.moved(part) for part in parts]
        need(
            (counted["each"], counted["of"], counted["adds"]) == (each, of, adds),
            "counted is not what the query counts",
        )
        return losses, 0

    def hidden(self, settings, _):
        """What is hidden: a cell, columns or all of them, or secrets that are named."""
        of_mechanism = {"max_quilts", "quilts"}  # how it searches; nothing of what is hidden
        need(type(settings) is dict and settings.keys() <= {"protect", "within", "secrets", *of_mechanism}, "settings")
        protect, secrets = settings.get("protect"), settings.get("secrets")
        need(settings.get("within") is None and (secrets is None or protect is None), "a protection is not covered")
        self.records = 1
        if secrets is not None:
            return self.named(secrets)
        need(self.release["mechanism"]["secrets"] is None, "secrets that the settings do not name")
        need(fits(protect, (None, "row", [str])), "a protection is not covered")
        columns = self.chosen(protect) if type(protect) is list else []
        self.secrets = [(tuple(columns), None)] if columns else [((node,), None) for node in self.nodes]
        changes, values = "has one value as if it has another", "every two values it can have"
        if protect is None:
            what, each = "any one record (one cell of one row)", "record"
        elif len(columns) == 1:
            what, each = f"the column {columns[0]} of any one row", "row"
        else:
            names = [f'"{name}"' if "," in name else name for name in columns]
            whose, each = f"the columns {', '.join(names)}" if columns else "all columns", "row"
            what, changes = f"{whose} of any one row together", "have one combination of values as if they have another"
            values = "every two combinations they can have"
        if protect == "row":
            self.secrets = []  # only the losses of all cells together prove that
        need(self.release["hides"] == what, "hides says something else")
        self.promised(f"if {what} {changes}, for every {each}, {values}, and every")
        exactly = f" ({columns})" if columns else ""  # names may hold commas and quotes
        self.hides = f"{what}{exactly} {changes}"

    def named(self, secrets):
        """Pairs of secrets, each of one node, that it has one of some values."""
        need(secrets and fits(secrets, [[(str, [str])]]) and all(map(len, secrets)), "no secrets are named")
        words, pairs = [], {}
        for node, *sides in secrets:
            need(node in self.nodes and len(sides) == 2, "a pair of secrets is not covered")
            words.append([f"record {node} is {' or '.join(side)}" for side in sides])
            first, second = ([self.nodes[node].index(state) for state in side] for side in sides)
            need(first and second, "a secret has no value")
            either = {((x,), (y,)) for x, y in product(first, second)}
            pairs.setdefault((node,), set()).update(either | {(y, x) for x, y in either})
        self.secrets = [*pairs.items()]
        need(self.release["mechanism"]["secrets"] == words, "other secrets are named")
        told = "; ".join(f"({a}) or ({b})" for a, b in words[:4]) + "; …" * (len(words) > 4)
        need(self.release["hides"] == f"which of two secrets holds, namely {told}", "hides says something else")
        self.promised(f"under one as under the other secret of each pair, namely {told}, for every")
        self.hides = f"one secret of a pair holds as if the other one does, of {secrets}"

    def pays(self, losses, step):
        self.losses, self.step, self.near = losses, step, self.secrets
        self.of_all = sum(max(map(max, loss)) for loss in losses)

    def factors(self, _=0):
        """Factors of each node that goes from state to state."""
        known = {loss: check.exp(loss, True) for of_node in self.losses for row in of_node for loss in row}
        return check.entrywise(lambda loss: known[loss] if loss else ONE, self.losses)


check.CLAIMS["Bayesian networks"] = Table

if __name__ == "__main__":
    check.run(check.main, *sys.argv[1:])
