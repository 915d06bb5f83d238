"""Print which mechanism covers which kind of Θ, asked of the mechanisms: ``> docs/results/covers.md``.

Each is given the examples that every kind has of itself. "some": it covers some of them, and says why not the others.
"""

from typing import Any

import pufferfish as pf
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms import MECHANISMS
from pufferfish.theta.chain_class import CHAIN_MODELS, CONTINUA

NETWORK = pf.BayesianNetwork({"a": pf.CPT(["0", "1"], [0.5, 0.5]), "b": pf.CPT(["0", "1"], [[0.9, 0.1]] * 2, ["a"])})
LISTED = pf.JointDistribution([[0, 0], [1, 1]], [0.5, 0.5])
LONG = 100


def kinds() -> dict[str, list[Any]]:
    """Return classes Θ by their kinds."""
    chains = ([[0.5, 0.5]] * 2, [[0.6, 0.4], [0.4, 0.6]], [[0.9, 0.1], [0.2, 0.8]], [[0, 1], [1, 0]])
    lists = {kind.__name__: list(kind.examples().values()) for kind in CHAIN_MODELS}
    wholes = {kind.__name__: list(kind.examples().values()) for kind in CONTINUA.values()}
    wholes["BinaryChainInterval"] += [pf.BinaryChainInterval(0.45, 0.55), pf.BinaryChainInterval(0.7, 0.7)]
    return {
        "MarkovChain": [pf.MarkovChain(matrix) for matrix in chains],
        **lists,
        **wholes,
        "BayesianNetwork": [NETWORK],
        "JointDistribution": [LISTED],
        "Cliques": [pf.Cliques([0.1, 0.15, 0.5, 0.15, 0.1], states=["healthy", "flu"])],
    }


def answer(mechanism: Any, examples: list[Any]) -> str:
    """Return whether a mechanism covers all examples, some, or none."""
    covered = []
    for theta in examples:
        try:
            mechanism.of(
                theta, None if isinstance(theta, pf.BayesianNetwork | pf.JointDistribution | pf.Cliques) else LONG
            )
            covered.append(True)
        except NotApplicableError:
            covered.append(False)
    return "yes" if all(covered) else "some" if any(covered) else ""


def table() -> str:
    """Return the table as a file of results."""
    found = kinds()
    lines = [["mechanism", *(f"`{kind}`" for kind in found)], ["---"] * (len(found) + 1)]
    lines += [[f"`{kind.__name__}`", *(answer(kind, some) for some in found.values())] for kind in MECHANISMS]
    return "# What covers what\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(table())
