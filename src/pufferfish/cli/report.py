"""``pufferfish report``: a page about releases."""

import click

from pufferfish._draw.page import REPORT
from pufferfish.cli.print import progress
from pufferfish.cli.targets import check_targets
from pufferfish.errors import printable
from pufferfish.release.show.page import NOT_COUNTED, read_source, write_report

__all__ = ["report_command"]


@click.command("report")
@click.argument("release_paths", metavar="RELEASE...", nargs=-1, required=True)
@click.option("--output", required=True, metavar="FILE", help="Where the page is written, such as report.html.")
@click.option("--ledger", "ledger_path", metavar="FILE", help="Ledger that releases were charged to: its history.")
@click.option("--brief", is_flag=True, help="Leave out other mechanisms and other ε, which may take long to compute.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier report at FILE; no other file is ever replaced.")
def report_command(
    release_paths: tuple[str, ...], output: str, ledger_path: str | None, brief: bool, overwrite: bool
) -> None:
    """Write a page about releases: what was released, what is promised and what is not, the noise, and a slider for ε.

    The page is one file, loads nothing from anywhere, and is made from the records alone. A record that does not hold
    is refused, as verify would. Any kind of record will do, also one of a release for each subject or of a measurement.

    \b
    Example:
      pufferfish report release.json --output report.html
      pufferfish report first.json second.json --ledger book.json --output report.html
    """
    inputs = (*release_paths, *([] if ledger_path is None else [ledger_path]))
    check_targets([("--output", output, REPORT)], inputs=inputs, overwrite=overwrite)
    sources = [read_source(path) for path in release_paths]
    with progress("making the report"):
        write_report(sources, output, ledger=ledger_path, brief=brief, overwrite=overwrite)
    for path, source in zip(release_paths, sources, strict=True):
        if ledger_path is not None and source.release.ledger is None:
            click.echo(printable(f"{path} is {NOT_COUNTED}"))
    click.echo(printable(f"written: {output}"))
