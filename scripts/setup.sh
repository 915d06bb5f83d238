#!/usr/bin/env bash
# Make .venv with the package (editable), its extras and the development tools.
set -euo pipefail
cd "$(dirname "$0")/.."

python=""
for candidate in ${PYTHON:-} python3.13 python3.12 python3.11 python3; do
  if command -v "$candidate" >/dev/null 2>&1 &&
     "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "setup: no Python 3.11 or newer found; install it, or name one with PYTHON=/path/to/python make …" >&2
  exit 2
fi

has_venv() { "$python" -c 'import ensurepip, venv' 2>/dev/null; }

if ! has_venv; then
  package="$("$python" -c 'import sys; print(f"python3.{sys.version_info.minor}-venv")')"
  as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo -n"
  if command -v apt-get >/dev/null 2>&1 && { [ -z "$as_root" ] || sudo -n true 2>/dev/null; }; then
    $as_root apt-get update -qq
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package"
  fi
fi

# A half-made environment (an interrupted run) is made anew.
rm -rf .venv
if has_venv; then
  "$python" -m venv .venv
elif "$python" -m pip --version >/dev/null 2>&1; then
  # No right to install Debian's package: pip can still fetch virtualenv into a folder of our own.
  "$python" -m pip install --quiet --target .venv-bootstrap virtualenv
  PYTHONPATH=.venv-bootstrap "$python" -m virtualenv --quiet .venv
  rm -rf .venv-bootstrap
else
  echo "setup: $python has neither venv nor pip; as root: apt-get install $package" >&2
  exit 2
fi

.venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
.venv/bin/python -m pip install --quiet --editable '.[plot,duckdb,pandas]' --group dev
touch .venv/ready
