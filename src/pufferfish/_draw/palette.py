"""Colours and marks: the same mechanism looks the same in every picture, and all eyes can tell them apart.

Colours are Okabe and Ito's; as shapes differ too, nothing rests on colour alone.
"""

__all__ = ["BLUE", "INK", "LINES", "MARKS", "ORANGE", "PALE", "mark_of"]

BLUE, INK, PALE, ORANGE = "#0072B2", "#1a1a1a", "#9ecae1", "#D55E00"

LINES = (
    (BLUE, "o"),
    (ORANGE, "s"),
    ("#009E73", "D"),
    ("#CC79A7", "v"),
    ("#E69F00", "^"),
    ("#56B4E9", "X"),
    (INK, "P"),
    ("#8c8c8c", "d"),
)
"""Colours and markers of lines in one panel, in this order."""

MARKS = {
    "entry-dp": ("#1a1a1a", "+"),
    "participant-dp": ("#1a1a1a", "P"),
    "group-dp": ("#8c8c8c", "X"),
    "gk16": ("#D55E00", "s"),
    "mqm-approx": ("#E69F00", "^"),
    "mqm-exact": ("#009E73", "D"),
    "markov-quilt": ("#1a1a1a", "d"),
    "propagation": (BLUE, "o"),
    "wasserstein": ("#CC79A7", "v"),
    "exact-laplace": ("#56B4E9", "*"),
    "bayesian-dp": ("#6A3D9A", "<"),
    "temporal": ("#8B4513", ">"),
}
"""Colour and marker of every mechanism, and of bounds of other papers, by name."""

_ANY_OTHER = (ORANGE, "h")


def mark_of(mechanism: str) -> tuple[str, str]:
    """Return the colour and marker of a mechanism by its name; those that have none of their own share one."""
    return MARKS.get(mechanism, _ANY_OTHER)
