# shellcheck shell=bash
# Shared by the scripts: checks the directory of the checkout, finds a Python and makes .venv.
# Source it; do not run it. Sets $root (the checkout) and changes into it.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root" || exit 1
logs="$root/.scalebook/logs"

# Settings of a user's shell that would make pip, Python or Ansible use another directory than this checkout.
unset PYTHONHOME PYTHONPATH VIRTUAL_ENV PIP_USER PIP_TARGET PIP_PREFIX ANSIBLE_INVENTORY
# With it, every process of Ansible compiles the project's Python again.
unset PYTHONDONTWRITEBYTECODE
export ANSIBLE_CONFIG="$root/ansible.cfg"

say() { printf "%s\n" "$@"; }
step() { printf '\n[%4d s] %s\n' "$SECONDS" "$*"; }
die() {
  printf '\nscalebook: %s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}

# check_place: stop in a directory that Ansible cannot work in, with a fix.
check_place() {
  case "$root" in
    *[[:cntrl:]\'\"\`\$\\:\;\&\|\<\>\(\)\{\}\[\]\*\?\!\#]*)
      die "the path of this checkout contains a character that is special to shells or Ansible: $root" \
        "Move it to a path of letters, digits, spaces, dots, dashes and underscores, and start again there." ;;
  esac
  if [ -n "$(find "$root" -maxdepth 0 -perm -0002)" ]; then
    die "everyone may write into $root, and Ansible ignores the ansible.cfg of such a directory." \
      "Fix: chmod o-w '$root'"
  fi
  [ -w "$root" ] || die "$(id -un) may not write into $root; clone scalebook into a directory of your own."
  # Ansible needs UTF-8, which LANG=C and locales that are not installed do not have.
  if [ "$(locale charmap 2>/dev/null)" != UTF-8 ]; then export LC_ALL=C.UTF-8; fi
}

# usable_python PYTHON: true if it runs, is 3.10 or newer, and can make a virtual environment. A pyenv shim
# without an installed version or a Debian python3 without python3-venv is not usable.
usable_python() {
  "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}

# find_python: print the first usable Python, or return false. The distribution's is first: it is built with
# optimizations, which one that pyenv builds is not by default. The Python of an activated .venv does not count,
# because .venv is removed and made from the Python that this prints.
find_python() {
  local name PATH=${PATH//"$root/.venv/bin:"/}
  for name in /usr/bin/python3{,.13,.12,.11,.10} python3 python3.13 python3.12 python3.11 python3.10 \
    /usr/local/bin/python3{,.13,.12,.11,.10}; do
    if usable_python "$name"; then
      command -v "$name"
      return
    fi
  done
  return 1
}

# as_root COMMAND...: run it as root, directly or through a sudo that needs no password.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# install_python: install the distribution's Python with venv, or the newest one that apt offers.
install_python() {
  local package name
  command -v apt-get >/dev/null || return 1
  as_root true 2>/dev/null || return 1
  mkdir -p "$logs"
  say "Installing Python with venv from the distribution (log: ${logs#"$root"/}/apt.log)"
  as_root apt-get update >"$logs/apt.log" 2>&1 </dev/null || return 1
  for name in python3 python3.13 python3.12 python3.11 python3.10; do
    package="$name-venv"
    [ -n "$(apt-cache madison "$package" 2>/dev/null)" ] || continue
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" \
      >>"$logs/apt.log" 2>&1 </dev/null || return 1
    if find_python >/dev/null; then return; fi
  done
  return 1
}

# prepare_venv REQUIREMENTS: install into .venv what the file pins. A flag file, written last, holds the checksum of
# the file and the path, so that an interrupted installation is repeated and a finished one is skipped.
prepare_venv() {
  local requirements=$1 flag python required log
  flag=".venv/.scalebook-$requirements"
  required="$(sha256sum <"$requirements") $root"
  if [ -f "$flag" ] && [ "$(cat "$flag")" = "$required" ] && .venv/bin/python -c '' 2>/dev/null; then
    return
  fi
  if [ -L .venv ]; then
    die ".venv is a link to $(readlink .venv), which would be emptied to install $requirements." \
      "Remove the link (rm '$root/.venv') and start again: this checkout gets an environment of its own."
  fi
  if ! python=$(find_python); then
    install_python || die "no Python 3.10 or newer that can make a virtual environment was found." \
      "Debian 12+, Ubuntu 22.04+: sudo apt-get install python3-venv" \
      "Older: install Python 3.11 with its venv module (pyenv, uv, deadsnakes), and put python3.11 on PATH." \
      "$([ ! -f "$logs/apt.log" ] || tail -n 3 "$logs/apt.log")"
    python=$(find_python)
  fi
  mkdir -p "$logs"
  log="$logs/pip.log"
  say "Installing $requirements into .venv with $python (log: ${log#"$root"/})"
  # In a moved checkout, or after its Python was removed, the commands of .venv do not start: make it again.
  if ! grep -qsF "$root/.venv/bin/" .venv/bin/pip || ! .venv/bin/python -c '' 2>/dev/null; then
    "$python" -m venv --clear .venv || die "$python could not make .venv (see above)."
  fi
  rm -f "$flag"
  # --no-compile: it halves the time, and what is imported is compiled then.
  if ! .venv/bin/python -m pip install --no-user --no-compile --disable-pip-version-check --require-hashes \
    --only-binary :all: -r "$requirements" >"$log" 2>&1 </dev/null; then
    tail -n 12 "$log" >&2
    if grep -qE 'Name or service not known|name resolution|No route to host|Network is unreachable|NewConnectionError|ConnectTimeout|Connection refused|ProxyError' "$log"; then
      die "the package registry cannot be reached." \
        "Behind a proxy, set HTTPS_PROXY. To use a mirror, set PIP_INDEX_URL. Then start again."
    fi
    die "pip could not install $requirements (see above; the whole log is ${log#"$root"/})."
  fi
  printf '%s' "$required" >"$flag"
}
