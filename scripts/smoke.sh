#!/usr/bin/env bash
# The packages by themselves: the sdist, and from it the wheel, built, installed in an empty environment without
# development tools, and used as the README does. `smoke.sh extras` also installs each extra alone and uses what it adds;
# `smoke.sh quick` makes the README's release, without a picture.
# OUTPUT=dist keeps what was built there; PYTHON=/path/to/python3.13 takes another Python than that of .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python=${PYTHON:-$root/.venv/bin/python}
output=${OUTPUT:-$folder/built}
rm -rf "$output"
mkdir -p "$output"
output=$(cd "$output" && pwd)
uv() { "$root/.venv/bin/python" -m uv "$@"; }

# as in setup.sh: uv takes a fraction of the time of pip; where it cannot get something, pip does all
build() {
  uv build --quiet --out-dir "$output" "$root" 2> "$folder/build.txt" && return
  "$python" -m venv "$folder/build"
  "$folder/build/bin/python" -m pip install --quiet build
  "$folder/build/bin/python" -m build --outdir "$output" "$root" > "$folder/build.txt" 2>&1 || { cat "$folder/build.txt"; exit 1; }
}

fresh() { # an empty environment with the wheel, and with extras where they are named
  rm -rf "$folder/venv"
  uv venv --quiet --python "$python" "$folder/venv" &&
    uv pip install --quiet --python "$folder/venv/bin/python" "$wheel${1:+[$1]}" && return
  rm -rf "$folder/venv"
  "$python" -m venv "$folder/venv"
  "$folder/venv/bin/python" -m pip install --quiet "$wheel${1:+[$1]}"
}

first_block() { # the first block of this language in the README that has these words
  "$python" - "$root/README.md" "$@" <<'PY'
import pathlib, re, sys
page, language, words = sys.argv[1:]
blocks = re.findall(rf"```{language}\n(.*?)```", pathlib.Path(page).read_text(encoding="utf-8"), flags=re.DOTALL)
print(next(block for block in blocks if words in block))
PY
}

build
wheel=$(ls "$output"/*.whl) sdist=$(ls "$output"/*.tar.gz)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
first_block sh "pufferfish example" > "$folder/commands.sh"
first_block python "pf.read_sequences(" > "$folder/example.py"

fresh
mkdir "$folder/work"
cd "$folder/work"
PATH=$folder/venv/bin:$PATH
tar -tzf "$sdist" > sdist.txt
for file in README.md CITATION.cff mkdocs.yml src/pufferfish/py.typed tests/conftest.py r/DESCRIPTION certificate/check.py; do
  grep -q "/$file\$" sdist.txt || { echo "the sdist lacks $file"; exit 1; }
done
[ "$(pufferfish --version)" = "pufferfish, version $version" ]
python -c 'import pathlib, pufferfish; assert pathlib.Path(pufferfish.__file__).with_name("py.typed").exists()'
pufferfish completion bash > completion.txt
grep -q complete completion.txt
if [ "${1:-}" = quick ]; then
  sed -i 's/ --plot release.png//' ../commands.sh
  bash -e ../commands.sh > printed.txt
  pufferfish verify release.json --model model.json > verified.txt
  tail -1 verified.txt
  echo "the wheel makes a release by itself ($("$folder/venv/bin/python" --version), pufferfish $version)"
  exit 0
fi
# the README's commands: without matplotlib the picture is refused, and no release is written
if bash -e ../commands.sh > printed.txt 2> refused.txt; then
  echo "a picture without matplotlib: expected a refusal"; exit 1
fi
grep -q "plots need matplotlib" refused.txt || { cat refused.txt; exit 1; }
[ ! -e release.json ]
rm survey-2019.csv steps.csv model.json
sed 's/ --plot release.png//' ../commands.sh | bash -e > printed.txt
pufferfish verify release.json --model model.json > verified.txt
tail -1 verified.txt
sed '/\.plot(/d' ../example.py | python - > printed.txt
[ -s in-python.json ]
echo "the wheel works by itself ($("$folder/venv/bin/python" --version), pufferfish $version)"

[ "${1:-}" = extras ] || exit 0
rows='[("ann", 0, "rest"), ("ann", 1, "rest"), ("ann", 2, "active")]'
read_as() { # what makes a table with the extra, in Python
  python - <<PY
import pufferfish as pf
$1
data = pf.read_sequences(table, "activity", subject="id", time="minute", max_gap=1)
assert data.records == 3, data
PY
}
fresh plot
rm ./*
bash -e ../commands.sh > printed.txt
python ../example.py > printed.txt
[ -s release.png ] && [ -s in-python.png ]
echo "the extra plot works alone"
fresh pandas
read_as "import pandas; table = pandas.DataFrame($rows, columns=['id', 'minute', 'activity'])"
echo "the extra pandas works alone"
fresh duckdb
read_as "import duckdb; table = duckdb.sql(\"select * from (values ('ann', 0, 'rest'), ('ann', 1, 'rest'), ('ann', 2, 'active')) t(id, minute, activity)\")"
echo "the extra duckdb works alone"
fresh postgresql
python -c "import psycopg, pufferfish"
echo "the extra postgresql is installed"
if command -v java > /dev/null; then
  fresh spark
  read_as "from pyspark.sql import SparkSession; table = SparkSession.builder.master('local[1]').getOrCreate().createDataFrame($rows, 'id string, minute int, activity string')"
  echo "the extra spark works alone"
else
  echo "the extra spark was not tried: there is no Java"
fi
