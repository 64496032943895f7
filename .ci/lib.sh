# shellcheck shell=bash
# Shared by the scripts of this directory; sourced, not run.

# Ends with a sentence on standard error.
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# debian PACKAGE...: installs the packages that are missing, or says which command would.
debian() {
  local missing="" package
  command -v dpkg >/dev/null || die "this step wants Debian with: $*"
  for package in "$@"; do dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"; done
  [ -n "$missing" ] || return 0
  [ "$(id -u)" = 0 ] || die "missing Debian packages; install them with: sudo apt-get install --no-install-recommends$missing"
  printf 'installing%s\n' "$missing"
  apt-get update -qq
  # shellcheck disable=SC2086 # a list of words
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# venv DIR PIP-ARGUMENT...: a Python environment in DIR that holds what the arguments name; made once per arguments.
venv() {
  local dir=$1; shift
  [ ! -e "$dir/installed" ] || [ "$(cat "$dir/installed")" != "$*" ] || return 0
  python3 -c 'import ensurepip' 2>/dev/null || debian python3 python3-venv
  rm -rf "$dir"
  python3 -m venv "$dir"
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
  printf '%s\n' "$*" >"$dir/installed"
}

# build_dir NAME: where builds go. A CI run starts from a fresh clone, so it keeps them beside the clone, not in it.
build_dir() {
  if [ "${CI:-}" = true ] && mkdir -p "../$1" 2>/dev/null && [ -w "../$1" ]; then
    (cd "../$1" && pwd)
  else
    mkdir -p "target" && (cd target && pwd)
  fi
}
