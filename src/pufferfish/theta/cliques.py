"""Independent cliques of exchangeable people: the paper's flu models (Sections 2.2 and 3).

In a clique everybody meets everybody, so that who has it tells nothing but how many do: given the number N of infected
people, every set of N people is equally likely. A clique is then the law of N alone, and everything follows from it in
closed form, whatever its size.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from pufferfish._base.checked import is_list, listed, whole_number
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.view import Grid, Shown, View, counted
from pufferfish.errors import ModelError
from pufferfish.theta.joint_distribution import exact_law, exact_number
from pufferfish.theta.states import listed_labels


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Cliques(Shown, ReadOnly):
    """Independent cliques of exchangeable people, each of whom has something (such as flu) or not.

    Parameters
    ----------
    laws : sequence of sequences of float or Fraction
        For each clique of n people the probabilities P(N = j), j = 0 … n, of how many have it. One such sequence is one
        clique.
    states : pair, default ("0", "1")
        Names of not having it and of having it. What does not fit is a :class:`ModelError`.

    Examples
    --------
    The paper's example, and a union of cliques with P(N = j) ∝ e^{2j}:

    >>> flu = Cliques([0.1, 0.15, 0.5, 0.15, 0.1], states=["healthy", "flu"])
    >>> [float(p) for p in flu.given_member(0, 1)]
    [0.0, 0.075, 0.5, 0.225, 0.2]
    >>> import math
    >>> Cliques.of_sizes([4, 4, 2], lambda n: [math.exp(2 * j) for j in range(n + 1)]).groups
    (4, 4, 2)
    """

    kind: ClassVar[str] = "cliques"
    laws: tuple[tuple[Fraction, ...], ...]
    states: tuple[str, ...]

    def __init__(self, laws: Sequence[Any], *, states: Sequence[Any] = ("0", "1")) -> None:
        expected = "P(N = 0), …, P(N = n) of each clique, such as [[0.5, 0.25, 0.25]]"
        entries = listed(laws, "laws", expected, ModelError)
        if entries and not is_list(entries[0]):
            entries = [entries]
        if not entries:
            raise ModelError("laws is empty: give P(N = j), j = 0 … n, of at least one clique")
        laws = tuple(
            exact_law(listed(law, f"laws[{c}]", "probabilities", ModelError), f"laws[{c}]")
            for c, law in enumerate(entries)
        )
        for c, law in enumerate(laws):
            if len(law) < 2:
                raise ModelError(f"laws[{c}] has {len(law)} entries, expected P(N = 0), …, P(N = n) with n at least 1")
        self._keep(laws=laws, states=listed_labels(states, "states"))
        if len(self.states) != 2:
            raise ModelError(
                f"states has {len(self.states)} names, expected two: the state of people who do not have it, then of "
                "people who have it"
            )

    def __repr__(self) -> str:
        return f"Cliques(<{counted(len(self.laws), 'clique')} of {counted(sum(self.groups), 'person', 'people')}>)"

    def _view(self) -> View:
        sizes = [[i, n] for i, n in enumerate(self.groups)]
        law = [[j, float(p)] for j, p in enumerate(self.laws[0])]
        caption = f"The first clique: how many of its {self.groups[0]} people are {self.states[1]!r}, and how probable"
        title = f"{counted(len(self.laws), 'clique')} of {counted(sum(self.groups), 'person', 'people')}"
        grids = [Grid("Sizes", ["clique", "people"], sizes), Grid(caption, ["people", "probability"], law)]
        return View(title, {"states": ", ".join(self.states)}, grids)

    @classmethod
    def of_sizes(
        cls, sizes: Iterable[int], law: Callable[[int], Sequence[Any]], *, states: Sequence[Any] = ("0", "1")
    ) -> "Cliques":
        """Return cliques of given sizes, ``law(n)`` giving n + 1 weights of N = 0 … n, which need not sum to 1.

        ``states`` names not having it, and having it.
        """
        if not callable(law):
            raise ModelError(f"law is {law!r}, expected a function from a size n to n + 1 weights")
        laws: dict[int, tuple[Fraction, ...]] = {}
        whole = [_size(n) for n in listed(sizes, "sizes", "whole numbers such as [3, 5]", ModelError)]
        for n in dict.fromkeys(whole):
            given = map(exact_number, listed(law(n), f"law({n})", f"{n + 1} weights", ModelError))
            weights = [weight for weight in given if weight is not None]
            if n < 1 or len(weights) != n + 1 or min(weights) < 0 or not sum(weights):
                raise ModelError(
                    f"law({n}) gives {len(weights)} numbers, expected {n + 1}, none negative and not all 0: N = 0 … {n}"
                )
            laws[n] = tuple(w / sum(weights) for w in weights)
        return cls([laws[n] for n in whole], states=states)

    @property
    def groups(self) -> tuple[int, ...]:
        """Sizes of the cliques."""
        return tuple(len(law) - 1 for law in self.laws)

    def given_member(self, clique: int, has_it: int) -> tuple[Fraction, ...]:
        """Law of a clique's N given that one of its members has it (1) or not (0); all 0 if that is impossible.

        P(N = j | X_i = 1) ∝ j P(N = j) and P(N = j | X_i = 0) ∝ (n − j) P(N = j).
        """
        return self.given_members(clique, has_it, 1 - has_it)

    def given_members(self, clique: int, having: int, lacking: int) -> tuple[Fraction, ...]:
        """Law of a clique's N given that ``having`` named members have it and ``lacking`` others do not.

        P(N = j | …) ∝ P(N = j) · j (j−1) … (j−having+1) · (n−j) … (n−j−lacking+1); all 0 if that is impossible.
        """
        law = self.laws[clique]
        n = len(law) - 1
        # n (n − 1) … of so many factors is how many ways there are to choose them in turn
        weights = [mass * math.perm(j, having) * math.perm(n - j, lacking) for j, mass in enumerate(law)]
        total = sum(weights, Fraction(0))
        return tuple(w / total for w in weights) if total else tuple(weights)


def _size(size: Any) -> int:
    try:
        return whole_number(size)
    except TypeError:
        raise ModelError(f"sizes holds {size!r}, expected whole numbers of people such as 3") from None
