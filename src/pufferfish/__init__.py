"""Private statistics of correlated records: Pufferfish privacy for time series.

A week of one person's activity, a household's power meter: there one record tells about its neighbours, and noise
made for independent records leaks. This package calibrates noise that accounts for the correlation, adds it, and
writes down what was promised.

The way through: describe what an adversary may believe (:class:`MarkovChain`, or a list of them), choose a
mechanism and calibrate it to a query (public things only), read the table, release.

The public names stand in ``__init__.pyi``. Each is loaded when it is first used, so that a program that needs a few of
them starts soon.
"""

import sys
from collections.abc import Callable
from typing import Any, cast

import lazy_loader  # pyright: ignore[reportMissingTypeStubs]

from pufferfish import starting

starting.end_quietly()

_load, __dir__, __all__ = cast(
    "tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]", lazy_loader.attach_stub(__name__, __file__)
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        import importlib.metadata

        return importlib.metadata.version("pufferfish-privacy")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    return _load(name)
