"""Put what `python -m paper reproduce` wrote between the marks of docs/results.md and
docs/compared.md.

A block starts with <!-- NAME --> and ends with <!-- /NAME -->, and holds docs/results/NAME.md without its heading.
"""

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("results.md", "compared.md")
BLOCK = re.compile(r"<!-- (?P<name>[a-z-]+) -->\n.*?<!-- /(?P=name) -->", flags=re.DOTALL)


def block(name: str) -> str:
    page = (DOCS / "results" / f"{name}.md").read_text()
    body = page.split("\n", 1)[1].strip().replace(f"]({name}.png)", f"](results/{name}.png)")
    return f"<!-- {name} -->\n{body}\n<!-- /{name} -->"


def filled(text: str) -> str:
    return BLOCK.sub(lambda found: block(found["name"]), text)


if __name__ == "__main__":
    for page in (DOCS / name for name in PAGES):
        page.write_text(filled(page.read_text()))
