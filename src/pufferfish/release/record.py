"""A release: its value, its record, and the file that holds it."""

import os
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pufferfish._base.checked import truth
from pufferfish._base.reading import LARGEST, check_path
from pufferfish._base.view import Shown, View, counted
from pufferfish._base.words import at_most
from pufferfish._base.writing import decode_record, read_record, record_kind, write_whole
from pufferfish.errors import PufferfishError, RecordError
from pufferfish.release.check import contradictions
from pufferfish.release.facts import FORMAT, VERSION, ReleaseFields
from pufferfish.release.groups import frame_of
from pufferfish.release.reported import Reported
from pufferfish.release.steps import dwell_times_of, fitted_chain, histogram_of, switches_of
from pufferfish.release.synthetic import synthetic_series
from pufferfish.theta.markov_chain import MarkovChain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pufferfish.release.verification import Verification

__all__ = ["RELEASE", "Release"]

RELEASE = record_kind(
    "release",
    FORMAT,
    "it is the record of an earlier release, which is spent; name another file, or give overwrite=True",
)


class Release(ReleaseFields, Reported, Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A private value and the record of what was promised; made by :func:`release`.

    Parameters
    ----------
    values : list of float
        The released value of each output, after post-processing if there was any; with groups, m values for the first
        group, then m for the next (``value`` has them as an array of shape (groups, m)).
    noisy_values : list of float
        The value as the noise left it.
    postprocessing : Projected, Clipped or None
        What was done to the noisy values; it uses nothing but them and public numbers.
    epsilon, delta : float
        Privacy parameters; ``delta`` is 0 but for (ε, δ) mechanisms.
    query, noise, mechanism, theta, data, accuracy_95 : records
        See their classes.
    promise : str
        What is promised, in one sentence.
    not_promised, assumptions, warnings : list of str
        What is not; what the promise rests on; what a reader must know first.
    created : str
        Time of the release, UTC.
    software : dict of str to str
        Versions.
    ledger : record or None
        Its place among other releases of the same records, where a ledger was kept.
    groups : record or None
        The public groups that the values are of, where the table was read with ``by``.
    calibration : record
        What the proof of its noise is computed from; ``msgspec.UNSET`` in releases of earlier versions.
    """

    def histogram(self) -> dict[str, float]:
        """Return the share of records in each state, from a release of transitions; it costs no privacy.

        This and what follows use the noisy counts and public numbers alone: the nearest counts that are not negative,
        add up to the number of steps, and enter each state as often as they leave it.

        Raises
        ------
        QueryError
            If the release is not of transitions.
        """
        return histogram_of(self)

    def chain(self) -> MarkovChain:
        """Return a fitted chain, from a release of transitions; it costs no privacy.

        Half a step is added to each count, so that no transition is impossible because noise hid it. Noise for other
        releases of the same records must not be calibrated to it alone: the chain says what the records are like, not
        what an adversary may believe.

        Raises
        ------
        QueryError
            If the release is not of transitions.
        """
        return fitted_chain(self)

    def dwell_times(self) -> dict[str, float]:
        """Return how many records in a row each state lasts in the mean, from a release of transitions.

        Raises
        ------
        QueryError
            If the release is not of transitions.
        """
        return dwell_times_of(self)

    def switches(self) -> float:
        """Return how many steps change the state, from a release of transitions or of switches.

        Raises
        ------
        QueryError
            If the release is of something else.
        """
        return switches_of(self)

    def synthetic(self, length: int, series: int | None = None, *, seed: int | None = None) -> list[Any]:
        """Return a synthetic series of states, drawn from the fitted chain; it costs no privacy.

        Parameters
        ----------
        length : int
            Records of the series.
        series : int, optional
            How many series; by default one, which is returned by itself.
        seed : int, optional
            The same seed gives the same series. It has nothing to do with the noise of the release, which was drawn
            before, and which nothing can seed.

        Returns
        -------
        list of str, or list of these
            The states.

        Raises
        ------
        QueryError
            If the release is not of transitions.
        ParameterError
            If a number is none.
        """
        return synthetic_series(self, length, series, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain numbers, texts, lists and dicts."""
        return msgspec.to_builtins(self)

    def to_frame(self, of: Literal["values", "quantiles"] | None = None, *, into: str = "polars") -> Any:
        """Return the values as a table: a row for each output, of each group if there are any.

        Columns: one for every grouping, ``output``, ``records`` (of the group), ``value``, ``noisy_value`` where values
        were post-processed, and ``error_95``, which the noisy value exceeds with probability at most 5%. Groupings
        whose groups are all named by whole numbers, such as hours, are columns of whole numbers.

        Parameters
        ----------
        of : {"values", "quantiles"}, optional
            By default the quantiles where they were asked for, a row for each with columns ``quantile``, ``state``,
            ``low_95`` and ``high_95``; else the values.
        into : {"polars", "pandas", "pyarrow"}, default "polars"
            The library whose table it is.

        Raises
        ------
        ParameterError
            If there are no quantiles, or the library is another one or not installed.
        """
        return frame_of(self, of, into)

    def to_json(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> str:
        """Return the record as JSON, and write it to a file if a path is given.

        Parameters
        ----------
        path : path-like, optional
            The file.
        overwrite : bool, default False
            Whether the record of an earlier release may be replaced: what it says is spent, and nobody can check it
            without its record. No other file ever is.

        Raises
        ------
        RecordError
            If the file cannot be written, or is there already; nothing is left behind.
        """
        insisted, content = truth(overwrite, "overwrite"), self._encoded()
        if path is not None:
            write_whole(path, content, RELEASE, overwrite=insisted)
        return content.decode()

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "Release":
        """Read a release file, validated: what follows from something else in it is computed again.

        Raises
        ------
        RecordError
            If the file is damaged, of another version, or contradicts itself.
        """
        found = read_record(path, cls, format_=FORMAT, version=VERSION, complete=True)
        try:
            found.check()
        except RecordError as error:
            raise RecordError(f"{path} contradicts itself: {error}") from error
        return found

    def check(self) -> None:
        """Compute again what follows from something else in the record, and that it can be written.

        Raises
        ------
        RecordError
            If the record contradicts itself, or holds text that no file can.
        """
        try:
            self.theta.check()
            wrong = next(contradictions(self), None)
        except (PufferfishError, ValueError, TypeError, OverflowError) as error:
            raise RecordError(str(error)) from error
        if wrong is not None:
            raise RecordError(f"expected that {wrong}")
        self._encoded()

    def check_readable(self) -> None:
        """As :meth:`check`, and that what is written is read again as it is.

        Raises
        ------
        RecordError
            If not.
        """
        self.check()
        content = self._encoded()
        again = decode_record(content, "it", type(self), format_=FORMAT, version=VERSION, complete=True)
        if again != self:
            raise RecordError("it is read again as another record")
        if len(content) > LARGEST:
            raise RecordError(f"it would have more than {LARGEST >> 20} MiB")

    def __repr__(self) -> str:
        noise = f"{self.mechanism.title}, ε = {at_most(self.epsilon)}, noise scale {self.scale:.6g}"
        return f"Release({self.query.kind}, {counted(len(self.values), 'value')}, {noise})"

    def _view(self) -> View:
        from pufferfish.release.show.views import of_release

        return of_release(self)

    def __str__(self) -> str:
        from pufferfish.release.show.text import summary

        return summary(self, most=20)

    def verify(self, *, model: Any = None, ledger: Any = None, table: Any = None) -> "Verification":
        """Compute the proof again, and all that follows from something else; arguments as for :func:`verify`."""
        from pufferfish.release.verify import verify

        return verify(self, model=model, ledger=ledger, table=table)

    def _encoded(self) -> bytes:
        try:
            return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"
        except TypeError as error:
            raise RecordError(f"the record holds what no file can: {error}") from error
        except UnicodeEncodeError as error:
            raise RecordError(f"the record holds {error.object!r}, which is no text that UTF-8 can write") from error

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Draw the value with error bars of the noise (95% for each output); write it if a path is given.

        Raises
        ------
        ParameterError
            If matplotlib is not installed.
        RecordError
            If the picture cannot be written.
        """
        from pufferfish._draw.figure import save_figure
        from pufferfish.release.show.picture import draw_release

        if path is not None:
            check_path(path)
        figure = draw_release(self)
        if path is not None:
            save_figure(figure, path)
        return figure
