#!/usr/bin/env bash
# The packages by themselves: the sdist, and from it the wheel, built, installed in an empty environment without
# development tools, and used as the README does. `smoke.sh extras` also installs each extra alone and uses what it adds.
# PYTHON=/path/to/python3.13 scripts/smoke.sh takes another Python.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/build"
"$folder/build/bin/python" -m pip install --quiet build
"$folder/build/bin/python" -m build --outdir "$folder" . > "$folder/build.txt" 2>&1 || { cat "$folder/build.txt"; exit 1; }
wheel=$(ls "$folder"/*.whl)

fresh() { # an empty environment with the wheel, and with extras where they are named
  rm -rf "$folder/venv"
  "$python" -m venv "$folder/venv"
  "$folder/venv/bin/python" -m pip install --quiet "$wheel${1:+[$1]}"
}

fresh
cd "$folder"
tar -tzf ./*.tar.gz > sdist.txt
for file in README.md CITATION.cff mkdocs.yml src/pufferfish/py.typed tests/conftest.py; do
  grep -q "/$file\$" sdist.txt || { echo "the sdist lacks $file"; exit 1; }
done
venv/bin/pufferfish --version
venv/bin/pufferfish --help > help.txt
grep -q compare help.txt
venv/bin/pufferfish completion bash > completion.txt
grep -q complete completion.txt
venv/bin/python -c 'import pathlib, pufferfish; assert pathlib.Path(pufferfish.__file__).with_name("py.typed").exists()'
cat > states.csv <<'CSV'
minute,activity
0,rest
1,rest
2,active
3,rest
4,active
5,active
CSV
sed '$d' states.csv > survey.csv # public, and another table
table=(states.csv --state activity --time minute)
venv/bin/pufferfish fit survey.csv "${table[@]:1}" --smoothing 1 --output model.json
venv/bin/pufferfish compare model.json --length 1000 --query histogram --epsilon 1
venv/bin/pufferfish release "${table[@]}" --model model.json --query histogram --epsilon 1 --accept noise --output release.json
venv/bin/pufferfish verify release.json --model model.json
if venv/bin/pufferfish release "${table[@]}" --model model.json --epsilon 1 --accept noise --output again.json --plot picture.png 2> refused.txt; then
  echo "a picture without matplotlib: expected a refusal"; exit 1
fi
grep -q "plots need matplotlib" refused.txt || { cat refused.txt; exit 1; }
echo "the wheel works by itself"

[ "${1:-}" = extras ] || exit 0
rows='[("ann", 0, "rest"), ("ann", 1, "rest"), ("ann", 2, "active")]'
read_as() { # what makes a table with the extra, in Python
  venv/bin/python - <<PY
import pufferfish as pf
$1
data = pf.read_sequences(table, "activity", subject="id", time="minute", max_gap=1)
assert data.records == 3, data
PY
}
fresh plot
venv/bin/pufferfish release "${table[@]}" --model model.json --epsilon 1 --accept noise --output plotted.json --plot picture.png
test -s picture.png
echo "the extra plot works alone"
fresh pandas
read_as "import pandas; table = pandas.DataFrame($rows, columns=['id', 'minute', 'activity'])"
echo "the extra pandas works alone"
fresh duckdb
read_as "import duckdb; table = duckdb.sql(\"select * from (values ('ann', 0, 'rest'), ('ann', 1, 'rest'), ('ann', 2, 'active')) t(id, minute, activity)\")"
echo "the extra duckdb works alone"
if command -v java > /dev/null; then
  fresh spark
  read_as "from pyspark.sql import SparkSession; table = SparkSession.builder.master('local[1]').getOrCreate().createDataFrame($rows, 'id string, minute int, activity string')"
  echo "the extra spark works alone"
else
  echo "the extra spark was not tried: there is no Java"
fi
