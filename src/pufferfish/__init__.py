"""Private statistics of correlated records: Pufferfish privacy for time series.

A week of one person's activity, a household's power meter: there one record tells about its neighbours, and noise
made for independent records leaks. This package calibrates noise that accounts for the correlation, adds it, and
writes down what was promised.

The way through: describe what an adversary may believe (:class:`MarkovChain`, or a list of them), choose a
mechanism and calibrate it to a query (public things only), read the table, release.

The public names stand in ``__init__.pyi``. They are loaded when one of them is first used, so that what needs none of
them, such as ``pufferfish --help``, starts soon.
"""

import importlib
import importlib.util
import threading
from collections.abc import Callable
from typing import Any, cast

import lazy_loader

_load, _, __all__ = cast(
    "tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]", lazy_loader.attach_stub(__name__, __file__)
)
_ONE_AT_A_TIME = threading.RLock()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata

        return metadata.version("pufferfish-privacy")
    # all at once, and in one order: threads that load parts of a package would wait for each other's
    with _ONE_AT_A_TIME:
        if name in __all__:
            for each in __all__:
                _load(each)
            return globals()[name]
        if _is_module(name):
            return importlib.import_module(f"{__name__}.{name}")
    if name.startswith("_"):  # tools ask for many of these and want no advice
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pufferfish._base.words import did_you_mean

    said = f"module {__name__!r} has no attribute {name!r}."
    raise AttributeError(f"{said}{did_you_mean(name, __all__)}".rstrip("."))  # of no object: Python would guess too


def _is_module(name: str) -> bool:
    """Whether a part of this package has this name."""
    plain = name.isidentifier() and not name.startswith("_")
    return plain and importlib.util.find_spec(f"{__name__}.{name}") is not None


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
