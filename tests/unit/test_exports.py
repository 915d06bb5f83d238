import importlib.metadata

import pufferfish as pf
from pufferfish import errors


def test_exports_are_sorted_and_exist() -> None:
    assert pf.__all__ == sorted(pf.__all__)
    for name in pf.__all__:
        assert getattr(pf, name) is not None


def test_nothing_public_is_left_out() -> None:
    public = {
        n
        for n, v in vars(pf).items()
        if not n.startswith("_") and getattr(v, "__module__", "").startswith("pufferfish.")
    }
    assert public <= set(pf.__all__)


TEXT = {"one_line", "printable", "public", "shortened"}
"""Functions for messages, beside the errors."""


def test_every_error_is_in_the_tree_drawn_in_its_module() -> None:
    for name in (n for n in errors.__all__ if n not in TEXT):
        assert issubclass(getattr(errors, name), errors.PufferfishError)
        assert name in (errors.__doc__ or "")


def test_every_error_and_the_version_are_public() -> None:
    assert pf.errors is errors
    for name in (n for n in errors.__all__ if n not in TEXT):
        assert getattr(pf, name) is getattr(errors, name)
        assert name in pf.__all__
    assert pf.__version__ == importlib.metadata.version("pufferfish-privacy")
