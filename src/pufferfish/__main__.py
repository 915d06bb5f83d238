"""``python -m pufferfish``."""

from pufferfish.cli import main

main(prog_name="pufferfish")
