#!/usr/bin/env bash
# `setup.sh plain` makes .venv with the package (editable) and plots; `setup.sh ready` adds the other extras and the
# development tools, and `setup.sh spark` Spark.
set -euo pipefail
cd "$(dirname "$0")/.."

# where .venv is active, its own Python comes first, and goes when .venv is made anew
PATH=":$PATH:"
PATH=${PATH//":$PWD/.venv/bin:"/:}
PATH=${PATH#:}
PATH=${PATH%:}
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

# Debian keeps what `python -m venv` needs in a package of its own. Where we may not install it, apt can still
# fetch pip's wheel into a folder of ours, and pip can fetch virtualenv.
install_venv() {
  command -v apt-get >/dev/null 2>&1 || return 0
  local package as_root=()
  package=$("$python" -c 'import sys; print(f"python3.{sys.version_info.minor}-venv")')
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return 0
    as_root=(sudo -n)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package"
}

fetch_pip() {
  "$python" -m pip --version >/dev/null 2>&1 && return
  command -v apt-get >/dev/null 2>&1 || return
  local apt=(apt-get -qq -o "Dir::State=$PWD/.venv-bootstrap/state" -o "Dir::Cache=$PWD/.venv-bootstrap/cache"
    -o Dir::State::status=/var/lib/dpkg/status)
  mkdir -p .venv-bootstrap/state/lists/partial .venv-bootstrap/cache/archives/partial
  "${apt[@]}" update
  (cd .venv-bootstrap && "${apt[@]}" download python3-pip-whl && dpkg-deb -x python3-pip-whl_*.deb .)
  PYTHONPATH=$(echo "$PWD"/.venv-bootstrap/usr/share/python-wheels/pip-*.whl)
  export PYTHONPATH
}

# uv needs half the time of pip; where it cannot get something (a mirror that only pip was told of, say), pip does all.
add_packages() {
  if .venv/bin/python -m pip install --quiet uv &&
     .venv/bin/python -m uv pip install --quiet --python .venv/bin/python "$@"; then
    return
  fi
  echo "setup: uv did not get everything; pip tries it" >&2
  .venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
  .venv/bin/python -m pip install --quiet "$@"
}

what=${1:-plain}
add_to_venv() {
  case $what in
    plain) add_packages --editable '.[plot]' ;;
    ready) add_packages --editable '.[plot,duckdb,pandas,postgresql,docs]' --group dev ;;
    spark)
      # 450 MB, which need Java: without one its tests are skipped, and say so. It comes as a source archive, and the
      # wheel made of it is used once: compressing it would take longer than all the rest, and keeping it would leave
      # 1.4 GB outside of this folder for every .venv that is made.
      if command -v java >/dev/null 2>&1; then
        export UV_NO_CACHE=1 PIP_NO_CACHE_DIR=1
        .venv/bin/python -m uv pip install --quiet --python .venv/bin/python --editable '.[spark]' \
          --config-settings-package pyspark:--build-option=--compression=stored || add_packages --editable '.[spark]'
      fi
      ;;
  esac
  touch ".venv/$what"
}

if [ "$what" != plain ]; then
  add_to_venv
  exit
fi
# a half-made environment (an interrupted run) is made anew
rm -rf .venv .venv-bootstrap
has_venv || install_venv
if has_venv; then
  "$python" -m venv .venv
else
  fetch_pip
  if ! "$python" -m pip install --quiet --target .venv-bootstrap/virtualenv virtualenv; then
    echo "setup: could not get venv, pip or virtualenv for $python; as root: apt-get install python3-venv" >&2
    exit 2
  fi
  PYTHONPATH=.venv-bootstrap/virtualenv "$python" -m virtualenv --quiet .venv
  unset PYTHONPATH
fi
rm -rf .venv-bootstrap
add_to_venv
