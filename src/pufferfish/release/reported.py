"""What every kind of release can do for its readers: a page that a browser shows."""

import os
from typing import Any

__all__ = ["Reported"]


class Reported:
    """A record of a release that has a page of its own (:mod:`pufferfish.release.show.page`)."""

    __slots__ = ()

    def report(
        self: Any,
        path: str | os.PathLike[str],
        *,
        ledger: Any = None,
        brief: bool = False,
    ) -> None:
        """Write a page about the release that a browser shows: one file, which needs no network.

        It says what was released, what is promised and what is not, what an adversary may believe, which record decides
        the noise, and what error other mechanisms and other ε would have. The proof is computed again first. Of what is
        there already only an earlier report is replaced.

        Parameters
        ----------
        path : path-like
            The page, a name that ends in ``.html`` as a rule.
        ledger : Ledger or path-like, optional
            The book that the release was charged to: its history is shown.
        brief : bool, default False
            Without the noise of other mechanisms and of other ε, which may take long to compute.

        Raises
        ------
        RecordError
            If the record does not hold, or the page cannot be written.
        """
        from pufferfish.release.show.page import Source, write_report

        write_report([Source(self)], path, ledger=ledger, brief=brief)
