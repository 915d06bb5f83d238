"""The words of a page about releases, in one table that an office can translate.

A table may have some of them; the others stay as they are here. Sentences that stand in records (a promise, an
assumption) are translated by themselves, each beside its translation.
"""

import json
import os
import re
import string
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pufferfish._base.frozen import FrozenDict
from pufferfish._base.reading import display_path
from pufferfish._base.words import did_you_mean
from pufferfish._base.writing import Kind, read_file
from pufferfish.errors import ParameterError

__all__ = ["WORDS", "WORDS_FILE", "Words", "read_words", "words_file"]

WORDS: Mapping[str, str] = FrozenDict(
    {
        "lang": "en",
        "title": "What was released, and what is promised",
        "releases": "{n} releases",
        "office": "Office",
        "period": "Period",
        "contact": "Contact",
        "hidden": "What is hidden",
        "hides": "Hides",
        "hides_more": "whatever other records tell, at ε = {epsilon}",
        "odds": "Seeing a release changes the odds between {two} by a factor of {factor} at most, for whoever believes any "
        "distribution in Θ. The smaller ε, the less is told.",
        "delta": "The promise may fail, with a probability that δ = {delta} says. The smaller ε and δ, the less is told.",
        "pairs": "The pairs of secrets:",
        "for_release": "release {numbers}:",
        "warning": "Warning:",
        "void": "Nothing of this is promised here: the model was fitted to this very table. Of other data it would be.",
        "file": "Release file:",
        "made": "{size}{column}{filtered}; {title}, ε = {epsilon}; made {date}.",
        "what": "What was released",
        "value": "value",
        "output": "output",
        "records": "records",
        "noisy": "noisy value",
        "picture": "picture",
        "subject": "subject",
        "error": "± 95%",
        "error_at_most": "± 95%, at most",
        "each_error": "each ± {error} with 95% probability",
        "each_records": "{n} records in each group",
        "values_of": "{measure}{of}: the value ± what its noise may hide, with 95% probability{alike}",
        "bars": "Bar: the value; line: the noisy value and its noise.",
        "bands": "Bands: ± the noise, 95%.",
        "by_group": "{measure}, a row for each group: {by}{alike}",
        "steps_of": "{measure} from each state (rows) to each (columns){cell}",
        "weak": "{n} of {total} values are no larger than their own error: noise alone may have made them.",
        "weak_one": "The value is no larger than its own error: noise alone may have made it.",
        "suppressed": "They are left out here.",
        "weak_sign": "no larger than its error",
        "together": "All {n} {values} together are within {error} with 95% probability.",
        "plain_values": "values",
        "noisy_values": "noisy values (before they were made possible ones)",
        "post": "The values were made possible ones after the noise was added (not negative, or with the public total, or "
        "within the range of the query). This costs no privacy.",
        "as_table": "The values as a table",
        "more": "{n} more values",
        "rest": "{n} further values are in the release file.",
        "csv": "Values as CSV",
        "search": "Search:",
        "hour": "hour of the day",
        "weekday": "weekday",
        "date": "date",
        "month": "month",
        "promised": "What is promised, and what is not",
        "exact": "The exact sentence of the promise",
        "not_promised": "Not promised",
        "assumed": "Assumed",
        "units": "What this noise tells at most, unit by unit",
        "unit": "what this noise tells of",
        "epsilon_at_most": "ε, at most",
        "odds_change": "odds change, at most",
        "covers": "What each of these covers",
        "theta": "What an adversary may believe: Θ",
        "theta_more": "Θ in numbers",
        "function": "Θ is of {kind}: a function of the user's, which no file holds.",
        "witness": "Which record decides the noise, and why",
        "budget": "The budget",
        "spent": "Spent {spent} of {budget}, by {bound}. Remaining: {remaining}. Epsilons of single releases do not add up to "
        "what they leak together.",
        "not_counted": "Without the ledger it is not known what was released besides.",
        "no_ledger": "No ledger counts: {numbers}. What these leak together is not bounded here.",
        "number": "no.",
        "release": "what",
        "alone": "alone",
        "leaks_together": "together",
        "ledger_of": "Together: what all up to this one leak at most, of a budget of {budget}",
        "on_page": "on this page",
        "slider": "What if ε were another?",
        "slider_label": "Move it (arrow keys work too):",
        "slider_epsilon": "ε = {epsilon}",
        "slider_factor": "every ε times {factor}",
        "slider_back": "Back",
        "private": "more private",
        "exact_end": "more exact",
        "slider_error": "each value within, 95%",
        "no_noise": "no noise left: exact values",
        "unknown": "none known",
        "slider_none": "The slider was left out: {why}.",
        "why_brief": "it was not asked for",
        "why_long": "it takes longer than a few seconds (--verify waits for it)",
        "why_function": "the query or Θ is a function of the user's",
        "how": "How this was made, and how to verify it",
        "commands": "The commands",
        "verify_how": "Whoever has the release file can compute the proof of its noise again, without any private data:",
        "owner": "Only who keeps the ledger (the owner) has its file{file} and can compare both:",
        "digest": "SHA-256 of the release file:",
        "found": "What was found when this page was made",
        "proved": "When this page was made the proof was computed again, and held.",
        "unproved": "When this page was made the proof was not computed again, for it takes longer than a few seconds. The "
        "command above does it.",
        "vouched": "The proof of this release could not be checked: a function of the user's decides its noise, which no file "
        "holds. Whoever made it vouches for it.",
        "footer": "Made by pufferfish report from the release files alone: no private data were read. The page is one file "
        "and loads nothing from anywhere.",
        "scroll": "scroll → for all of it",
    }
)

_HEAD = (
    "# The words of a page about releases: what is right of = is shown. Names in {braces} stay as they are.\n"
    "# [sentences] are those of records, each beside its translation. What is left out stays as it is.\n"
)
_LANGUAGE = re.compile(r"[a-zA-Z]{2,8}(-[a-zA-Z0-9]{1,8}){0,3}")

WORDS_FILE = Kind("table of words", lambda content: content.startswith(_HEAD.encode()), "name another file", (".toml",))


@dataclass(frozen=True, slots=True)
class Words:
    """What a page says: :data:`WORDS`, or their translation."""

    table: Mapping[str, str] = field(default_factory=lambda: WORDS)
    sentences: Mapping[str, str] = field(default_factory=dict[str, str])

    def __call__(self, key: str, **parts: object) -> str:
        """Return some words, with what stands in their braces."""
        return self.table[key].format(**parts)

    def of(self, sentence: str) -> str:
        """Return a sentence of a record, translated if it is in the table."""
        return self.sentences.get(sentence, sentence)


def read_words(path: str | os.PathLike[str]) -> Words:
    """Read a translation.

    Raises
    ------
    ParameterError
        If the file is no such table, or its words do not fit those of the page.
    """
    where = display_path(path)
    try:
        content = tomllib.loads(read_file(path).decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{where} is no TOML: {error}") from error
    sentences = content.pop("sentences", {})
    if not isinstance(sentences, dict) or not all(
        isinstance(text, str) for text in (*content.values(), *sentences.values())
    ):
        raise ParameterError(f"{where}: expected words in quotes, and a table [sentences] of such")
    if not _LANGUAGE.fullmatch(str(content.get("lang", "en"))):
        raise ParameterError(f"{where}: lang is {content['lang']!r}, expected a language such as de or pt-BR")
    for key, text in content.items():
        if key not in WORDS:
            raise ParameterError(f"{where}: a page has no words {key!r}.{did_you_mean(key, WORDS)}")
        if not _names(text) <= (known := _names(WORDS[key])):
            braces = ", ".join(f"{{{name}}}" for name in sorted(known)) or "none"
            raise ParameterError(
                f"{where}: {key} is {text!r}, and its words in braces are {braces}; write {{{{ for a brace"
            )
    return Words({**WORDS, **content}, sentences)


def _names(text: str) -> set[str]:
    """Return the names in braces; what Python would do more with, such as attributes, is a name that nobody has."""
    try:
        return {
            f"{name}{'!' * bool(conversion)}{how}"
            for _, name, how, conversion in string.Formatter().parse(text)
            if name is not None
        }
    except ValueError:
        return {text}


def words_file(sentences: Iterable[str] = ()) -> bytes:
    """Return the table as it is to be translated, with sentences of records."""
    rows = [f"{key} = {_quoted(text)}" for key, text in WORDS.items()]
    said = [f"{_quoted(text)} = {_quoted(text)}" for text in dict.fromkeys(sentences)]
    return (_HEAD + "\n".join([*rows, "", "[sentences]", *said]) + "\n").encode()


def _quoted(text: str) -> str:
    """Return a text as TOML has it: that of JSON, but for a control character that JSON leaves alone."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
