"""Every query on the states of records, with an example of each of its kinds; a new query has a line here."""

import pufferfish as pf
from pufferfish.queries import Query

__all__ = ["EXAMPLES", "STATES"]

STATES = ["a", "b"]

EXAMPLES: dict[type[Query], list[Query]] = {
    pf.Histogram: [pf.Histogram(), pf.Histogram(relative=False)],
    pf.Count: [pf.Count("a")],
    pf.Frequency: [pf.Frequency("a")],
    pf.Sum: [pf.Sum([0, 1.5])],
    pf.Mean: [pf.Mean([0, 1.5])],
    pf.CDF: [pf.CDF(), pf.CDF(relative=False)],
    pf.Quantiles: [pf.Quantiles([0.1, 0.5])],
    pf.Transitions: [pf.Transitions(), pf.Transitions(relative=True)],
    pf.Switches: [pf.Switches(), pf.Switches(relative=True)],
    pf.Bouts: [pf.Bouts("a")],
    pf.Joint: [pf.Joint(["u", "v"]), pf.Joint(["v", "u"], relative=False)],
    pf.Marginals: [pf.Marginals(), pf.Marginals(relative=False)],
}
