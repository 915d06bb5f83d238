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
from html import escape, unescape
from importlib.resources import files

from pufferfish._base.frozen import FrozenDict
from pufferfish._base.reading import display_path
from pufferfish._base.view import Html
from pufferfish._base.words import did_you_mean
from pufferfish._base.writing import Kind, read_file
from pufferfish.errors import ParameterError, printable

WORDS: Mapping[str, str] = FrozenDict(
    tomllib.loads(files("pufferfish.release.show").joinpath("words.toml").read_text("utf-8"))
)
"""The words as the program has them."""

_HEAD = (
    "# The words of a page about releases: what is right of = is shown. Names in {braces} stay as they are.\n"
    "# [sentences] are those of records, each beside its translation. What is left out stays as it is.\n"
)
_LANGUAGE = re.compile(r"[a-zA-Z]{2,8}(-[a-zA-Z0-9]{1,8}){0,3}")

_TEXT = re.compile(
    r"""<(script|style|code|pre)\b.*?</\1>|(?<=>)[^<>]*[^<>\s][^<>]*(?=<)|(?<=\baria-label=")[^"]+(?=")""", re.DOTALL
)
"""What people read in markup, and as the first alternative what is no language, with its name."""

_MARKS, _MARKED, _NO_MARKS = "⟦{}⟧", re.compile("⟦[^⟦⟧]*⟧"), {ord("⟦"): None, ord("⟧"): None}
_WORD = re.compile(r"[^\W\d_]{2,}")

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

    def in_markup(self, markup: Html) -> Html:
        """Return markup with every text that is in the table of sentences translated: what other parts wrote."""

        def translated(match: re.Match[str]) -> str:
            text = match[0].strip()
            known = None if match[1] else self.sentences.get(unescape(text))
            return match[0] if known is None else match[0].replace(text, escape(printable(known)))

        return Html(_TEXT.sub(translated, markup)) if self.sentences else markup


@dataclass(frozen=True, slots=True)
class Marked(Words):
    """Words that are marked, so that what a page says beside them is found (:func:`unmarked`); sentences are kept."""

    said: dict[str, None] = field(default_factory=dict[str, None])

    def __call__(self, key: str, **parts: object) -> str:
        """Return some words between marks."""
        return _MARKS.format(self.table[key].format(**parts))

    def of(self, sentence: str) -> str:
        """Return a sentence of a record between marks."""
        if sentence == sentence.translate(_NO_MARKS):
            self.said[sentence] = None
        return _MARKS.format(sentence)


class MarkedLabels(dict[str, str]):
    """Labels of states and groups, which are marked too."""

    def get(self, label: str, default: object = None) -> str:  # type: ignore[override]
        """Return a label between marks."""
        return _MARKS.format(label)


def unmarked(markup: str) -> list[str]:
    """Return the texts of markup in which something stands outside of marks; not commands, and not numbers.

    Examples
    --------
    >>> unmarked("<p>⟦Hides⟧ <b>any record</b> <code>pufferfish</code></p><p>0.5</p>")
    ['any record']
    """
    found = dict[str, None]()
    for match in _TEXT.finditer(markup):
        text = "" if match[1] else unescape(match[0]).strip()
        outside = text
        while outside != (outside := _MARKED.sub("", outside)):
            pass
        if _WORD.search(outside):
            found[text.translate(_NO_MARKS)] = None
    return list(found)


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
