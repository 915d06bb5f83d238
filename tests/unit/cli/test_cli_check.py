"""The command line that holds a model against public data."""

import json
import shlex
from pathlib import Path

from commands import READING, refused, run, write_table


def test_a_model_is_checked_on_the_table_it_was_fitted_to(tmp_path: Path) -> None:
    public, other = write_table(tmp_path / "a.csv", seed=1), write_table(tmp_path / "b.csv", seed=2)
    model, output, plot = (tmp_path / name for name in ("m.json", "c.json", "c.png"))
    assert run("fit", public, *READING, "--output", model).exit_code == 0
    result = run("check", model, public, *READING, "--output", output, "--plot", plot)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("In doubt.\n  - 357 transitions tell little: take more public data\n")
    assert "the model was fitted to these people: that it describes them proves nothing about others" in result.stdout
    (command,) = [line for line in result.stdout.splitlines() if line.startswith(f"  pufferfish fit {public} --state ")]
    words = shlex.split(command)[1:]
    words[words.index("--output") + 1] = str(tmp_path / "next.json")
    assert run(*words).exit_code == 0  # as it can be copied
    assert "proves nothing about others" not in run("check", model, other, *READING, "--accept", "public").stdout
    assert "--details prints more" in result.stdout
    assert "overlap of the laws" not in result.stdout
    detailed = run("check", model, public, *READING, "--details").stdout
    assert "--details prints more" not in detailed
    assert "overlap of the laws" in detailed
    assert f"written: {output}" in result.stdout
    assert json.loads(output.read_text())["format"] == "pufferfish-check"
    assert plot.read_bytes().startswith(b"\x89PNG")
    refused("check", model, public, *READING, "--output", output, says=["--overwrite"])
    refused("check", model, other, *READING, says=["was not fitted to", "give --accept public"])
    told = run("check", model, other, *READING, "--accept", "public", "--epsilon", 0.5)
    assert told.exit_code == 0, told.output
    assert "for this model, ε = 0.5 (multiplier" in told.stdout


def test_reasons_name_options_of_the_command_line(tmp_path: Path) -> None:
    public, model = write_table(tmp_path / "a.csv", seed=1), tmp_path / "m.json"
    assert run("fit", public, *READING, "--output", model).exit_code == 0
    result = run("check", model, public, *READING)
    reason = next(line for line in result.stdout.splitlines() if "a matrix for each hour: not computed" in line)
    assert "not asked: hours of the day: " in result.stdout
    assert "give --max-gap 1min" in reason
    assert "max_gap" not in result.stdout


def test_what_fit_makes_is_checked(tmp_path: Path) -> None:
    public, model = write_table(tmp_path / "a.csv", seed=1), tmp_path / "m.json"
    for options in (["--forgets", 8], ["--confidence", 0.9], ["--order", 2], ["--stays"], ["--defend"]):
        assert run("fit", public, *READING, *options, "--output", model, "--overwrite").exit_code == 0
        result = run("check", model, public, *READING)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(("In doubt.\n", "Go on.\n"))


NETWORK = (
    "network n {\n}\nvariable a {\n  type discrete [ 2 ] { x, y };\n}\nprobability ( a ) {\n  table 0.5, 0.5;\n}\n"
)


def test_refusals_name_the_remedy(tmp_path: Path) -> None:
    public, model = write_table(tmp_path / "a.csv", seed=1), tmp_path / "m.json"
    (tmp_path / "net.bif").write_text(NETWORK)
    refused("check", tmp_path / "net.bif", public, *READING, says=["--state", "the model is a network"])
    assert run("fit", public, *READING, "--output", model).exit_code == 0
    refused("check", model, public, says=["--state"])
    refused("check", model, public, *READING, "--epsilon", 0, says=["epsilon"])
    refused("check", model, public, *READING, "--plot", tmp_path / "c.txt", says=[".png"])
