"""``pufferfish report``: a page about releases."""

from dataclasses import dataclass

import click

from pufferfish._draw.page import REPORT
from pufferfish.cli._tables import check_targets
from pufferfish.cli.options import argument, command, option
from pufferfish.cli.print import progress
from pufferfish.errors import printable
from pufferfish.ledger import files_of
from pufferfish.release.show.page import NOT_COUNTED, read_source, write_report

__all__ = ["report_command"]


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What a page is about."""

    releases: tuple[str, ...] = argument("RELEASE...", required=True)
    output: str = option("Where the page is written, such as report.html.", "FILE", required=True)
    ledger: str | None = option("Ledger that releases were charged to: its history.", "FILE")
    certificate: str | None = option("Its proof: the page holds it and checks itself when it is opened.", "FILE")
    brief: bool = option("Leave out other mechanisms and other ε, which may take long to compute.")
    overwrite: bool = option("Replace an earlier report at FILE; no other file is ever replaced.")


@command("report", ReportOptions)
def report_command(options: ReportOptions) -> None:
    """Write a page about releases: what was released, what is promised and what is not, the noise, and a slider for ε.

    The page is one file, loads nothing from anywhere, and is made from the records alone. A record that does not hold
    is refused, as verify would, and so is a proof. Any kind of record will do, also one of a release for each subject
    or of a measurement.

    \b
    Example:
      pufferfish report release.json --output report.html
      pufferfish report release.json --certificate proof.json --output report.html
      pufferfish report first.json second.json --ledger book.json --output report.html
    """
    releases, output, ledger = options.releases, options.output, options.ledger
    if len(releases) > 1 and options.certificate is not None:
        raise click.UsageError("--certificate is the proof of one release: make a page of that release alone")
    inputs = (*releases, *filter(None, [options.certificate]), *(() if ledger is None else files_of(ledger)))
    check_targets([("--output", output, REPORT)], inputs=inputs, overwrite=options.overwrite)
    sources = [read_source(path, options.certificate) for path in releases]
    with progress("making the report"):
        write_report(sources, output, ledger=ledger, brief=options.brief, overwrite=options.overwrite)
    for path, source in zip(releases, sources, strict=True):
        if ledger is not None and source.release.ledger is None:
            click.echo(printable(f"{path} is {NOT_COUNTED}"))
    click.echo(printable(f"written: {output}"))
