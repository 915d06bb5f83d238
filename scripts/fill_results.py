"""Fill pages of docs/ with what commands wrote to docs/results/: whole tables, and the numbers in sentences.

    python scripts/fill_results.py            # fill
    python scripts/fill_results.py --check    # change nothing; exit code 1, and a line for each place that is wrong

A table: what stands between ``<!-- table-power/3 -->`` and ``<!-- /table-power/3 -->`` is the third table of
docs/results/table-power.md with its title; ``<!-- growth -->`` takes the whole file without its heading.

A number: ``<!-- = table-power/3 | MQMExact, UCI* | ε = 1 | .3f -->0.055<!-- / -->`` names a table, rows, columns and a
format. A row is named by its first cell and its other cells of text. ``*`` stands for any text, ``A; B`` for either,
and ``A / B`` for the ratio of two. ``&`` joins several places. Several numbers are shown as the least *to* the
greatest.

No other number is allowed in a sentence of results, compared and performance, so that none is left behind when a
command is run again: settings must be written as in a file of results ("51 states", "T = 100"), and items of the paper
are no numbers.
"""

import re
import sys
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("results.md", "compared.md", "performance.md")
OTHERS = ("architecture.md", "tables.md", "../README.md")
"""Pages with marks, whose other sentences are not about numbers of a run."""

BLOCK = re.compile(r"<!-- (?P<name>[a-z-]+(?:/\d)?) -->\n.*?<!-- /(?P=name) -->", flags=re.DOTALL)
VALUE = re.compile(r"<!-- = (?P<what>[^>]+) -->(?P<text>[^<]*)<!-- / -->")
TABLE = re.compile(r"(?:^\*\*.*\*\*\n\n)?(?:^\|.*\n?)+", flags=re.MULTILINE)
CELL = re.compile(r"(-?[\d,]*\.?\d+(?:e-?\d+)?)(?: \(.*)?")
"""A number, and what stands in brackets behind it."""

NUMBER = re.compile(
    r"(?:(?P<before>\S+ = )|(?P<item>\b\w+ ))?(?<![\w.,])(?P<number>[\d,]*\.?\d+)(?P<after>%|-?\s?\w+)?"
)
IN_WORDS = re.compile(
    r"\b(?:half an?|an? (?:half|third|quarter|tenth)|(?:factor|quarter|third) of|thousandths|twice)\b", re.IGNORECASE
)
ITEMS = {"Section", "Theorem", "Algorithm", "Definition", "Figure"}
NOT_PROSE = re.compile(r"(?s:```.*?```)|`[^`]*`|^[|#].*$|\]\([^)]*\)|<!--.*?-->", flags=re.MULTILINE)


def results(name: str) -> str:
    """Return a file of results without its heading; after a slash, only one table of it."""
    file, _, place = name.partition("/")
    body = (DOCS / "results" / f"{file}.md").read_text().split("\n", 1)[1].strip()
    body = body.replace(f"]({file}.png)", f"](results/{file}.png)")
    return TABLE.findall(body)[int(place) - 1].strip() if place else body


def cells(name: str) -> dict[tuple[str, str], float]:
    """Return the numbers of a table by the names of their rows and columns; of equal names none is meant."""
    found: dict[tuple[str, str], list[float]] = {}
    lines = [line for line in results(name).splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    for first, *row in rows:
        label = ", ".join([first, *(cell for cell in row if cell not in ("", "N/A") and not CELL.fullmatch(cell))])
        for column, cell in zip(head[1:], row, strict=True):
            if number := CELL.fullmatch(cell):
                found.setdefault((label, column), []).append(float(number[1].replace(",", "")))
    return {name: numbers[0] for name, numbers in found.items() if len(numbers) == 1}


def selected(place: str) -> list[float]:
    """Return the numbers that "table | rows | columns" names."""
    name, *axes = (part.strip() for part in place.split("|"))
    table = cells(name)
    keys = [list(dict.fromkeys(key[axis] for key in table)) for axis in (0, 1)]
    ways: list[list[tuple[str, ...]]] = []
    for axis, pattern in enumerate(axes):
        sides = [
            [key for key in keys[axis] for one in side.split(";") if fnmatchcase(key, one.strip())]
            for side in pattern.split(" / ")
        ]
        ways.append(list(zip(*sides, strict=True)))
    found = []
    for rows, columns in product(*ways):
        if all(key in table for key in product(rows, columns)):
            above, *below = (table[key] for key in product(rows, columns))
            found.append(above / below[0] if below else above)
    if not found:
        raise SystemExit(f"no table of docs/results has one number at {place.strip()}")
    return found


def value(what: str) -> str:
    """Return the text of a number."""
    what, _, form = what.rpartition("|")
    found = [number for place in what.split("&") for number in selected(place)]
    return " to ".join(dict.fromkeys(format(number, form.strip()) for number in (min(found), max(found))))


def filled(text: str) -> str:
    """Return a page with what its marks name."""
    text = BLOCK.sub(lambda mark: f"<!-- {mark['name']} -->\n{results(mark['name'])}\n<!-- /{mark['name']} -->", text)
    return VALUE.sub(lambda mark: f"<!-- = {mark['what']} -->{value(mark['what'])}<!-- / -->", text)


def wrong(text: str) -> list[tuple[int, str]]:
    """Return the lines of a page that say what no table holds, and what is wrong."""
    found = [
        (text.count("\n", 0, mark.start()) + 1, f"{mark['text']} is written, and the table has {value(mark['what'])}")
        for mark in VALUE.finditer(text)
        if mark["text"] != value(mark["what"])
    ]
    found += [
        (text.count("\n", 0, mark.start()) + 1, f"the table {mark['name']} is an old one")
        for mark in BLOCK.finditer(text)
        if mark[0] != filled(mark[0])
    ]
    files = {name.partition("/")[0] for name in BLOCK.findall(text)}
    files |= set(re.findall(r"\]\(results/([a-z-]+)\.md\)", text))
    files |= {
        part.partition("|")[0].partition("/")[0].strip()
        for mark in VALUE.finditer(text)
        for part in mark["what"].split("&")
    }
    known = " ".join(results(file) for file in sorted(files))
    for pattern in (BLOCK, VALUE, NOT_PROSE):  # blank them out: places stay what they are
        text = pattern.sub(lambda mark: re.sub(r"[^\n]", " ", mark[0]), text)
    for mark in NUMBER.finditer(text):
        name, number, unit = mark["before"] or mark["item"], mark["number"], mark["after"]
        written = [f"{name}{number}", f"{number}{unit}"]
        stated = [
            part for part in written if "None" not in part and re.search(rf"(?<![\w.,]){re.escape(part)}\b", known)
        ]
        if not stated and (mark["item"] or "").strip() not in ITEMS:
            found.append((text.count("\n", 0, mark.start()) + 1, f"{mark[0].strip()}: a number that no mark fills"))
    for mark in IN_WORDS.finditer(text):
        found.append((text.count("\n", 0, mark.start()) + 1, f"{mark[0]}: a number in words, that no mark fills"))
    return sorted(found)


def main() -> None:
    pages = [DOCS / name for name in (*PAGES, *OTHERS)]
    if "--check" not in sys.argv:
        for page in pages:
            page.write_text(filled(page.read_text()))
        return
    lines = [f"docs/{name}:{line}: {what}" for name in PAGES for line, what in wrong((DOCS / name).read_text())]
    lines += [
        f"{page.name}: a table or number is an old one"
        for page in pages
        if filled(page.read_text()) != page.read_text()
    ]
    print("\n".join(lines), file=sys.stderr, end="\n" if lines else "")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
