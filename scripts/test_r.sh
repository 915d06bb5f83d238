#!/usr/bin/env bash
# The R package in r/, with R itself: built, checked (its tests, its examples, its vignette), and the R of docs/r.md run.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v Rscript >/dev/null 2>&1 ||
   ! Rscript -e 'for (name in c("reticulate", "testthat", "knitr", "rmarkdown")) library(name, character.only = TRUE)' >/dev/null 2>&1; then
  echo "skipped"
  exit 0
fi
RETICULATE_PYTHON=$PWD/.venv/bin/python
export RETICULATE_PYTHON
root=$PWD folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
R CMD build "$root/r"
_R_CHECK_CRAN_INCOMING_=FALSE R CMD check --no-manual pufferfish_*.tar.gz | tee check.txt || {
  cat pufferfish.Rcheck/tests/*.fail 2>/dev/null
  exit 1
}
grep -q '^Status: OK' check.txt
# without Python all tests would be skipped, and the check content
grep -m 1 -E '^\[ FAIL 0 .* PASS [1-9][0-9]{2,} ' pufferfish.Rcheck/tests/*.Rout
sed -n '/^```r$/,/^```$/{/^```/d;p}' "$root/docs/r.md" > page.R
R_LIBS=$folder/pufferfish.Rcheck Rscript page.R > page.txt
test -s release.json
grep -q "all that could be checked holds" page.txt
echo "the R package is built and checked, and docs/r.md can be followed"
