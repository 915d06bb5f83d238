"""Write tables of what the code knows into docs/results/, then fill them in by ``fill_results.py``.

Run it from the root: ``python -m scripts.from_code``.

``covers``: which mechanism covers which kind of Θ. Each is given the examples that every kind has of itself; "some": it
covers some of them, and says why not the others. ``reading``: the options of commands that say how a table is read.
"""

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

import pufferfish as pf
from paper.audit.laws import examples_of, kinds_of_chains
from pufferfish.cli import main as program
from pufferfish.cli._tables import Reading
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms import MECHANISMS
from pufferfish.theta.chain_class import CHAIN_MODELS

NETWORK = pf.BayesianNetwork({"a": pf.CPT(["0", "1"], [0.5, 0.5]), "b": pf.CPT(["0", "1"], [[0.9, 0.1]] * 2, ["a"])})
LISTED = pf.JointDistribution([[0, 0], [1, 1]], [0.5, 0.5])
LONG = 100


def kinds() -> dict[str, list[Any]]:
    """Return classes Θ by their kinds."""
    chains = ([[0.5, 0.5]] * 2, [[0.6, 0.4], [0.4, 0.6]], [[0.9, 0.1], [0.2, 0.8]], [[0, 1], [1, 0]])
    lists = {kind.__name__: list(examples_of(kind).values()) for kind in CHAIN_MODELS}
    wholes = {name: list(examples_of(kind).values()) for name, kind in kinds_of_chains().items()}
    del wholes["ChainClass"]
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


def covers() -> list[list[str]]:
    found = kinds()
    lines = [["mechanism", *(f"`{kind}`" for kind in found)]]
    return lines + [[f"`{kind.__name__}`", *(answer(kind, some) for some in found.values())] for kind in MECHANISMS]


def reading() -> list[list[str]]:
    commands = [program.get_command(click.Context(program), name) for name in ("fit", "release")]
    options = {option.name: option for command in commands if command for option in command.params}
    names = [*(field.name for field in fields(Reading)), "clock", "order"]
    shown = [(f"--{name.replace('_', '-')}", getattr(options[name], "help", None) or "") for name in names]
    return [["option", "meaning"], *([f"`{name}`", text.replace("|", "\\|")] for name, text in shown)]


TABLES = {"covers": ("What covers what", covers), "reading": ("Options that say how a table is read", reading)}


def page(name: str) -> str:
    """Return a table as a file of results."""
    title, made = TABLES[name]
    head, *rows = made()
    lines = [head, ["---"] * len(head), *rows]
    return f"# {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    for name in TABLES:
        (Path(__file__).parent.parent / "docs" / "results" / f"{name}.md").write_text(page(name))
