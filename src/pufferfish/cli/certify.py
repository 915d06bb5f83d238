"""``pufferfish certify``: a proof of a release that was made, for what ``pufferfish checker`` writes."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pufferfish._base.words import at_most
from pufferfish._base.writing import Kind, write_whole
from pufferfish.cli._tables import check_targets
from pufferfish.cli.messages import say
from pufferfish.cli.options import argument, command, option
from pufferfish.cli.print import progress
from pufferfish.release import PROOF, Release, certify
from pufferfish.release.checker import check, check_more, check_networks


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
    say(f"written: {options.output}")
    if len(releases) > 1:
        say(f"together they cost at most ε = {at_most(json.loads(certificate.proof)['epsilon'])}")


# -- The programs that check proofs, to be read and run by whoever trusts nobody ------------------------------------

_SOURCES = tuple(Path(part.__file__) for part in (check, check_networks, check_more))

_CHECKER = Kind(
    "checker",
    lambda content: any(content.startswith(source.read_bytes()[:60]) for source in _SOURCES),
    "it is another version; give --overwrite to replace it",
    (".py",),
)


@dataclass(frozen=True, kw_only=True)
class CheckerOptions:
    """Where the checker goes."""

    output: str = argument("FILE")
    overwrite: bool = option("Replace the checker of another version.")


@command("checker", CheckerOptions)
def checker_command(options: CheckerOptions) -> None:
    """Write the checker of certificates, a file of Python that needs nothing else, and two that use it beside it.

    check_networks.py covers tables of Bayesian networks; check_more.py that and more: clocks, order 2, every first law,
    totals of several releases. They are written where FILE is named check.py, for they look for that name.

    \b
    Example:
      pufferfish checker check.py
      python check.py release.json proof.json model.json
    """
    first = Path(options.output)
    more = [first.with_name(source.name) for source in _SOURCES[1:]] if first.name == "check.py" else []
    files = [first, *more]
    wanted = {file: source.read_bytes() for file, source in zip(files, _SOURCES, strict=False)}
    missing = [file for file, content in wanted.items() if not _holds(file, content)]
    check_targets([("FILE", str(file), _CHECKER) for file in missing], inputs=(), overwrite=options.overwrite)
    for file in missing:
        write_whole(file, wanted[file], _CHECKER, overwrite=options.overwrite)
    say(f"written: {', '.join(map(str, files))}; run it by: python {options.output} RELEASE PROOF [MODEL]")


def _holds(file: Path, content: bytes) -> bool:
    """Whether a file holds this content already."""
    with suppress(OSError):
        return file.is_file() and file.read_bytes() == content
    return False
