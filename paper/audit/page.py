"""The page of the audit: promised and true losses, and the controls."""

from collections.abc import Sequence

from paper.audit.cases import Audited, audited, audited_shapes, controls_caught, sampled_releases
from paper.experiments.sampling import stream

__all__ = ["Report", "report"]

_HEAD = """# Audit

Made by `python -m paper audit --output docs/audit.md`, which needs no data. For each mechanism, small model, query and
ε: the loss that is promised, and the loss that really occurs. Losses are natural logarithms.

- A number alone is exact: every database of the model is enumerated, and the worst output is sought for each record and
  each two of its values.
- ≥ stands before a lower bound. Of long chains: what outputs far out in every direction tell (sign tilts). Of a
  continuum: the exact loss of some of its chains, such as those at its corners, from stationary starts.
- "Best noise" is the noise of the measurements that `noise="best"` chose. Three releases of one ledger are seen
  together. By randomised response each record is told truly, or not: a differentially private algorithm that spends
  `record_epsilon`.

A mechanism whose true loss is far below the promise is sound, and adds more noise than it needs. What the audit cannot
see: other models, longer chains, and faults that appear only there. The proofs are in [docs/proofs](proofs/README.md).
"""


class Report:
    """What an audit found.

    Parameters
    ----------
    lines : list of Audited
        Mechanisms.
    controls : list of (str, float, str)
        What is broken on purpose, the loss that shows it at ε = 1, and how it was found.
    sampled : list of (str, float, float)
        Mechanisms whose real releases were sampled: ε, and a lower confidence bound on the loss.
    """

    def __init__(
        self,
        lines: Sequence[Audited],
        controls: Sequence[tuple[str, float, str]],
        sampled: Sequence[tuple[str, float, float]],
    ) -> None:
        self.lines, self.controls, self.sampled = lines, controls, sampled

    @property
    def holds(self) -> bool:
        """Whether every mechanism keeps its promise, and every control is caught."""
        kept = all(line.holds for line in self.lines) and all(loss <= epsilon for _, epsilon, loss in self.sampled)
        return kept and all(loss > 1 for _, loss, _ in self.controls)

    def __str__(self) -> str:
        kept = sum(line.holds for line in self.lines)
        caught = sum(loss > 1 for _, loss, _ in self.controls)
        text = [
            _HEAD,
            f"{kept} of {len(self.lines)} promises hold; {caught} of {len(self.controls)} controls are caught.",
            "\n## Mechanisms\n",
            "| model | records | query | mechanism | promised | true loss | |",
            "|---|---|---|---|---|---|---|",
            *(
                f"| {a.model} | {a.records} | {a.query} | {a.mechanism} | {a.promised:g} | "
                f"{'' if a.exact else '≥ '}{a.loss:.4f} | {'' if a.holds else '**broken**'} |"
                for a in self.lines
            ),
            "\n## Real releases, sampled\n",
            "Databases are drawn from θ given one value of a record in the middle, and given the other, and released "
            "for real, noise and all. The event that tells them apart best is chosen on one half of the releases and "
            "tested on the other. The loss is at least this, with 99.9% confidence.\n",
            "| mechanism, query | promised | loss at least |",
            "|---|---|---|",
            *(f"| {name} | {epsilon:g} | {loss:.3f} |" for name, epsilon, loss in self.sampled),
            "\n## Controls: broken on purpose, at ε = 1\n",
            "| what is wrong | loss | found by |",
            "|---|---|---|",
            *(
                f"| {name} | {loss:.3f}{'' if loss > 1 else ' **not caught**'} | {how} |"
                for name, loss, how in self.controls
            ),
        ]
        return "\n".join(text) + "\n"


def report(seed: int = 20170514) -> Report:
    """Audit all mechanisms, and the controls; the seed is of the databases, not of the noise."""
    rng = stream(seed, "audit")
    return Report([*audited(), *audited_shapes()], list(controls_caught(rng)), list(sampled_releases(rng)))
