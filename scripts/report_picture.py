"""Make docs/images/report.png anew: the first part of the page of three releases of the example, in Chromium.

    python scripts/report_picture.py

Needs Chromium with its driver and selenium, as the tests of pages do.
"""

import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from selenium import webdriver

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "report.png"
READING = ["--state", "activity", "--subject", "id", "--time", "minute", "--max-gap", "1min"]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1200"]


def make_page(folder: Path) -> Path:
    """Release statistics of the example in a folder, and return their page."""
    given = ["steps.csv", *READING, "--model", "model.json", "--epsilon", "1", "--accept", "noise"]
    texts = ["--title", "Steps in January", "--office", "Office of Steps", "--period", "31 January to 2 February 2020"]
    for command in (
        ["example"],
        ["fit", "survey-2019.csv", *READING, "--output", "model.json"],
        ["release", *given, "--query", "histogram", "--valid", "--output", "all.json"],
        ["release", *given, "--query", "histogram", "--by", "hour", "--output", "hours.json"],
        ["release", *given, "--query", "share:active", "--by", "id,date", "--output", "people.json"],
        ["report", "all.json", "hours.json", "people.json", "--output", "report.html", *texts],
    ):
        subprocess.run([sys.executable, "-m", "pufferfish", *command], cwd=folder, check=True)
    return folder / "report.html"


def main() -> None:
    """Keep the page as a picture, up to what is promised."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    with TemporaryDirectory() as folder:
        browser.get(make_page(Path(folder)).as_uri())
        end = browser.execute_script("return document.querySelector('#release-3').getBoundingClientRect().bottom")
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 1000, "height": round(end) + 8, "deviceScaleFactor": 1, "mobile": False},
        )
        seen = Image.open(BytesIO(browser.get_screenshot_as_png()))
    seen.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    browser.quit()


if __name__ == "__main__":
    main()
