"""``pufferfish show``: a release or a model for people."""

import click

from pufferfish._base.reading import display_path, read_file
from pufferfish._base.view import text_of, view_of
from pufferfish.check.record import CHECK
from pufferfish.cli.options import refuse_contradiction
from pufferfish.errors import RecordError
from pufferfish.fit.model_file import BIF, MODEL, read_model
from pufferfish.ledger import LEDGER
from pufferfish.release import MEASUREMENT, MeasurementRelease
from pufferfish.release.record import release_in
from pufferfish.release.show.text import described


@click.command("show")
@click.argument("path", metavar="FILE")
def show_command(path: str) -> None:
    """Show a release: its values, the promise, the noise, who decides it, and warnings; or a model: its numbers.

    A record that contradicts itself is refused; whether its proof holds is for verify to say.

    \b
    Example:
      pufferfish show release.json
      pufferfish show model.json
    """
    if path.lower().endswith(BIF):
        click.echo(text_of(view_of(read_model(path))))
        return
    content = read_file(path)
    if MODEL.holds(content):
        click.echo(text_of(view_of(read_model(path))))
    elif MEASUREMENT.holds(content):
        click.echo(text_of(view_of(MeasurementRelease.from_json(path))))
    elif LEDGER.holds(content):
        raise RecordError(f"{display_path(path)} is a ledger: use pufferfish ledger show {display_path(path)}")
    elif CHECK.holds(content):
        raise RecordError(
            f"{display_path(path)} holds the numbers of a check for other programs: run pufferfish check again to see "
            "them"
        )
    else:
        _show_release(path, content)


def _show_release(release_path: str, content: bytes) -> None:
    release = release_in(content, display_path(release_path))
    each = release.subjects
    if each is not None and (each.table is None or release_path.endswith(".pending")):
        raise RecordError(
            f"{release_path} belongs to an interrupted release; do not publish it: run the same command again to "
            "finish it"
        )
    refuse_contradiction(release, release_path)
    click.echo(described(release))
