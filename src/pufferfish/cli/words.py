"""``pufferfish words``: the words of a report as a table, to be translated."""

from dataclasses import dataclass

import click

from pufferfish._base.writing import write_whole
from pufferfish.cli._tables import check_targets
from pufferfish.cli.options import argument, command, option
from pufferfish.errors import printable
from pufferfish.release.show.page import read_source, sentences_of
from pufferfish.release.show.words import WORDS_FILE, words_file


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
    click.echo(printable(f"written: {options.output}"))
