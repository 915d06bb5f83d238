r"""Formulas of docs/: ``$…$`` in a line, ``$$`` on lines of their own around a displayed one, turned into MathML.

The site then needs no script and no network to show them. Code is left as it is, and ``\$`` is a dollar. A formula that
cannot be shown stops the build.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import zip_longest
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from mkdocs.exceptions import PluginError

INLINE = r"\\\$|(\(?)\$(?![\s$])([^$\n]*[^$\s\\])\$(?!\d)([.,;:)]*)|\$"
"""A dollar, a formula with the punctuation beside it, or a dollar that opens none."""

NAMESPACE = ' xmlns="http://www.w3.org/1998/Math/MathML"'
LETTERS = {"double-struck": "DOUBLE-STRUCK CAPITAL {}", "bold": "BOLD {} {}"}
BELOW = {"max", "min", "sup", "inf", "lim"}
"""Names that have their index below them in a displayed formula."""
RELATIONS = set("=<>≤≥≠∈∝⊨→⟺⇔")
OPEN, CLOSE = set("([{"), set(")]}")


class FormulaError(PluginError):
    """A formula that cannot be shown."""


def mathml(tex: str, display: bool = False) -> list[str]:
    """Return a formula as MathML, one in a line as pieces between which the line may break.

    Raises
    ------
    FormulaError
        It is no formula, or uses what is not known here.
    """
    if found := re.search(r"\\[^A-Za-z\\\s]", tex.replace(r"\\", "")):
        raise FormulaError(
            f"{found[0]} is no word (as \\lbrace is), and browsers of repositories lose it, in the formula {tex}"
        )
    depth = [tex[:end].count("{") - tex[:end].count("}") for end in range(len(tex) + 1)]
    if min(depth) < 0 or depth[-1]:
        raise FormulaError(f"braces are not balanced in the formula {tex}")
    try:
        math = ElementTree.fromstring(convert(tex.replace("{aligned}", "{align*}")).replace(NAMESPACE, "", 1))
    except Exception as error:  # the library has a dozen of its own, and lets others through
        raise FormulaError(f"{str(error) or type(error).__name__} in the formula {tex}") from error
    for part in math.iter():
        if "\\" in (part.text or ""):
            raise FormulaError(f"{part.text} is unknown in the formula {tex}")
        _set_letters(part, tex)
    _set_signs(math, display)
    rows = [math[0]] if display else list(_pieces(math[0]))
    kind = "block" if display else "inline"
    return [f'<math display="{kind}">{ElementTree.tostring(row, encoding="unicode")}</math>' for row in rows]


def _set_letters(part: Element, tex: str) -> None:
    """Take the letter itself where a style is asked for: browsers leave the style out."""
    style = part.attrib.get("mathvariant", "normal")
    if style == "normal":
        return
    if style not in LETTERS or len(part.text or "") != 1:
        raise FormulaError(f"no letters in the style {style} are known in the formula {tex}")
    name = LETTERS[style].format(*unicodedata.name(str(part.text)).split()[-2:])
    name = name.replace("CAPITAL CAPITAL", "CAPITAL")
    part.text = unicodedata.lookup(f"MATHEMATICAL {name}")
    part.attrib["mathvariant"] = "normal"


def _set_signs(tree: Element, display: bool) -> None:
    """Set names of functions apart from what follows, and brackets without spaces inside, as in print."""
    for row in tree.iter():
        bars: dict[str, int] = {}
        for part, following in zip_longest(row, row[1:]):
            sign = part[0] if part.tag in {"msub", "msup", "msubsup", "munder"} else part
            text = sign.text or ""
            if sign.tag == "mi" and len(text) == 1 and not (text.isalnum() or text in "∞…∂′"):
                sign.tag, sign.attrib["stretchy"] = "mo", "false"
            if sign.tag == "mo" and text in {"|", "‖"} and "form" not in sign.attrib:
                bars[text] = bars.get(text, 0) + 1
                sign.attrib |= {"form": "prefix" if bars[text] % 2 else "postfix", "stretchy": "false"}
            if sign.tag in {"mi", "mo"} and re.fullmatch(r"[A-Za-z]{2,}", text):
                close = following is not None and following.text in OPEN
                sign.tag = "mo"
                sign.attrib = {"form": "prefix", "lspace": "0.17em", "rspace": "0" if close else "0.17em"}
                if part.tag == "msub" and text in BELOW and display:
                    part.tag = "munder"


def _pieces(row: Element) -> Iterator[Element]:
    """Divide a long row after its relations, where no bracket is open."""
    depth, piece = 0, Element("mrow")
    for part in row:
        piece.append(part)
        sign = part.text if part.tag == "mo" else None
        depth += (sign in OPEN) - (sign in CLOSE)
        if sign in RELATIONS and not depth and len(row) > 8:
            part.attrib["form"] = "infix"
            yield piece
            piece = Element("mrow")
    yield piece


class _Inline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        if m[0] == r"\$":
            return "$", m.start(0), m.end(0)
        if m[2] is None:
            line = data[m.start(0) :].partition("\n")[0]
            raise FormulaError(rf"a $ opens no formula that ends on its line (a dollar is \$): {line}")
        pieces = mathml(m[2])
        pieces[0] = m[1] + pieces[0]
        pieces[-1] += m[3]
        text = "".join(f'<span class="formula-part">{piece}</span>' for piece in pieces)
        return self.md.htmlStash.store(text), m.start(0), m.end(0)


class _Display(BlockProcessor):
    def test(self, parent: Element, block: str) -> bool:
        return block.startswith("$$")

    def run(self, parent: Element, blocks: list[str]) -> None:
        block = blocks.pop(0)
        formula = re.fullmatch(r"\$\$\n([^$]+)\n\$\$", block.rstrip())
        if not formula:
            raise FormulaError(f"$$ stands on lines of its own, with empty lines around the two: {block}")
        inside = f'<div class="formula">{"".join(mathml(formula[1], display=True))}</div>'
        ElementTree.SubElement(parent, "p").text = self.parser.md.htmlStash.store(inside)


class MathExtension(Extension):
    """Formulas for Python-Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Read formulas after code, and before everything else."""
        md.inlinePatterns.register(_Inline(INLINE, md), "formula", 185)
        md.parser.blockprocessors.register(_Display(md.parser), "formula", 75)
