"""Both checkers of certificates on texts of files: in this process, and in Node where that is."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pufferfish.release.certificate import check_texts

SCRIPT = Path(__file__).parents[1] / "certificate" / "check.js"
Texts = tuple[str, str, str | None]


def accepted_in_python(release: str, proof: str) -> bool:
    """Whether the checker in Python proves it; what it cannot read it says NOT PROVED of."""
    try:
        check_texts(release, proof)
    except Exception:
        return False
    return True


def in_node(program: str, given: Any) -> Any:
    """What a program prints as JSON, which reads what is given as JSON; None without Node."""
    node = shutil.which("node")
    if node is None:
        return None
    run = subprocess.run([node, "-e", program], input=json.dumps(given), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def answers_of_node(files: Sequence[Texts]) -> list[dict[str, object]] | None:
    """What the checker in JavaScript says of each; None without Node."""
    program = (
        f"const {{check}} = require({json.dumps(str(SCRIPT))});"
        "const files = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "console.log(JSON.stringify(files.map(([release, proof, model]) => check(release, proof, model))));"
    )
    return in_node(program, files)


def accepted_in_node(files: Sequence[Texts]) -> list[bool] | None:
    answers = answers_of_node(files)
    return None if answers is None else [bool(answer["proved"]) for answer in answers]
