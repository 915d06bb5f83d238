"""Proofs of what several releases of the same rows cost together, which check_more.py checks."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_certificate_forgeries import STATES, STAYS, THREE, TWO, disturbed

import pufferfish as pf
from propagation_oracle import chain_law, supremum
from pufferfish.errors import NotApplicableError
from pufferfish.release import certificate
from pufferfish.release.checker import check, check_more

CHECKER = Path(__file__).parents[2] / "certificate" / "check_more.py"
ANY = pf.MarkovChain(TWO.transition_matrix, "any", states=["a", "b"])
QUERIES = [(pf.Histogram(), 0.5), (pf.Count("a"), 0.3), (pf.Transitions(), 0.4)]
THETAS: dict[str, tuple[Any, int]] = {
    "long": (THREE, 1000), "stays": (STAYS, 1000), "two members": ([THREE, THREE], 100), "any": (ANY, 100),
    "forgetting": (pf.ForgettingClass([8, 20], [0.43, 0.9], STATES), 10_000),
}  # fmt: skip


def releases_of(theta: Any, length: int, **hidden: Any) -> tuple[list[Any], list[Any]]:
    """Return noises, and releases of one database with them."""
    noises = [pf.LeakagePropagation(theta, length).calibrate(query, eps, **hidden) for query, eps in QUERIES]
    data = np.resize(noises[0].theta.states, length).tolist()
    return noises, [pf.release(data, noise.query, noise) for noise in noises]


def files_of(folder: Path, releases: list[Any], proof: str) -> list[str]:
    names = [folder / f"r{i}.json" for i in range(len(releases))]
    for release, name in zip(releases, names, strict=True):
        release.to_json(name)
    (folder / "proof.json").write_text(proof)
    return [str(name) for name in (*names, folder / "proof.json")]


def says(*files: str) -> str:
    run = [sys.executable, "-I", "-S", str(CHECKER), *files]
    return subprocess.run(run, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("name", THETAS)
def test_the_total_is_that_of_a_ledger(name: str, tmp_path: Path) -> None:
    theta, length = THETAS[name]
    noises, releases = releases_of(theta, length)
    ledger = pf.Ledger(pf.LeakagePropagation(theta, length), budget=9)
    for noise in noises:
        ledger.spend(noise)
    proof = pf.certify(releases).proof
    epsilon = json.loads(proof)["epsilon"]
    assert ledger.spent * (1 - 1e-6) <= epsilon <= ledger.spent * (1.05 if name in ("any", "stays") else 1 + 1e-5)
    files = files_of(tmp_path, releases, proof)
    assert says(*files[::-1]).startswith("PROVED: these 3 releases, of Transitions, Count, Histogram, together are")
    (tmp_path / "proof.json").write_text(proof.replace(str(epsilon), str(epsilon * (1 - 1e-3))))
    assert says(*files) == "NOT PROVED: theta[0]: more than ε leaks\n"


def test_what_is_not_of_one_table(tmp_path: Path) -> None:
    """Other rows, another Θ, something else that is hidden; and one release more than the proof is of."""
    _, releases = releases_of(THREE, 1000)
    files = files_of(tmp_path, releases, pf.certify(releases).proof)
    assert says(files[0], files[1], files[3]).startswith("PROVED")  # they cost less than all three
    assert says(*files, files[0]).startswith("NOT PROVED: theta[0]: ")
    assert says(*files[:3]).startswith("NOT PROVED: name releases")
    assert says(files[0], files[3]).startswith("NOT PROVED: the proof is damaged")
    others = {
        "other rows": releases_of(THREE, 999),
        "other Θ": releases_of([THREE, THREE], 1000),
        "hide other": releases_of(THREE, 1000, within=[("a", "b")]),
    }
    for what, (_, another) in others.items():
        another[0].to_json(tmp_path / "other.json", overwrite=True)
        assert what in says(str(tmp_path / "other.json"), *files[1:])
        with pytest.raises(NotApplicableError, match=what):
            pf.certify([another[0], *releases[1:]])


@pytest.mark.parametrize("seed", range(6))
def test_false_totals_are_not_proved(seed: int) -> None:
    """Against linear programs over all densities of short chains: no total below the truth, by no proof."""
    rng, length = np.random.default_rng(seed), 4 - seed % 2
    chain = pf.MarkovChain(rng.dirichlet([0.7, 0.7], 2).round(6), states=["a", "b"])
    noises = [pf.LeakagePropagation(chain, length).calibrate(query, eps) for query, eps in QUERIES[:2]]
    claims = [certificate.claim_of(certificate.record_of_noise(noise)) for noise in noises]
    claim: Any = check_more.together(claims, check.Fraction(1, 10**6))
    losses = np.array([[float(v) for v in row] for row in claim.losses])
    law = chain_law(chain.stationary_distribution, chain.transition_matrix, length)
    truth = supremum(law, np.broadcast_to(losses, (length, 2, 2)))
    proof, leakage = certificate.proved(claim)
    assert leakage == pytest.approx(truth, rel=1e-6)
    for _ in range(50):
        false: Any = check_more.together(claims, check.Fraction(truth * (1 - 10.0 ** -rng.uniform(1, 6))))
        false.pays(claim.losses, claim.step)
        with pytest.raises(check.NotProved):
            check.prove(false, {"digits": 9, "members": [disturbed(proof[0], rng)]})
