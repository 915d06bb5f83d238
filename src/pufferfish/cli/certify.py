"""``pufferfish certify``: a proof of a release that was made, for a checker that shares no code with this program."""

import json
from dataclasses import dataclass

import click

from pufferfish._base.words import at_most
from pufferfish.cli._tables import check_targets
from pufferfish.cli.options import argument, command, option
from pufferfish.cli.print import progress
from pufferfish.errors import printable
from pufferfish.release import PROOF, Release, certify


@dataclass(frozen=True, kw_only=True)
class CertifyOptions:
    """What is certified."""

    releases: tuple[str, ...] = argument("RELEASE...", required=True)
    output: str = option("Where the proof is written, as JSON.", "FILE", required=True)
    overwrite: bool = option("Replace the proof of another release.")


@command("certify", CertifyOptions)
def certify_command(options: CertifyOptions) -> None:
    """Prove a release that was made, from its record alone, for the checker that `pufferfish checker` writes.

    Of several releases of the same rows it proves what they cost together, for check_more.py.

    The noise of the release is as it is. Where it is too little to be proved so, though the mechanism proves it, the
    release is refused: pufferfish release --certificate takes noise that is provable.

    \b
    Example:
      pufferfish certify release.json --output proof.json
      pufferfish certify monday.json tuesday.json --output total.json
    """
    check_targets([("--output", options.output, PROOF)], inputs=options.releases, overwrite=options.overwrite)
    releases = [Release.from_json(path) for path in options.releases]
    with progress("finding a proof"):
        certificate = certify(releases[0] if len(releases) == 1 else releases)
    certificate.to_json(options.output, overwrite=options.overwrite)
    click.echo(printable(f"written: {options.output}"))
    if len(releases) > 1:
        click.echo(f"together they cost at most ε = {at_most(json.loads(certificate.proof)['epsilon'])}")
