"""Model files: a class Θ of chains as JSON, with where it came from."""

import os
from dataclasses import dataclass
from typing import Any

import msgspec

from pufferfish.errors import ModelError, RecordError
from pufferfish.files import read_record, write_whole
from pufferfish.models.bayesian_network import BayesianNetwork
from pufferfish.models.chain_class import ChainClass, as_chain_class
from pufferfish.models.cliques import Cliques
from pufferfish.models.joint_distribution import JointDistribution
from pufferfish.models.markov_chain import MarkovChain
from pufferfish.models.model_class import Theta

__all__ = ["ChainRecord", "Model", "ThetaRecord", "read_model", "write_model"]

FORMAT = "pufferfish-model"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A class Θ and how the tables it describes are read.

    Parameters
    ----------
    theta : ChainClass, MarkovChain or list of MarkovChain
        The class.
    bins : tuple of float, optional
        Edges by which a numeric column becomes the states of Θ.
    step : str, optional
        Time that one transition takes, such as "1min"; a table with another step is refused.
    fitted_on : str, optional
        SHA-256 of the file Θ was fitted to, so that a release of that same file can say that it promises nothing.
    """

    theta: ChainClass
    bins: tuple[float, ...] | None = None
    step: str | None = None
    fitted_on: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", as_chain_class(self.theta))


class ChainRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One member of Θ, as it stands in model and release files."""

    transition_matrix: list[list[float]]
    initial_distribution: list[float] | str

    @classmethod
    def of(cls, chain: MarkovChain) -> "ChainRecord":
        """Return the record of a chain."""
        start = chain.initial_distribution
        return cls(
            transition_matrix=[[float(v) for v in row] for row in chain.transition_matrix],
            initial_distribution=start if isinstance(start, str) else [float(v) for v in start],
        )


class ThetaRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The class Θ under which a promise holds."""

    origin: str
    states: list[str]
    chains: list[ChainRecord]
    kind: str = "Markov chains"
    members: list[dict[str, Any]] = []

    @classmethod
    def of(cls, theta: Theta) -> "ThetaRecord":
        """Return the record of a class."""
        chains = [ChainRecord.of(chain) for chain in theta.chains]
        members = [] if isinstance(theta, ChainClass) else [_plain(member) for member in theta.members]
        return cls(theta.origin, list(theta.states), chains, theta.kind, members)

    def theta(self) -> ChainClass:
        """Return the class, every chain checked as if it were made by hand.

        Raises
        ------
        ModelError
            If a chain is none.
        """
        chains: list[MarkovChain] = []
        if not self.chains and self.members:
            raise ModelError(f"theta is a class of {self.kind}, expected Markov chains")
        for i, chain in enumerate(self.chains):
            start = chain.initial_distribution
            if isinstance(start, str) and start not in ("stationary", "any"):
                raise ModelError(f'initial_distribution of chain {i} is {start!r}, expected "stationary" or "any"')
            chains.append(MarkovChain(chain.transition_matrix, start, states=self.states))  # pyright: ignore[reportArgumentType]
        return ChainClass(tuple(chains), self.origin)


def _plain(member: Any) -> dict[str, Any]:
    """Return a model other than a chain as plain values; fractions as text, which is exact."""
    if isinstance(member, Cliques):
        return {"laws": [[str(p) for p in law] for law in member.laws]}
    if isinstance(member, JointDistribution):
        return {
            "variables": [str(v) for v in member.variables],
            "rows": [list(row) for row in member.rows],
            "probabilities": [str(p) for p in member.probabilities],
        }
    if isinstance(member, BayesianNetwork):
        return {
            "nodes": {
                str(name): {
                    "states": list(cpt.states),
                    "parents": [str(parent) for parent in cpt.parents],
                    "table": cpt.table.tolist(),
                }
                for name, cpt in member.cpts.items()
            }
        }
    return {"laws": "computed by a function of the user's"}


class _ModelRecord(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    format: str
    version: int
    origin: str
    states: list[str]
    chains: list[ChainRecord]
    bins: list[float] | None = None
    step: str | None = None
    fitted_on: str | None = None


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model file.

    Raises
    ------
    RecordError
        If the file cannot be written; nothing is left behind.
    """
    theta = ThetaRecord.of(model.theta)
    record = _ModelRecord(
        format=FORMAT,
        version=VERSION,
        origin=theta.origin,
        states=theta.states,
        chains=theta.chains,
        bins=None if model.bins is None else list(model.bins),
        step=model.step,
        fitted_on=model.fitted_on,
    )
    write_whole(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file, every chain checked as if it were made by hand.

    Raises
    ------
    RecordError
        If the file cannot be read, is cut short, of another version, or describes no valid chain.
    """
    record = read_record(path, _ModelRecord, format_=FORMAT, version=VERSION)
    try:
        theta = ThetaRecord(record.origin, record.states, record.chains).theta()
    except ModelError as error:
        raise RecordError(f"{path} holds no valid model: {error}") from error
    bins = None if record.bins is None else tuple(record.bins)
    return Model(theta=theta, bins=bins, step=record.step, fitted_on=record.fitted_on)
