"""The page of the audit: promised and true losses, and the controls."""

from collections.abc import Sequence

from paper.audit.cases import Audited, audited, audited_shapes, controls_caught, sampled_releases
from paper.experiments.sampling import stream

__all__ = ["Report", "report"]

_HEAD = """# Audit

Made by `python -m paper audit --output docs/audit.md`, without data. Do mechanisms keep their promise? For small
models, the loss that really occurs is computed from the definition and compared with the ε that is promised.

**{kept} of {lines} promises hold, and {caught} of {controls} mechanisms that are broken on purpose are caught.**

An audit cannot see other models, longer chains, or faults that appear only there: for these there are
[proofs](proofs/README.md). A true loss far below the promise is sound; it means more noise than is needed.
"""
_HOW = """
## True losses

Losses are natural logarithms.

- A number is exact: every database of the model is enumerated. The worst output is sought for each record and each two
  of its values.
- ≥ marks a lower bound. For long chains it comes from extreme outputs. For a continuum it is the exact loss of some of
  its chains.
- "Best noise" is the noise that `noise="best"` chose. Three releases of one ledger are seen together. In randomised
  response an algorithm that spends `record_epsilon` reports each record itself, truly or not.
"""
_SAMPLED = """
## Real releases, sampled

Databases are drawn from θ with one value of a record in the middle, and with another, and released with their noise.
The event that tells the two apart best is chosen on one half of the releases and tested on the other. The loss is at
least this, with 99.9% confidence.
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
        controls, kept = self.controls, sum(line.holds for line in self.lines)
        caught = sum(loss > 1 for _, loss, _ in controls)
        names = list(dict.fromkeys(line.mechanism for line in self.lines))
        epsilons = sorted({line.promised for line in self.lines})
        sampled = [(name, f"{epsilon:g}", f"{loss:.3f}") for name, epsilon, loss in self.sampled]
        broken = [(name, f"{loss:.3f}{'' if loss > 1 else ' **not caught**'}", how) for name, loss, how in controls]
        text = [
            _HEAD.format(kept=kept, lines=len(self.lines), caught=caught, controls=len(controls)),
            _table(("mechanism", "promises", "broken", "true loss / promise"), [self._summary(name) for name in names]),
            _HOW,
            *(self._losses(epsilon) for epsilon in epsilons),
            _SAMPLED,
            _table(("mechanism, query", "promised", "loss at least"), sampled),
            "\n## Controls: broken on purpose, at ε = 1\n",
            _table(("what is wrong", "loss", "found by"), broken),
        ]
        return "\n".join(text) + "\n"

    def _summary(self, name: str) -> tuple[str, ...]:
        own = [line for line in self.lines if line.mechanism == name]
        shares = [line.loss / line.promised for line in own]
        broken = sum(not line.holds for line in own)
        return name, str(len(own)), str(broken), f"{min(shares):.2f} to {max(shares):.2f}"

    def _losses(self, epsilon: float) -> str:
        """Return the table of one ε: a row for each model and query, a column for each mechanism."""
        rows: dict[tuple[str, str, str], dict[str, str]] = {}
        lines = [line for line in self.lines if line.promised == epsilon]
        for line in lines:
            cells = rows.setdefault((line.model, str(line.records), line.query), {})
            cell = f"{'' if line.exact else '≥ '}{line.loss:.4f}{'' if line.holds else ' **broken**'}"
            cells[line.mechanism] = ", ".join(filter(None, (cells.get(line.mechanism), cell)))
        names = list(dict.fromkeys(line.mechanism for line in lines))
        queries: dict[tuple[str, ...], list[str]] = {}  # those with equal losses share a row
        for (model, records, query), found in rows.items():
            queries.setdefault((model, records, *(found.get(name, "") for name in names)), []).append(query)
        cells = [(model, records, "; ".join(some), *losses) for (model, records, *losses), some in queries.items()]
        return f"### ε = {epsilon:g}\n\n{_table(('model', 'records', 'query', *names), cells)}\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


def report(seed: int = 20170514) -> Report:
    """Audit all mechanisms, and the controls; the seed is of the databases, not of the noise."""
    rng = stream(seed, "audit")
    return Report([*audited(), *audited_shapes()], list(controls_caught(rng)), list(sampled_releases(rng)))
