"""MarkovQuilt: what it takes, what it refuses and in which words, what it tells of its quilts, and its copies."""

import json
import math
import pickle
import re
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from network_oracle import SHAPED, Network, random_network
from networks import has_secrets, model_of
from pufferfish._core.quilts.network_search import NodeWeights
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, QueryError
from pufferfish.mechanisms import InfluenceBound, bound_of
from pufferfish.theta.model_class import as_theta

STEP = [[0.9, 0.1], [0.4, 0.6]]
BOTH = [[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]]


def family(first: float = 0.5) -> pf.BayesianNetwork:
    """Two parents, their child, and a guest; the child has three states, the guest one."""
    return pf.BayesianNetwork(
        {
            "mother": pf.CPT(["no", "yes"], [first, 1 - first]),
            "father": pf.CPT(["no", "yes"], [0.75, 0.25]),
            "child": pf.CPT(
                ["no", "yes", "mild"],
                [[[0.8, 0.1, 0.1], [0.5, 0.25, 0.25]], [[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]],
                ["mother", "father"],
            ),
            "school": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]], ["child"]),
            "guest": pf.CPT(["no"], [1.0]),
        }
    )


NETWORK = family()
COUNT = pf.Count("yes")
Quilt = pf.Quilt


def test_a_network_too_large_for_its_clusters_is_left_to_quilts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one member needs no noise by quilts: the others decide."""
    first = pf.CPT(["n", "y"], [0.5, 0.5])
    weak, strong = (
        pf.BayesianNetwork({"A": first, "B": pf.CPT(["n", "y"], table, parents=["A"])})
        for table in ([[0.6, 0.4], [0.5, 0.5]], [[0.9, 0.1], [0.1, 0.9]])
    )
    query = pf.Subset(pf.Count("y"), ["B"])
    expected = pf.MarkovQuilt([weak, strong], secrets=["A"]).calibrate(query, 1.0).scale
    monkeypatch.setattr("pufferfish._core.propagation.clusters.MOST_ENTRIES", 2)
    for theta in ([weak, strong], [strong, weak]):
        found = pf.LeakagePropagation(theta, secrets=["A"]).calibrate(query, 1.0)
        assert found.scale == pytest.approx(expected, rel=1e-6)
    with pytest.raises(NotApplicableError, match="no noise is needed"):
        pf.LeakagePropagation(weak, secrets=["A"]).calibrate(query, 1.0)


def test_none_of_an_infinite_loss_is_nothing() -> None:
    assert NodeWeights(np.array([np.inf, 1.0]))(0b10) == 1.0


class TestRefusals:
    @pytest.mark.parametrize(
        ("quilts", "message"),
        [
            ([["child"]], "quilts is list, expected a dict from nodes to lists of quilts"),
            ({"mother": "child"}, "the quilts of node 'mother' are 'child', expected a list of quilts"),
            ({"mother": None}, "the quilts of node 'mother' are None, expected a list of quilts"),
            ({"mother": Quilt(("mother",), (), ())}, "expected a list of quilts"),
            ({"mother": ["child"]}, "a quilt of node 'mother' is 'child', expected a list of names or a Quilt"),
            ({"mother": [3]}, "a quilt of node 'mother' is 3, expected a list of names or a Quilt"),
            ({"aunt": [["child"]]}, "there is no node 'aunt'"),
            ({"mothr": [["child"]]}, "there is no node 'mothr'. Did you mean 'mother'? Nodes: mother, father, child"),
            ({"mother": [["chld"]]}, "there is no node 'chld'. Did you mean 'child'?"),
            (
                {"mother": [["child", "mother"]]},
                "the quilt of node 'mother' holds the node itself: leave it out, a node is always among its nearby "
                "nodes",
            ),
            (
                {"mother": [Quilt(("father",), ("child",), ("school", "guest", "mother"))]},
                "the quilt of node 'mother' lacks the node itself among the nearby nodes: add it",
            ),
            (
                {"mother": [Quilt(("mother", "father"), ("child",), ("school",))]},
                "nearby, quilt and remote of the quilt of node 'mother' hold 4 nodes, expected each of the 5",
            ),
            (
                {"mother": [Quilt(("mother", "father"), ("child",), ("school", "guest", "father"))]},
                "hold 6 nodes, expected each of the 5 nodes once; Quilt.of finds nearby and remote",
            ),
            (
                {"mother": [Quilt(("mother",), ("child",), ("school", "guest", "father"))]},
                "the quilt {child} does not separate node 'mother' from the remote node 'father': add it to nearby",
            ),
            (
                {"mother": [Quilt(("mother", "father", "child"), (), ("school", "guest"))]},
                "the quilt {} does not separate node 'mother' from the remote node 'school'",
            ),
        ],
    )
    def test_bad_quilts(self, quilts: Any, message: str) -> None:
        with pytest.raises(pf.PufferfishError, match=re.escape(message)) as error:
            pf.MarkovQuilt(NETWORK, quilts)
        assert "\n" not in str(error.value)

    def test_a_quilt_must_be_one_under_every_theta(self) -> None:
        """In the other one c hangs on a itself."""
        coin = pf.CPT(["no", "yes"], [0.5, 0.5])
        copy = [[0.9, 0.1], [0.1, 0.9]]
        start = {"a": coin, "b": pf.CPT(["no", "yes"], copy, ["a"])}
        one, other = (pf.BayesianNetwork(start | {"c": pf.CPT(["no", "yes"], copy, [above])}) for above in "ba")
        quilt = Quilt(("a",), ("b",), ("c",))
        pf.MarkovQuilt(one, {"a": [quilt]})
        for theta in ([one, other], [other, one]):
            with pytest.raises(ModelError, match="does not separate node 'a' from the remote node 'c'"):
                pf.MarkovQuilt(theta, {"a": [quilt]})

    @pytest.mark.parametrize(
        ("secrets", "message"),
        [
            ("mother", "secrets is 'mother', expected a list of names of nodes, or of pairs of RecordIs"),
            (3, "secrets is 3, expected a list"),
            ([], "secrets is empty: name at least one node, or leave it out to keep all secret"),
            (["aunt"], "there is no node 'aunt'. Nodes: mother, father, child, school, guest"),
            (["guest"], "node 'guest' has only one state: there is nothing to keep secret"),
            ([("mother", "father")], "there is no node ('mother', 'father')"),
            (
                [(pf.RecordIs("mother", "no"), pf.RecordIs("father", "no"))],
                "are about two nodes: both secrets of a pair must be about the same node",
            ),
            ([(pf.RecordIs("mother", "no"), pf.RecordIs("mother", "mild"))], "node 'mother' has no state 'mild'"),
            (
                [(pf.RecordIs("child", ["no", "mild"]), pf.RecordIs("child", ["mild", "yes"]))],
                "the secrets (record child is no or mild) and (record child is mild or yes) share the value 'mild'",
            ),
            ([(pf.CountIs("yes", at_least=1), pf.RecordIs("child", "no"))], "concern more than one record"),
            (
                [(pf.RecordIs("mother", "no") & pf.RecordIs("father", "no"), pf.RecordIs("mother", "yes"))],
                "this mechanism covers secrets about single nodes only: use Wasserstein or ExactLaplace",
            ),
            ([(pf.RecordIs("aunt", "no"), pf.RecordIs("aunt", "yes"))], "there is no node 'aunt'"),
            ([("child", "no")], "there is no node ('child', 'no')"),
        ],
    )
    def test_bad_secrets(self, secrets: Any, message: str) -> None:
        for make in (pf.MarkovQuilt, pf.LeakagePropagation):
            network = NETWORK if make is pf.MarkovQuilt else trees()
            with pytest.raises(pf.PufferfishError, match=re.escape(message)) as error:
                make(network, secrets=secrets)
            assert "\n" not in str(error.value)

    @pytest.mark.parametrize("most", [0, -1, 2.5, True, "400", math.inf], ids=repr)
    def test_bad_max_quilts(self, most: Any) -> None:
        with pytest.raises(ParameterError, match=r"max_quilts is .*, expected a whole number of at least 1, or None"):
            pf.MarkovQuilt(NETWORK, max_quilts=most)

    @pytest.mark.parametrize(
        ("losses", "message"),
        [
            (-0.1, "record_loss of node 'mother' has an entry that is negative or not finite; losses are at least 0"),
            (math.nan, "negative or not finite"),
            (math.inf, "negative or not finite"),
            ("much", "record_loss of node 'mother' holds text; expected losses in nats"),
            (
                {"aunt": 1.0},
                "record_loss names 'aunt', which is not a node. Nodes: mother, father, child, school, guest",
            ),
            ({"child": -1.0}, "record_loss of node 'child' has an entry that is negative"),
            ({"child": np.ones((2, 2))}, "record_loss of node 'child' has shape (2, 2), expected a number or (3, 3)"),
            ({"child": [1.0, 2.0, 3.0]}, "record_loss of node 'child' has shape (3,), expected a number or (3, 3)"),
            (
                {"child": [[1.0], [1.0, 2.0]]},
                "record_loss of node 'child' is not an array of numbers",
            ),
            ([0.1] * 4, "record_loss has 4 entries, expected 5: one per node"),
            (np.ones(6), "record_loss has 6 entries, expected 5: one per node"),
            ([0.1, 0.1, math.nan, 0.1, 0.1], "record_loss of node 'child' has an entry that is negative or not finite"),
        ],
        ids=str,
    )
    def test_bad_losses(self, losses: Any, message: str) -> None:
        for bound in (pf.MarkovQuilt(NETWORK), pf.GroupDP(NETWORK)):
            with pytest.raises(ParameterError, match=re.escape(message)):
                bound.leakage(losses)

    @pytest.mark.parametrize("length", [0, -2, 2.5, True, "3", [3], (2, 2)], ids=repr)
    def test_bad_numbers_of_rows(self, length: Any) -> None:
        with pytest.raises(ParameterError, match="expected the number of rows of the networks' table"):
            pf.MarkovQuilt(NETWORK, length=length)

    @pytest.mark.parametrize(
        ("theta", "reason"),
        [
            (pf.MarkovChain(STEP), "Θ is a class of Markov chains, where MQMExact searches the same quilts"),
            (pf.Cliques([[0.25, 0.5, 0.25]]), "it needs Bayesian networks, and Θ is a class of"),
            (pf.JointDistribution([[0, 0], [1, 1]], [0.5, 0.5]), "it needs Bayesian networks, and Θ is a class of"),
        ],
    )
    def test_other_models_are_not_covered(self, theta: Any, reason: str) -> None:
        found = pf.MarkovQuilt.supports(as_theta(theta))
        assert found is not None
        assert reason in found
        with pytest.raises(NotApplicableError, match=re.escape(f"MarkovQuilt does not apply: {found}")):
            pf.MarkovQuilt(theta, length=2)

    def test_networks_are_covered(self) -> None:
        assert pf.MarkovQuilt.supports(as_theta([NETWORK, family(0.25)])) is None
        assert pf.MarkovQuilt.supports(as_theta(trees())) is None

    def test_secrets_of_chains_have_no_names(self) -> None:
        with pytest.raises(ParameterError, match="secrets are for networks only"):
            pf.LeakagePropagation(pf.MarkovChain(STEP), 3, secrets=["a"])

    def test_functions_of_the_database(self) -> None:
        with pytest.raises(NotApplicableError, match="needs the effect of single records"):
            pf.MarkovQuilt(NETWORK).calibrate(pf.Function(lambda row: 1), 1.0)

    def test_secrets_that_no_theta_can_tell_apart(self) -> None:
        certain = pf.BayesianNetwork({"a": pf.CPT(["x", "y", "z"], [0.5, 0.5, 0]), "b": pf.CPT(["x", "y"], [1, 0])})
        for make in (pf.MarkovQuilt, pf.LeakagePropagation):
            for impossible in (["b"], [("a", "x", "z")]):
                bound = make(certain, secrets=impossible)
                assert bound.leakage(1.0) == 0.0
                with pytest.raises(ModelError, match="no secret to protect"):
                    bound.calibrate(pf.Count("x"), 1.0)

    def test_calibrations_of_other_models_have_no_active_quilts(self) -> None:
        joint = pf.JointDistribution([["yes"], ["no"]], [0.5, 0.5])
        other = pf.Wasserstein(joint).calibrate(pf.Function(lambda row: int(row[0] == "yes")), 1.0)
        with pytest.raises(QueryError, match="this needs a network and a query that counts or sums"):
            pf.MarkovQuilt(NETWORK).active_quilts(other)


def trees() -> pf.BayesianNetwork:
    """The same nodes without a second parent."""
    return pf.BayesianNetwork(
        {
            "mother": pf.CPT(["no", "yes"], [0.5, 0.5]),
            "father": pf.CPT(["no", "yes"], [0.75, 0.25]),
            "child": pf.CPT(["no", "yes", "mild"], [[0.8, 0.1, 0.1], [0.5, 0.25, 0.25]], ["mother"]),
            "school": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]], ["child"]),
            "guest": pf.CPT(["no"], [1.0]),
        }
    )


MADE: dict[str, InfluenceBound] = {
    "as it is": pf.MarkovQuilt(NETWORK),
    "a class, with rows": pf.MarkovQuilt([NETWORK, family(0.25)], length=50),
    "quilts": pf.MarkovQuilt(
        NETWORK, {"mother": [["child", "father"], []], "school": [Quilt.of(NETWORK, "school", ["child"])]}
    ),
    "no quilts for one": pf.MarkovQuilt(NETWORK, {"child": []}),
    "names": pf.MarkovQuilt(NETWORK, secrets=["child", "mother"], length=7),
    "pairs": pf.MarkovQuilt(
        NETWORK, secrets=[(pf.RecordIs("child", ["no", "mild"]), pf.RecordIs("child", "yes"))], max_quilts=None
    ),
    "few": pf.MarkovQuilt(NETWORK, max_quilts=1),
    "propagation": pf.LeakagePropagation(trees(), 3, secrets=["mother", ("child", ["no"], ["mild", "yes"])]),
    "group": pf.GroupDP(NETWORK, 9),
}
LOSSES = {"mother": 0.5, "child": 0.2, "school": 0.7}


class TestCopies:
    @pytest.mark.parametrize("name", list(MADE))
    def test_from_settings(self, name: str) -> None:
        made = MADE[name]
        for again in (
            type(made).of(made.theta, made.rows, **made.settings),
            bound_of(made.name, made.theta, made.rows, made.settings),
            pickle.loads(pickle.dumps(made)),
        ):
            assert type(again) is type(made)
            assert again.settings == made.settings
            assert (again.rows, again.secrets) == (made.rows, made.secrets)
            assert again.leakage(LOSSES) == made.leakage(LOSSES)
            assert again.calibrate(COUNT, 1.5).scale == made.calibrate(COUNT, 1.5).scale

    @pytest.mark.parametrize("name", list(MADE))
    def test_settings_are_plain(self, name: str) -> None:
        """What a record in JSON can hold."""
        settings = MADE[name].settings
        assert json.loads(json.dumps(settings)) == settings

    def test_what_they_are(self) -> None:
        assert MADE["as it is"].settings == {"quilts": None, "secrets": None, "max_quilts": 1000}
        assert (MADE["pairs"].settings["max_quilts"], MADE["few"].settings["max_quilts"]) == (None, 1)
        assert MADE["quilts"].settings["quilts"] == {"mother": [["father", "child"], []], "school": [["child"]]}
        assert MADE["pairs"].settings["secrets"] == [["child", ["no", "mild"], ["yes"]]]
        assert MADE["names"].settings["secrets"] == [
            ["child", ["no"], ["yes"]],
            ["child", ["no"], ["mild"]],
            ["child", ["yes"], ["mild"]],
            ["mother", ["no"], ["yes"]],
        ]

    @pytest.mark.parametrize("node", [1, 1.0, True, "1", ("row", 1)], ids=repr)
    def test_nodes_of_any_name(self, node: Any) -> None:
        """Settings name nodes by their labels."""
        network = pf.BayesianNetwork(
            {node: pf.CPT(["no", "yes"], [0.5, 0.5]), "other": pf.CPT(["no", "yes"], STEP, [node])}
        )
        made = pf.MarkovQuilt(network, {node: [["other"]]}, secrets=[node])
        again = pickle.loads(pickle.dumps(made))
        assert again.settings == made.settings
        assert again.leakage(0.5) == made.leakage(0.5)

    def test_nodes_whose_names_look_alike(self) -> None:
        """The copy keeps the same node secret."""
        coin, sure = pf.CPT(["no", "yes"], [0.5, 0.5]), pf.CPT(["no", "yes"], [0.99, 0.01])
        made = pf.MarkovQuilt(pf.BayesianNetwork({1.0: coin, "1.0": sure}), secrets=[1.0])
        again = pickle.loads(pickle.dumps(made))
        assert again.leakage({1.0: 3.0}) == made.leakage({1.0: 3.0}) > 2.0

    def test_they_prove_what_they_were_made_for(self) -> None:
        for name in ("theta", "length", "rows", "secrets", "settings"):
            with pytest.raises(AttributeError):
                setattr(MADE["names"], name, None)


class TestActiveQuilts:
    @pytest.mark.parametrize("network", [*SHAPED[::2], random_network(7, 5), random_network(9, 4)], ids=str)
    @pytest.mark.parametrize("epsilon", [0.5, 4.0])
    def test_they_prove_the_leakage(self, network: Network, epsilon: float) -> None:
        if not has_secrets(network):
            return
        mechanism = pf.MarkovQuilt(model_of(network), max_quilts=None)
        calibration = mechanism.calibrate(pf.Histogram(), epsilon)
        active = mechanism.active_quilts(calibration)
        nodes = [node for node in range(network.size) if network.secrets(node).any()]
        assert [quilt.node for quilt in active] == [f"v{node}" for node in nodes]
        assert max(quilt.leakage for quilt in active) == pytest.approx(calibration.prove_leakage(), rel=1e-12)
        changes = [
            calibration.linear.distance_of(j).max(initial=0, where=network.secrets(j)) for j in range(network.size)
        ]
        distances = [change / calibration.unit_scale for change in changes]  # between values that a node can have
        for node, quilt in zip(nodes, active, strict=True):
            places = [int(str(name)[1:]) for name in quilt.quilt.quilt]
            assert {int(str(name)[1:]) for name in quilt.quilt.nearby} == network.nearby(node, places)
            assert quilt.quilt.checked(model_of(network), quilt.node) == sum(1 << j for j in places)
            loss = sum(distances[j] for j in network.nearby(node, places))
            assert quilt.nearby_loss == pytest.approx(loss, rel=1e-9)
            assert quilt.influence == pytest.approx(network.influence(node, places), rel=1e-9, abs=1e-12)
            if quilt.influence > 1e-9:
                assert set(quilt.secret_pair or ()) <= set(network.states[node])
            assert quilt.leakage <= epsilon * (1 + 1e-12)
            best = network.best(node, distances, lambda weight, influence: weight + influence, network.secrets(node))
            assert quilt.leakage == pytest.approx(best, rel=1e-9)

    def test_of_secrets_only_and_of_the_worst_theta(self) -> None:
        mechanism = pf.MarkovQuilt([NETWORK, family(0.999)], secrets=["school", "mother"])
        calibration = mechanism.calibrate(COUNT, 3.0)
        active = mechanism.active_quilts(calibration)
        assert [quilt.node for quilt in active] == ["mother", "school"]
        for quilt in active:
            alone = [
                pf.MarkovQuilt(theta, secrets=[quilt.node]).leakage(list_of_losses(calibration))
                for theta in (NETWORK, family(0.999))
            ]
            assert quilt.leakage == pytest.approx(max(alone), rel=1e-12)
            assert alone[quilt.theta] == pytest.approx(max(alone), rel=1e-12)

    def test_of_another_mechanisms_noise(self) -> None:
        noise = pf.GroupDP(NETWORK).calibrate(COUNT, 2.0)
        active = pf.MarkovQuilt(NETWORK).active_quilts(noise)
        assert {quilt.node for quilt in active} == {"mother", "father", "child", "school"}
        assert max(quilt.leakage for quilt in active) <= 2.0 * (1 + 1e-12)

    def test_of_given_quilts(self) -> None:
        mechanism = pf.MarkovQuilt(NETWORK, {"mother": [["child", "father"]]}, secrets=["mother"])
        for epsilon, quilt in ((0.1, ()), (50.0, ("father", "child"))):
            (active,) = mechanism.active_quilts(mechanism.calibrate(pf.Count("yes"), epsilon))
            assert active.quilt.quilt == quilt


def list_of_losses(calibration: pf.Calibration) -> list[np.ndarray]:
    return [calibration.linear.distance_of(j) / calibration.unit_scale for j in range(5)]


def test_losses_in_every_form() -> None:
    """Numbers, sequences, mappings by name or label, matrices; the diagonal does not count."""
    network = pf.BayesianNetwork({0: pf.CPT(["x", "y"], [0.5, 0.5]), 1: pf.CPT(["x", "y"], STEP, [0])})
    bound = pf.MarkovQuilt(network)
    forms: list[Any] = [
        [0.3, 0.3],
        (0.3, 0.3),
        np.array([0.3, 0.3]),
        {0: 0.3, "1": 0.3},
        {0: np.full((2, 2), 0.3), 1: [[0.0, 0.3], [0.3, 0.0]]},
        np.full((2, 2, 2), 0.3),
        np.array(0.3),
        np.float64(0.3),
    ]
    for form in forms:
        assert bound.leakage(form) == bound.leakage(0.3)
    assert bound.leakage({0: 0.3}) < bound.leakage(0.3)
    assert bound.leakage({}) == bound.leakage({0: np.eye(2)}) == 0.0


def test_witness() -> None:
    witness = pf.MarkovQuilt(NETWORK, secrets=["mother"]).calibrate(COUNT, 8.0).witness
    assert (witness.theta, witness.length, witness.node) == (0, 5, "mother")
    assert set(witness.active_quilt or ()) <= {"father", "child", "school"}
    assert witness.influence is not None
    if witness.active_quilt:
        assert witness.secret_pair is not None
        assert set(witness.secret_pair) == {"no", "yes"}


def test_quilt_of_finds_the_largest_remote_set() -> None:
    assert Quilt.of(NETWORK, "mother", ["child", "father"]) == Quilt(
        ("mother",), ("father", "child"), ("school", "guest")
    )
    assert Quilt.of(NETWORK, "mother", []) == Quilt(("mother", "child", "school"), (), ("father", "guest"))
    assert Quilt.of(NETWORK, "guest", []) == Quilt(("guest",), (), ("mother", "father", "child", "school"))
    with pytest.raises(ModelError, match="holds the node itself"):
        Quilt.of(NETWORK, "mother", ["mother"])
