import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import pufferfish as pf
from pufferfish import errors


def test_a_misspelt_name_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'LeakageProp'\. Did you mean 'LeakagePropagation'\?$"):
        pf.LeakageProp  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(pf, "nothing_of_the_kind")


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


TEXT = {"one_line", "printable", "public", "shortened", "warn"}
"""Functions for messages, beside the errors."""


def test_every_error_is_in_the_tree_drawn_in_its_module() -> None:
    for name in (n for n in errors.__all__ if n not in TEXT):
        assert issubclass(getattr(errors, name), errors.PufferfishError | errors.ReleaseWarning)
        assert name in (errors.__doc__ or "")


def test_every_error_and_the_version_are_public() -> None:
    assert pf.errors is errors
    for name in (n for n in errors.__all__ if n not in TEXT):
        assert getattr(pf, name) is getattr(errors, name)
        assert name in pf.__all__
    assert pf.__version__ == importlib.metadata.version("pufferfish-privacy")


FRESH = """
import sys, threading
import pytest

import pufferfish as pf
assert "numpy" not in sys.modules and "__version__" in dir(pf) and set(pf.__all__) < set(dir(pf))
import pufferfish.robustness, pufferfish.theta.states  # a module that is named like a function
barrier, wrong = threading.Barrier(12), []
def use(name):
    barrier.wait()
    try:
        getattr(pf, name)
    except BaseException as error:
        wrong.append((name, error))
threads = [threading.Thread(target=use, args=(name,)) for name in pf.__all__[::9][:12]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
assert set(pf.__all__) <= set(vars(pf))  # all of them at once: later threads find nothing half loaded
assert callable(pf.release) and callable(pf.robustness) and pf.ledger.Ledger is pf.Ledger
assert not any(hasattr(pf, name) for name in ("nothing_of_this_name", "ledger.book", "a.b", ""))
"""


@pytest.mark.slow
def test_names_are_loaded_at_their_first_use_by_whichever_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FRESH], capture_output=True, text=True, cwd=Path(pf.__file__).parents[1]
    )
    assert done.returncode == 0, done.stderr
