"""``pufferfish show``: a release for people."""

import click

from pufferfish.errors import RecordError
from pufferfish.release import EachRelease, decoded_release
from pufferfish.release.summary import described

__all__ = ["show_command"]


@click.command("show")
@click.argument("release_path", metavar="RELEASE")
def show_command(release_path: str) -> None:
    """Show a release: its values, the promise, the noise, who decides it, and warnings.

    A record that contradicts itself is refused; whether its proof holds is for verify to say.

    \b
    Example:
      pufferfish show release.json
    """
    found = decoded_release(release_path)
    if isinstance(found, EachRelease) and (found.table is None or release_path.endswith(".pending")):
        raise RecordError(
            f"{release_path} is of a release that was interrupted, and is not to be published: run the same command "
            "again, which finishes it"
        )
    try:
        found.check()
    except RecordError as error:
        raise RecordError(
            f"{release_path} contradicts itself: {error}; pufferfish verify says all that is wrong"
        ) from error
    click.echo(described(found))
