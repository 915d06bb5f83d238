"""Forged proofs for Bayesian networks: each is refused by the checker, which also refuses every claim that is false."""

import copy
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_certificate_forgeries import Checker, Pair, edited, honest, replaced, set_at

import pufferfish as pf
from false_claims import claiming
from network_claims import network_claims
from pufferfish.errors import NotApplicableError
from pufferfish.release.certificate import check_texts, claim_of, record_of_noise
from pufferfish.release.checker import check, check_more, check_networks

NO = ["no", "yes"]
OR = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
CLINIC = pf.BayesianNetwork(
    {
        "smoke": pf.CPT(NO, [0.7, 0.3]),
        "lung": pf.CPT(NO, [[0.95, 0.05], [0.8, 0.2]], ["smoke"]),
        "rare": pf.CPT(NO, [0.98, 0.02]),
        "either": pf.CPT(NO, OR, ["lung", "rare"]),
        "xray": pf.CPT(["dark", "clear"], [[0.05, 0.95], [0.9, 0.1]], ["either"]),
        "age": pf.CPT(["young", "old", "very old"], [0.5, 0.4, 0.1]),
    }
)
APART = pf.BayesianNetwork(
    {node: pf.CPT(cpt.states, [1 / len(cpt.states)] * len(cpt.states)) for node, cpt in CLINIC.cpts.items()}
)
DEAD = pf.BayesianNetwork(
    {
        "a": pf.CPT(["0", "1", "2"], [0.5, 0.5, 0.0]),
        "b": pf.CPT(["0", "1"], [[0.99, 0.01], [0.01, 0.99], [0.5, 0.5]], ["a"]),
        "c": pf.CPT(["0", "1"], [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], ["a"]),
    }
)
CASES: dict[str, Callable[[], Pair]] = {
    "marginals": cache(lambda: honest(CLINIC, pf.Marginals())),
    "a class": cache(lambda: honest([CLINIC, APART], pf.Subset(pf.Sum({"no": 0, "yes": 1.5}), ["smoke", "either"]))),
    "together": cache(lambda: honest(CLINIC, pf.Joint(["smoke", "either"], relative=False), protect=["xray", "lung"])),
    "a dead value": cache(lambda: honest(DEAD, pf.Marginals(["b", "c"]))),
}


@pytest.fixture(params=CASES)
def pair(request: pytest.FixtureRequest) -> Pair:
    return copy.deepcopy(CASES[request.param]())


LOOSE = [tuple(name.split(".")) for name in check.fields_unseen(check_networks.TABLE)]


def test_every_part_of_a_release(pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str], slow: bool) -> None:
    """What is changed is refused, but where the checker says that it does not look."""
    release, proof = pair
    checker = Checker(tmp_path, release)
    assert checker.accepts(release, proof)
    not_checked = capsys.readouterr().out.split("NOT CHECKED")[1]
    for path, other in list(edited(release))[:: 1 if slow else 7]:
        if checker.accepts(replaced(release, path, other), proof):
            if path == ("calibration", "settings"):  # how a mechanism searches is not asked
                assert release["calibration"]["settings"].get("protect") == other.get("protect")
                continue
            if path[:1] == ("noisy_values",):
                assert np.all(np.isreal(other)), other
                continue
            if path == ("calibration", "query", "records"):  # the same columns in another order
                assert sorted(other) == sorted(at(release, path))
                continue
            named = [name for name in LOOSE if path[: len(name)] == name]
            assert named, (path, other)
            assert ".".join(named[0]) in not_checked


def at(value: Any, path: tuple[Any, ...]) -> Any:
    return at(value[path[0]], path[1:]) if path else value


def test_every_part_of_a_proof(pair: Pair, tmp_path: Path, slow: bool) -> None:
    """What a proof leaves out is not taken for proved; moves may be left out where others do."""
    release, proof = pair
    checker = Checker(tmp_path, release)
    for path, other in list(edited(proof))[:: 1 if slow else 5]:
        if checker.accepts(release, replaced(proof, path, other)):
            if path[2] == "clusters":  # other names for the same
                assert sorted(map(str, other)) == sorted(map(str, at(proof, path))), path
            assert path[2] in ("clusters", "parents", "up", "down", "moves"), path
            assert check.fits(replaced(proof, path, other), check.PROOF)


# -- Trees that are none, and tables that are not in them -------------------------------------------------------------


def cut(member: dict[str, Any]) -> None:
    """Two trees: the second root is under no cluster."""
    for part in ("parents", "up", "down"):
        member[part].pop()
    member["moves"]["up"].pop()
    member["moves"]["down"].pop()


def circle(member: dict[str, Any]) -> None:
    member["parents"][0] = 1


def no_home(member: dict[str, Any]) -> None:
    member["clusters"] = [[node for node in cluster if node != "xray"] for cluster in member["clusters"]]


def twice(member: dict[str, Any]) -> None:
    member["clusters"][0].append(member["clusters"][0][0])


def not_together(member: dict[str, Any]) -> None:
    """A node in two clusters that do not lie beside each other."""
    (holds,) = [i for i, cluster in enumerate(member["clusters"]) if "xray" in cluster]
    near = {holds, *(i for edge in enumerate(member["parents"], 1) if holds in edge for i in edge)}
    far = next(i for i in range(len(member["clusters"])) if i not in near)
    member["clusters"][far].append("xray")


def no_table(member: dict[str, Any]) -> None:
    """Each node is in a cluster, and the clusters hang together, but no cluster has lung and both its neighbours."""
    for cluster in member["clusters"]:
        if {"lung", "rare", "either"} <= {*cluster}:
            cluster.remove("rare")
    for cluster in member["clusters"]:
        if "age" in cluster:
            cluster.append("rare")


def joined(member: dict[str, Any]) -> None:
    """Names joined by a comma are one name of no node."""
    member["clusters"][0] = [",".join(member["clusters"][0])]


def unknown(member: dict[str, Any]) -> None:
    member["clusters"][0].append("nobody")


def no_clusters(member: dict[str, Any]) -> None:
    member.update(clusters=[], parents=[], up=[], down=[], moves={"up": [], "down": [], "hidden": []})


def no_edges(member: dict[str, Any]) -> None:
    member.update(up=[], down=[])


def no_hidden(member: dict[str, Any]) -> None:
    member["moves"]["hidden"] = []


def zero(member: dict[str, Any]) -> None:
    member["up"] = [[[0] * len(row) for row in bound] for bound in member["up"]]


def transposed(member: dict[str, Any]) -> None:
    member["up"] = [[list(column) for column in zip(*bound, strict=True)] for bound in member["up"]]


def shorter(member: dict[str, Any]) -> None:
    member["up"] = [[row[:-1] for row in bound[:-1]] for bound in member["up"]]


def swapped(member: dict[str, Any]) -> None:
    member["up"], member["down"] = member["down"], member["up"]


def chains(member: dict[str, Any]) -> None:
    member.clear()
    member.update(future=[[[0, 0], [0, 0]]], past=[[[0, 0], [0, 0]]])


FORGED: dict[Callable[[dict[str, Any]], None], str] = {
    cut: "under none",
    circle: "under one that is not before it",
    no_home: "in no cluster",
    twice: "has a node twice",
    not_together: "do not hang together",
    no_table: "a table is in no cluster",
    joined: "has a node twice, or none",
    unknown: "has a node twice, or none",
    no_clusters: "there is no cluster",
    no_edges: "other bounds",
    no_hidden: "moves for other nodes",
    zero: "does not follow",
    transposed: "does not follow",
    shorter: "of other states",
    swapped: r"does not follow|of other states",
    chains: "clusters",
}


@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: forge.__name__)
def test_forged_trees(forge: Callable[[dict[str, Any]], None]) -> None:
    release, proof = copy.deepcopy(CASES["marginals"]())
    before = json.dumps(proof)
    forge(proof["members"][0])
    assert json.dumps(proof) != before
    with pytest.raises((check.NotProved, LookupError), match=FORGED[forge]):
        check_texts(json.dumps(release), json.dumps(proof))


def test_clusters_of_a_node_that_do_not_hang_together() -> None:
    """What c tells of b would be lost: with a third of the noise nothing else but the tree is wrong."""
    cpts = {"a": pf.CPT(NO, [0.5, 0.5])}
    cpts |= {y: pf.CPT(NO, [[0.9, 0.1], [0.2, 0.8]], [x]) for x, y in ("ab", "bc")}
    release, proof = honest(pf.BayesianNetwork(cpts), pf.Marginals())
    apart = {"clusters": [["a", "b"], [], ["b", "c"]], "parents": [0, 1], "up": [[[0]]] * 2, "down": [[[0]]] * 2}
    apart["moves"] = {"up": [[]] * 2, "down": [[]] * 2, "hidden": [[]] * 3}
    text = json.dumps(with_noise(release, 0.9), ensure_ascii=False)
    with pytest.raises(check.NotProved, match="do not hang together"):
        check_texts(text, json.dumps(proof | {"members": [apart]}))


def test_arrows_that_go_round() -> None:
    """The tables have the right shapes: their product would be some law, but not that of a network."""
    cpts = {"a": pf.CPT(NO, [0.5, 0.5]), "b": pf.CPT(NO, [[0.9, 0.1], [0.2, 0.8]], ["a"])}
    release, proof = copy.deepcopy(honest(pf.BayesianNetwork(cpts), pf.Marginals()))
    release["theta"]["members"][0]["nodes"]["a"].update(parents=["b"], table=[[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(check.NotProved, match="go round"):
        check_texts(json.dumps(release), json.dumps(proof))


@pytest.mark.parametrize("table", [[[0.9, 0.2], [0.1, 0.8]], [[0.9, 0.1]], [[0.9, 0.1, 0], [0.2, 0.8, 0]], [0.9, 0.1]])
def test_tables_of_another_shape(table: Any) -> None:
    """Also where the columns are laws, a table turned round is one of other numbers, and of other sizes is refused."""
    cpts = {"a": pf.CPT(NO, [0.5, 0.5]), "b": pf.CPT(NO, [[0.9, 0.1], [0.2, 0.8]], ["a"])}
    release, proof = copy.deepcopy(honest(pf.BayesianNetwork(cpts), pf.Marginals()))
    release["theta"]["members"][0]["nodes"]["b"]["table"] = table
    with pytest.raises(check.NotProved, match=r"no probability law|another shape"):
        check_texts(json.dumps(release), json.dumps(proof))


def test_any_tree_whose_bounds_follow(tmp_path: Path) -> None:
    """One cluster of all nodes is a tree: it has no edges, and proves the same noise."""
    release, proof = copy.deepcopy(CASES["marginals"]())
    member = {"clusters": [list(CLINIC.nodes)], "parents": [], "up": [], "down": []}
    member["moves"] = {"up": [], "down": [], "hidden": proof["members"][0]["moves"]["hidden"]}
    assert not Checker(tmp_path, release).accepts(release, proof | {"members": [member]})  # moves of other cells
    release = with_noise(release, 1.02)
    member["moves"]["hidden"] = [[] for _ in CLINIC.nodes]
    assert Checker(tmp_path, release).accepts(release, proof | {"members": [member]})


def with_noise(release: dict[str, Any], times: float) -> dict[str, Any]:
    scale = release["calibration"]["unit_scale"] * times
    release["calibration"]["unit_scale"], release["noise"]["scale"] = scale, scale * release["noise"]["unit"]
    release["counted"]["scale"] = str(check.Fraction(scale))
    return release


def test_a_dead_value_ties_nothing_together(tmp_path: Path) -> None:
    """A bound has no row for a value that cannot occur, and none with such a row is read."""
    release, proof = copy.deepcopy(CASES["a dead value"]())
    member = proof["members"][0]
    assert all(len(bound) == 2 for bound in member["up"])  # a is 0 or 1
    for way in ("up", "down"):
        member[way] = [[[0, 0, 0] for _ in range(3)] for _ in member[way]]
    assert not Checker(tmp_path, release).accepts(release, proof)


def test_names_with_commas(tmp_path: Path) -> None:
    """("a,b", "c") is not ("a", "b,c"): names are lists, never joined."""
    names = ["a,b", "c", "a", "b,c"]
    cpts = {names[0]: pf.CPT(NO, [0.9, 0.1]), names[1]: pf.CPT(NO, [[0.9, 0.1], [0.2, 0.8]], [names[0]])}
    cpts |= {names[2]: pf.CPT(NO, [0.5, 0.5]), names[3]: pf.CPT(NO, [[0.6, 0.4], [0.3, 0.7]], [names[2]])}
    release, proof = honest(pf.BayesianNetwork(cpts), pf.Marginals(), protect=["a,b", "c"])
    assert Checker(tmp_path, release).accepts(release, proof)
    assert "(['a,b', 'c'])" in check.claim_of(json.dumps(release)).hides
    assert not Checker(tmp_path, release).accepts(with_noise(copy.deepcopy(release), 0.99), proof)
    members = json.loads(json.dumps(proof["members"]).replace('"a,b", "c"', '"a", "b,c"'))
    assert members != proof["members"]
    assert not Checker(tmp_path, release).accepts(release, proof | {"members": members})
    other = copy.deepcopy(release)
    other["calibration"]["settings"]["protect"] = ["a", "b,c"]
    assert not Checker(tmp_path, release).accepts(other, proof)


def test_members_whose_nodes_stand_in_another_order(tmp_path: Path) -> None:
    """Losses go with the names of nodes: not with the place that a member gives them."""
    first = pf.BayesianNetwork({"a": pf.CPT(NO, [0.5, 0.5]), "b": pf.CPT(NO, [[0.9, 0.1], [0.2, 0.8]], ["a"])})
    first = pf.BayesianNetwork({**first.cpts, "c": pf.CPT(NO, [[0.99, 0.01], [0.01, 0.99]], ["b"])})
    release, proof = honest([first, first], pf.Marginals(["a", "b"]))
    assert proof["members"][1] is not None
    release["theta"]["members"][1] = {"nodes": dict(reversed(release["theta"]["members"][1]["nodes"].items()))}
    assert Checker(tmp_path, release).accepts(release, proof)
    states = copy.deepcopy(release)
    for node in states["theta"]["members"][1]["nodes"].values():
        node["states"] = node["states"][::-1]
    assert not Checker(tmp_path, states).accepts(states, proof)


COIN = pf.BayesianNetwork({"a": pf.CPT(NO, [0.5, 0.5])})


@pytest.mark.parametrize("nodes", ["more nodes", "more states", "rubbish"])
def test_a_member_without_bounds_is_of_the_same_nodes(nodes: str, tmp_path: Path) -> None:
    """Where the losses of all cells together are enough, they are those of the first member's nodes and states."""
    if nodes == "more nodes":
        release, proof = honest([COIN, COIN], pf.Histogram(relative=False), protect="row")
    else:
        release, proof = honest([COIN, COIN], pf.Sum({"no": 0, "yes": 1}))
        release["calibration"]["query"]["values"]["map"]["*"] = 1000
    proof["members"] = [None, None]
    assert Checker(tmp_path, release).accepts(release, proof)
    node = release["theta"]["members"][0]["nodes"]["a"]
    others = {
        "more nodes": {name: node for name in "abcdefgh"},  # a row of these has eight times the loss
        "more states": {"a": node | {"states": [*NO, "often"], "table": [0.4, 0.3, 0.3]}},  # the third one counts 1000
        "rubbish": {"a": node | {"parents": ["nobody"]}},
    }
    release["theta"]["members"][1] = {"nodes": others[nodes]}
    assert not Checker(tmp_path, release).accepts(release, proof)


RELEASES: dict[str, Callable[[dict[str, Any]], None]] = {
    "another node is read": set_at("calibration.query.records", ["smoke"]),
    "a column twice": set_at("calibration.query.records", ["smoke", "smoke"]),
    "secrets in words alone": set_at("mechanism.secrets", [["record smoke is no", "record smoke is yes"]]),
    "secrets in settings alone": set_at("calibration.settings", {"secrets": [["smoke", ["no"], ["yes"]]]}),
    "no secrets": set_at("calibration.settings", {"secrets": []}),
    "columns that the words do not name": set_at("calibration.settings", {"protect": ["age"], "within": None}),
    "a whole row": set_at("calibration.settings", {"protect": "row", "within": None}),
    "near values": set_at("calibration.settings", {"within": [["no", "yes"]]}),
    "an arrow that goes round": set_at("theta.members.0.nodes.smoke.parents", ["lung"]),
    "an arrow from nowhere": set_at("theta.members.0.nodes.smoke.parents", ["nobody"]),
    "a table turned round": set_at("theta.members.0.nodes.lung.table", [[0.95, 0.8], [0.05, 0.2]]),
    "a row that is no law": set_at("theta.members.0.nodes.lung.table", [[0.95, 0.05], [0.8, 0.3]]),
    "a state twice": set_at("theta.members.0.nodes.smoke.states", ["no", "no"]),
    "true for a probability": set_at("theta.members.0.nodes.rare.table", [True, 0]),
    "other tables": set_at("theta.members.0.nodes.lung.table", [[0.999, 0.001], [0.001, 0.999]]),
    "records for cells": set_at("counted.each", "record"),
    "rows for cells": set_at("counted.each", "row"),
    "other columns are counted": set_at("counted.of", ["smoke"]),
    "groups": set_at("groups", {"by": ["hour"]}),
    "noise for fewer rows": set_at("data.subjects", 10_000_000),
    "shares of other rows": set_at("query.divided_by", 5),
    "chains": set_at("theta.kind", "Markov chains"),
}


@pytest.mark.parametrize("name", RELEASES)
def test_forged_releases(name: str, tmp_path: Path) -> None:
    release, proof = copy.deepcopy(CASES["marginals"]())
    RELEASES[name](release)
    assert not Checker(tmp_path, release).accepts(release, proof)


@pytest.mark.parametrize("times", [0.99, 0.5])
def test_less_noise(pair: Pair, times: float, tmp_path: Path) -> None:
    release, proof = pair
    assert not Checker(tmp_path, release).accepts(with_noise(release, times), proof)


def edited_proof(proof: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return a proof with other numbers, lists emptied, cut, doubled or turned round, another tree, other moves."""
    member = copy.deepcopy(proof["members"][0])
    for _ in range(int(rng.integers(0, 4))):
        place: Any = member
        while rng.random() < 0.9:
            key = rng.choice(list(place)) if isinstance(place, dict) else int(rng.integers(len(place)))
            if not isinstance(place[key], list | dict) or not place[key]:
                break
            place = place[key]
        if isinstance(place, dict):
            continue
        i, kind = int(rng.integers(len(place))), int(rng.integers(9))
        if kind == 0:
            place[:] = []
        elif kind == 1:
            place.pop(i)
        elif kind == 2:
            place.append(place[i])
        elif kind == 3:
            place.reverse()
        elif kind == 4:
            place[i] = place[int(rng.integers(len(place)))]
        elif isinstance(place[i], int):
            place[i] = [0, place[i] // 2, int(place[i] * (1 - 10.0 ** -rng.uniform(1, 6))), place[i] * 2][kind - 5]
    if rng.random() < 0.3:
        way = ("up", "down", "hidden")[int(rng.integers(3))]
        member["moves"][way] = [
            [[int(n) for n in rng.integers(0, 4, 2 + 2 * int(rng.integers(1, 4)))]] for _ in member["moves"][way]
        ]
    if rng.random() < 0.1:
        member["clusters"] = [[str(n) for n in rng.permutation(cluster)] for cluster in member["clusters"]]
    return proof | {"members": [member] if rng.random() < 0.97 else [[], [None]][int(rng.integers(2))]}


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("seed", range(3))
def test_false_claims(seed: int, slow: bool) -> None:
    """Claims below what linear programs say leaks, with edited proofs: none is accepted, and every true one is."""
    rng = np.random.default_rng(seed)
    for found in network_claims(seed + 100, 40 if slow else 3):
        if not found.truth > 1e-3:
            continue
        check_texts(claiming(found.record, found.proved * (1 + 1e-9)), json.dumps(found.proof))
        for _ in range(100):
            epsilon = found.truth * (1 - 10.0 ** -rng.uniform(0.5, 6))
            text = json.dumps(edited_proof(found.proof, rng))
            with pytest.raises(Exception):  # noqa: B017, PT011  (which is said as NOT PROVED)
                check_texts(claiming(found.record, epsilon), text)


def test_totals_of_releases_that_hide_other_secrets() -> None:
    """The words name four pairs of secrets and no more; the fifth is compared too."""
    states = ["a", "b", "c", "d"]
    network = pf.BayesianNetwork({"x": pf.CPT(states, [0.25] * 4), "y": pf.CPT(states, np.full((4, 4), 0.25), ["x"])})
    pairs = [(pf.RecordIs("x", one), pf.RecordIs("x", other)) for one, other in itertools.combinations(states, 2)]
    claims = []
    for fifth in (4, 4, 5):
        bound = pf.LeakagePropagation(network, length=50, secrets=[*pairs[:4], pairs[fifth]])
        claims.append(claim_of(record_of_noise(bound.calibrate(pf.Marginals(), 1.0))))
    assert claims[0].release["hides"] == claims[2].release["hides"]
    check_more.together(claims[:2], check.Fraction(2))
    with pytest.raises(check.NotProved, match="they hide others"):
        check_more.together(claims[1:], check.Fraction(2))


# -- Its files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["check.py", "check_networks.py", "check_more.py"])
def test_the_checkers_stand_alone(program: str, tmp_path: Path) -> None:
    release, proof = CASES["marginals"]()
    for name, content in (("release.json", release), ("proof.json", proof)):
        (tmp_path / name).write_text(json.dumps(content))
    checker = Path(__file__).parents[2] / "certificate" / program
    run = [sys.executable, "-I", "-S", str(checker), "release.json", "proof.json"]
    found = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    says = (
        "PROVED: this release of Marginals, by itself, is at most e^1 times as likely\nif any one record (one cell of"
    )
    if program == "check.py":
        says = "NOT PROVED: Bayesian networks are not covered; check_networks.py covers them"
    assert found.stdout.startswith(says), found.stdout + found.stderr
    assert found.returncode == (program == "check.py")


def test_totals_of_releases_whose_networks_list_nodes_in_another_order() -> None:
    """Losses of several releases are added node by node: b and its copy c are read, and no release reads u."""
    cpts = {"b": pf.CPT(NO, [0.5, 0.5]), "c": pf.CPT(NO, [[0.99, 0.01], [0.01, 0.99]], ["b"])}
    cpts["u"] = pf.CPT(NO, [0.5, 0.5])
    records = []
    for order, read in (("bcu", "b"), ("bcu", "c"), ("buc", "c")):
        network = pf.BayesianNetwork({node: cpts[node] for node in order})
        noise = pf.LeakagePropagation(network, length=50, protect=["b"]).calibrate(pf.Marginals([read]), 1.0)
        records.append(record_of_noise(noise))
    assert 1.99 < json.loads(pf.certify(records[:2]).proof)["epsilon"] < 2.01
    for first, second in ((0, 2), (1, 2)):
        with pytest.raises(NotApplicableError, match="nodes of Θ in another order"):
            pf.certify([records[first], records[second]])
