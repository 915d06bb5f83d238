"""``pufferfish report``: a page about releases, to hand over; ``pufferfish words``: its words, to be translated."""

from dataclasses import dataclass, fields

import click

from pufferfish._base.writing import write_whole
from pufferfish._draw.page import REPORT
from pufferfish.cli._tables import check_targets
from pufferfish.cli.messages import say
from pufferfish.cli.options import CoverOptions, argument, command, option
from pufferfish.cli.print import progress
from pufferfish.cli.project import from_project, here
from pufferfish.errors import RecordError
from pufferfish.ledger import files_of
from pufferfish.release.show.page import NOT_COUNTED, Cover, read_source, sentences_of, write_report
from pufferfish.release.show.words import WORDS_FILE, Words, read_words, words_file


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What a page is about."""

    releases: tuple[str, ...] = argument("RELEASE...", required=True)
    output: str = option("Where the page is written, such as report.html.", "FILE", required=True)
    ledger: str | None = option("Ledger that releases were charged to: its history.", "FILE")
    no_ledger: bool = option("Without the ledger that pufferfish.toml names.")
    certificate: str | None = option("The release's proof: the page contains it and checks itself when opened.", "FILE")
    above: CoverOptions
    suppress: bool = option("Leave out values that are no larger than their own error (○).")
    brief: bool = option("Leave out the slider for other ε.")
    verify: bool = option(
        "Compute every proof and the slider, however long it takes [default: only what takes seconds]."
    )
    overwrite: bool = option("Replace an earlier report at FILE, but no other file.")


@command("report", ReportOptions)
def report_command(options: ReportOptions) -> None:
    """Write a page about releases to hand over: what is hidden, the answers, what is promised, and a slider for ε.

    The page is one file, loads nothing from anywhere, and is made from the records alone. A record that does not hold
    is refused, and so is a proof. Any kind of record will do, also one of a release for each subject or of a
    measurement. Title, office and labels may stand in pufferfish.toml.

    \b
    Example:
      pufferfish report release.json --output report.html
      pufferfish report release.json --certificate proof.json --output report.html
      pufferfish report first.json second.json --ledger book.json --output report.html --office "Statistics"
    """
    releases, output, ledger = options.releases, options.output, None if options.no_ledger else options.ledger
    words, project = options.above.words, here()
    if len(releases) > 1 and options.certificate is not None:
        raise click.UsageError("--certificate is the proof of one release: make a page of that release alone")
    read = filter(None, [options.certificate, words])
    inputs = (*releases, *read, *(() if ledger is None else files_of(ledger)))
    check_targets([("--output", output, REPORT)], inputs=inputs, overwrite=options.overwrite)
    texts = {each.name: getattr(options.above, each.name) for each in fields(CoverOptions)}
    texts |= {"words": Words() if words is None else read_words(words)}
    cover = Cover(**texts, labels={} if project is None else project.keys.get("labels", {}))
    sources = [read_source(path, options.certificate) for path in releases]
    asked = {"brief": options.brief, "verified": options.verify, "suppress": options.suppress}
    with progress("making the report"):
        try:
            write_report(sources, output, ledger=ledger, cover=cover, overwrite=options.overwrite, **asked)
        except RecordError as error:
            if ledger is None or not from_project("ledger"):
                raise
            raise RecordError(f"{error} (--no-ledger makes the page without the ledger of pufferfish.toml)") from error
    for path, source in zip(releases, sources, strict=True):
        if ledger is not None and source.release.ledger is None:
            say(f"{path} is {NOT_COUNTED}")
    say(f"written: {output}")


@dataclass(frozen=True, kw_only=True)
class WordsOptions:
    """Which words are written."""

    releases: tuple[str, ...] = argument("[RELEASE]...")
    output: str = option("Where the table is written (.toml).", "FILE", required=True)
    overwrite: bool = option("Replace an earlier table of words.")


@command("words", WordsOptions)
def words_command(options: WordsOptions) -> None:
    """Write the words of a report as a table to translate, with the sentences of RELEASEs.

    \b
    Example:
      pufferfish words first.json second.json --output words.toml
      pufferfish report first.json second.json --words words.toml --output report.html
    """
    check_targets([("--output", options.output, WORDS_FILE)], inputs=options.releases, overwrite=options.overwrite)
    sentences = sentences_of([read_source(path) for path in options.releases])
    write_whole(options.output, words_file(sentences), WORDS_FILE, overwrite=options.overwrite)
    say(f"written: {options.output}")
