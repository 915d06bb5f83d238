r"""Markov chains whose habits follow a public clock: another transition matrix at every phase.

:math:`P_\varphi` governs the steps that begin at a record of phase φ. The clock is known to everybody: the hour of the
day, the weekday, or plain phases, one for each step. A chain of records may begin at any phase, so what holds of
:class:`PeriodicChain` holds whichever phase its first record is at.

References: ``docs/proofs/periodic.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.checked import probabilities
from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish._base.view import Shown, View, counted
from pufferfish._core.chains.markov import least_cycle, periodic_law
from pufferfish._draw.chart import Heat, Line, Lines
from pufferfish.errors import ModelError, ParameterError
from pufferfish.theta.markov_chain import MarkovChain, initial_law, transition_laws, with_longer_stays
from pufferfish.theta.shown import first_law, law_in_words, transitions
from pufferfish.theta.states import CLOCKS, clock_named, phase_name, state_names, states_by_labels, steps_of_phase


@dataclass(frozen=True, eq=False, repr=False, init=False)
class PeriodicChain(Shown, ReadOnly):
    """A Markov chain with a transition matrix for each phase of a public clock; a :class:`ModelError` if it is none.

    Parameters
    ----------
    matrices : array_like, shape (n, k, k)
        ``matrices[phase][x, y]`` = P(next = y | present = x) for steps that begin in this phase. Each row sums to 1
        (tolerance 1e-9) and is divided by its sum.
    initial_distribution : array_like of shape (k,), "stationary" or "any", default "stationary"
        Law of the first record, whatever phase it is at. ``"stationary"`` is the periodic law: that of a chain that has
        run for ever.
    clock : {None, "hour", "weekday", "weekday-hour"}
        What the phases are: hours of the day (24 matrices, from midnight), days of the week (7, from Monday), hours of
        the week (168, from Monday's first); or, with None, plain phases, any number of them, one for each step.
    step : str or timedelta, optional
        Time between records, such as ``"1min"``: a phase of the clock lasts a whole number of steps. Plain phases need
        none.
    states : sequence, optional
        k distinct names of the states, by default "0", "1", …

    Examples
    --------
    >>> night, day = [[0.99, 0.01], [0.3, 0.7]], [[0.9, 0.1], [0.2, 0.8]]
    >>> hours = [night] * 7 + [day] * 16 + [night]
    >>> chain = PeriodicChain(hours, clock="hour", step="10min", states=["rest", "walk"])
    >>> chain.k, chain.phases, chain.steps_per_phase
    (2, 24, 6)
    """

    matrices: NDArray[np.float64]
    initial_distribution: NDArray[np.float64] | Literal["stationary", "any"]
    clock: str | None
    step: str | None
    states: tuple[str, ...]
    k: int = field(init=False)
    phases: int = field(init=False)
    steps_per_phase: int = field(init=False)
    kind: ClassVar[str] = "periodic Markov chains"
    some_members: ClassVar[tuple[MarkovChain, ...]] = ()

    def __init__(
        self,
        matrices: ArrayLike,
        initial_distribution: ArrayLike | Literal["stationary", "any"] = "stationary",
        *,
        clock: str | None = None,
        step: Any = None,
        states: Sequence[Any] | None = None,
    ) -> None:
        laws = probabilities(matrices, "matrices")
        if laws.ndim != 3 or not laws.shape[0] or laws.shape[1] != laws.shape[2]:
            raise ModelError(
                f"matrices has shape {laws.shape}, expected (phases, k, k): a square matrix for each phase"
            )
        phases, k = laws.shape[:2]
        if k < 2:
            raise ModelError("matrices[0] has one state: a record that never changes has nothing to hide")
        laws = transition_laws(laws, "matrices")
        steps_per_phase = 1
        if clock is not None and clock != "phase":
            try:
                known = clock_named(clock)
            except ParameterError as error:
                raise ModelError(f"{error} None is for plain phases") from None
            if phases != known.phases:
                raise ModelError(
                    f"there are {phases} matrices, expected {known.phases} for the clock {clock!r}: one for each "
                    f"{known.word}"
                )
            step, steps_per_phase = steps_of_phase(known, step)
        elif step is not None:
            raise ModelError(f"step is {step!r}, and plain phases are one step each: leave it out, or name a clock")
        named = state_names(states_by_labels(matrices, states, "matrices"), k)
        self._keep(
            matrices=laws,
            initial_distribution=initial_law(initial_distribution, (k,), named),
            clock=None if clock == "phase" else clock,
            step=step,
            states=named,
            k=k,
            phases=phases,
            steps_per_phase=steps_per_phase,
        )
        if isinstance(self.initial_distribution, str) and self.initial_distribution == "stationary":
            self._check_periodic_law()

    def _view(self) -> View:
        facts = {
            "clock": self.clock or "plain phases, one for each step",
            "step": self.step,
            "first record": law_in_words(self.initial_distribution),
        }
        title = f"Markov chain with a clock: {counted(self.phases, 'matrix', 'matrices')} of {counted(self.k, 'state')}"
        return View(title, facts, [*self._charts([self]), *first_law(self)])

    @property
    def _many(self) -> str:
        """What it has a matrix for, and how many."""
        return f"{self.phases:,} {'phases' if self.clock is None else f'{CLOCKS[self.clock].word}s of the clock'}"

    @staticmethod
    def _charts(chains: "Sequence[PeriodicChain]") -> list[Heat | Lines]:
        """Return the transition probabilities of chains, and the probability of staying by phase."""
        first, every = chains[0], np.array([chain.matrices for chain in chains])
        several = len(chains) > 1
        stay, phases = every.diagonal(axis1=2, axis2=3), np.arange(first.phases, dtype=np.float64)
        low, high = stay.min(axis=0), stay.max(axis=0)
        by_phase = Lines(
            caption=f"Probability of staying in a state for one step, by {first.clock or 'phase'}"
            + (", from the least to the most of all chains" if several else ""),
            lines=[Line(name=state, x=phases, low=low[:, x], high=high[:, x]) for x, state in enumerate(first.states)],
            label=_ALONG.get(first.clock or "", "phase (counted from 0)"),
            value_label=f"probability of staying for one step{_SPREAD if several else ''}",
            head=first.clock or "phase",
            places=[phase_name(first.clock, phase) for phase in range(first.phases)],
            ticks=_phase_ticks(first.clock, first.phases),
        )
        caption = f"Transition probabilities, from the least to the most of {first._many}"
        return [transitions(first.states, every.min(axis=(0, 1)), every.max(axis=(0, 1)), caption), by_phase]

    def __repr__(self) -> str:
        q = self.initial_distribution
        start = repr(q) if isinstance(q, str) else np.array2string(q, precision=6, separator=", ")
        clock = "" if self.clock is None else f", clock={self.clock!r}, step={self.step!r}"
        return f"PeriodicChain(<{self.phases} matrices of {self.k} states>, initial_distribution={start}{clock})"

    @cached_property
    def cycle(self) -> NDArray[np.float64]:
        """The matrices of successive steps, from phase 0 until they repeat; shape (N, k, k)."""
        numbers: dict[bytes, int] = {}
        which = np.array([numbers.setdefault(m.tobytes(), i) for i, m in enumerate(self.matrices)])
        return read_only(self.matrices[least_cycle(np.repeat(which, self.steps_per_phase))])

    @cached_property
    def periodic_distribution(self) -> NDArray[np.float64]:
        """The law at each step of :attr:`cycle` of a chain that has run for ever; shape (N, k); else ModelError."""
        return read_only(periodic_law(self.cycle)[0])

    @property
    def in_words(self) -> str:
        """What its records follow, as releases say it."""
        phase = {None: "phase", "hour": "hour of the day", "weekday": "weekday"}.get(self.clock, "hour of the week")
        every = "" if self.step is None else f", one record every {self.step}"
        runs = "" if self.clock is None else ", and whose clock nobody changes, as to summer time"
        return f"a Markov chain with a transition matrix for each {phase}{every}, which may begin at any {phase}{runs}"

    def slower(self, times: float) -> "PeriodicChain":
        """Return the chain whose stays are so many times as long, in every phase; see :meth:`MarkovChain.slower`."""
        return replace(self, matrices=with_longer_stays(self.matrices, times))

    @property
    def reduced(self) -> "PeriodicChain | MarkovChain":
        """The chain with one matrix that this one is, where all matrices are equal; else itself."""
        if len(self.cycle) > 1:
            return self
        return MarkovChain(self.cycle[0], self.initial_distribution, states=self.states)

    @property
    def mean_matrices(self) -> list[NDArray[np.float64]]:
        """The mean of its matrices."""
        return [self.matrices.mean(axis=0)]

    def phase_of(self, step: int) -> int:
        """Return the phase that a step of :attr:`cycle` belongs to, the first one where several are alike."""
        return step // self.steps_per_phase

    def _check_periodic_law(self) -> None:
        law = self.periodic_distribution
        never = np.flatnonzero(~np.any(law > 0, axis=0))
        if never.size:
            raise ModelError(
                f'initial_distribution="stationary": state {self.states[int(never[0])]!r} has probability 0 at every '
                'phase of the periodic law; give an array or "any", or leave such states out'
            )


_ALONG = {"hour": "hour of the day", "weekday": "weekday", "weekday-hour": "hour of the week (ticks: midnight)"}
"""What the phases of a clock are, along an axis."""

_SPREAD = ",\nfrom the least to the most of all chains"


def _phase_ticks(clock: str | None, phases: int) -> tuple[list[int], list[str]]:
    """Return the phases that are named along an axis, and their names: hours by the three, days by name.

    >>> _phase_ticks("hour", 24)[1][-2:], _phase_ticks("weekday-hour", 168)[1][:2], _phase_ticks(None, 3)[1]
    (['18', '21'], ['Mon', 'Tue'], ['0', '1', '2'])
    """
    if clock in ("weekday", "weekday-hour"):
        ticks = list(range(0, phases, phases // 7))
        return ticks, [phase_name("weekday", day)[:3] for day in range(len(ticks))]
    every = 3 if clock == "hour" else -(-phases // 12)
    ticks = list(range(0, phases, every))
    return ticks, [f"{phase:,}" for phase in ticks]
