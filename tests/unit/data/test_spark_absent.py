"""What is said where Spark cannot be had."""

from pathlib import Path

import pytest

from commands import READING, refused, write_table
from pufferfish import MarkovChain, Model, write_model
from pufferfish.data import spark


def test_without_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "find_spec", lambda name: None)
    table = write_table(tmp_path / "steps.csv", 1)
    remedy = "--spark needs PySpark: pip install 'pufferfish-privacy[spark]'"
    refused("fit", table, *READING, "--spark", "local[2]", "--output", tmp_path / "model.json", says=[remedy])
    assert not (tmp_path / "model.json").exists()


@pytest.mark.parametrize("home", [None, "/nowhere"])
def test_without_java(home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "find_spec", lambda name: True)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", home)
    where = "none is found" if home is None else "none is in JAVA_HOME (/nowhere)"
    words = [f"--spark needs Java 17 or newer, and {where}: install it", "openjdk-17-jre-headless, or set JAVA_HOME"]
    refused("fit", "a.parquet", *READING, "--spark", "local[2]", "--output", tmp_path / "model.json", says=words)


def test_a_value_in_two_pieces_is_no_second_table(tmp_path: Path) -> None:
    table = write_table(tmp_path / "0.csv", 0)
    says = ["2 tables are given (", "but min is not the name of a file: write the value of an option without a space"]
    refused("fit", table, "min", *READING, "--output", tmp_path / "model.json", says=says)


def test_spark_without_a_table(tmp_path: Path) -> None:
    write_model(Model(theta=MarkovChain([[0.9, 0.1], [0.4, 0.6]])), tmp_path / "model.json")
    says = ["--spark is for reading a table"]
    refused("compare", tmp_path / "model.json", "--length", 9, "--epsilon", 1, "--spark", "local[2]", says=says)
