"""The paper's own numbers: Song, Wang and Chaudhuri, SIGMOD 2017, Section 5.

Its activity recordings are not public; its household is that of AMPds, of which AMPds2 holds two years.
"""

__all__ = ["ACTIVITY", "ACTIVITY_GROUPS", "POWER", "RUNTIME", "RUNTIME_DATA"]

ACTIVITY_GROUPS = ("cyclists", "older women", "overweight women")

ACTIVITY: dict[str, dict[str, tuple[float | None, ...]]] = {
    "participant-dp": {"aggregate": (0.2918, 0.8746, 0.4763), "individual": (None, None, None)},
    "group-dp": {"aggregate": (0.0834, 0.1138, 0.0458), "individual": (2.3157, 1.7860, 1.1492)},
    "gk16": {"aggregate": (None, None, None), "individual": (None, None, None)},
    "mqm-approx": {"aggregate": (0.0107, 0.0156, 0.0048), "individual": (0.6319, 0.2790, 0.1967)},
    "mqm-exact": {"aggregate": (0.0074, 0.0098, 0.0033), "individual": (0.4077, 0.1742, 0.1316)},
}
"""Table 1: L1 errors of relative frequency histograms, ε = 1, by mechanism, task and group."""

POWER: dict[str, dict[float, float | None]] = {
    "group-dp": {0.2: 516.1555, 1.0: 102.8868, 5.0: 19.8712},
    "gk16": {0.2: None, 1.0: None, 5.0: None},
    "mqm-approx": {0.2: 0.3369, 1.0: 0.0614, 5.0: 0.0113},
    "mqm-exact": {0.2: 0.1298, 1.0: 0.0188, 5.0: 0.0022},
}
"""Table 3: L1 errors of the relative frequency histogram of 51 bins, by mechanism and ε."""

RUNTIME_DATA = ("synthetic", "cyclists", "older women", "overweight women", "electricity")

RUNTIME: dict[str, tuple[float | None, ...]] = {
    "gk16": (6.3589e-4, None, None, None, None),
    "mqm-approx": (1.8458e-4, 0.0064, 0.0060, 0.0028, 0.0567),
    "mqm-exact": (7.6794e-4, 1.5186, 1.2786, 0.6299, 282.2273),
}
"""Table 2: seconds to compute the scale, ε = 1, on a 3.00 GHz Intel Core i5-3330 with 8 GB."""
