"""Completion in a shell: of commands, options and files, by the script that the program prints."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import commands

ASK = """
eval "$SCRIPT"
ask() {
  COMPREPLY=(); COMP_WORDS=(pufferfish "$@"); COMP_CWORD=$#
  _pufferfish_completion "$PROGRAM"
  echo "${COMPREPLY[@]}"
}
ask rel
ask release --eps
ask completion z
compopt() { echo files; }
ask release tab
"""


@pytest.mark.slow
@pytest.mark.program
def test_bash_completes_commands_options_choices_and_files(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    script = commands.run("completion", "bash").stdout
    program = tmp_path / "pufferfish"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m pufferfish\n")
    program.chmod(0o755)
    environment = os.environ | {"SCRIPT": script, "PROGRAM": str(program)}
    done = subprocess.run([bash, "-c", ASK], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[:3] == ["release", "--epsilon", "zsh"], done.stderr
    assert "files" in done.stdout.splitlines()[3:]


def test_every_shell_has_a_script_and_others_are_refused() -> None:
    for shell in ("bash", "zsh", "fish"):
        result = commands.run("completion", shell)
        assert result.exit_code == 0
        assert f"_PUFFERFISH_COMPLETE={shell}_complete" in result.stdout
    commands.refused("completion", "basch", says=["'basch' is not one of", "Did you mean 'bash'?"])
