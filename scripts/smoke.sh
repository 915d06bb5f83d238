#!/usr/bin/env bash
# The wheel by itself: built, installed in an empty environment without development tools, and used as the README does.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$folder" .
"$folder/venv/bin/python" -m pip install --quiet "$folder"/*.whl
cd "$folder"
venv/bin/pufferfish --help > help.txt
grep -q compare help.txt
cat > states.csv <<'CSV'
minute,activity
0,rest
1,rest
2,active
3,rest
4,active
5,active
CSV
venv/bin/pufferfish fit states.csv --state activity --time minute --smoothing 1 --output model.json
venv/bin/pufferfish compare model.json --length 1000 --query histogram --epsilon 1
venv/bin/pufferfish release states.csv --state activity --time minute --model model.json --query histogram --epsilon 1 --output release.json
test -s release.json
if venv/bin/pufferfish release states.csv --state activity --time minute --model model.json --epsilon 1 --output again.json --plot picture.png 2> refused.txt; then
  echo "a picture without matplotlib: expected a refusal"; exit 1
fi
grep -q "plots need matplotlib" refused.txt || { cat refused.txt; exit 1; }
echo "the wheel works by itself"
