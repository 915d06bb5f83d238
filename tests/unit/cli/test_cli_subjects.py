"""The command line for a chain of each subject: fitted, compared, released."""

from pathlib import Path

import pufferfish as pf
from commands import READING, refused, run, write_table


def test_from_public_data_to_a_release(tmp_path: Path) -> None:
    public, private = write_table(tmp_path / "a.csv", seed=1), write_table(tmp_path / "b.csv", seed=2)
    model, output = tmp_path / "m.json", tmp_path / "r.json"
    result = run("fit", public, *READING, "--each-subject", "--output", model)
    assert result.exit_code == 0, result.output
    assert "3 chains of 2 states, one for each subject" in result.stdout
    assert "the added transitions are those of all other subjects; 0 subjects have" in result.stdout
    assert "completed by 1 transition that nobody made: 1.6" in result.stdout
    theta = pf.read_model(model).theta
    assert isinstance(theta, pf.ChainClass)
    assert theta.names == ("subject S0", "subject S1", "subject S2")
    assert theta.origin.startswith("fitted to public data on 20")
    compared = run("compare", model, "--table", private, *READING, "--epsilon", 1)
    assert "(subject S" in compared.stdout
    assert "decides the noise of LeakagePropagation" in compared.stdout
    done = run("release", private, "--model", model, *READING, "--epsilon", 1, "--output", output)
    assert done.exit_code == 0, done.output
    release = pf.Release.from_json(output)
    assert release.theta.names[release.mechanism.witness.theta].startswith("subject S")


def test_refusals_name_the_remedy(tmp_path: Path) -> None:
    public = write_table(tmp_path / "a.csv", seed=1)
    each = ["fit", public, "--state", "activity", "--each-subject", "--output", tmp_path / "m.json"]
    refused(*each, says=["give --subject"])
    refused(*each, "--subject", "id", "--clock", "hour", says=["--clock"])
    refused(*each, "--subject", "id", "--confidence", 0.9, says=["--confidence"])
    refused(*each, "--subject", "id", "--forgets", 8, says=["--each-subject is for transition probabilities"])
    refused(*each, "--subject", "id", "--smoothing", -1, says=["smoothing is -1"])
    assert not (tmp_path / "m.json").exists()
