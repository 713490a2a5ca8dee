# shellcheck shell=bash
# What scripts/demo and scripts/test share: a sound place to run in, a Python, and .venv.
# Sourced, never run. Sets $root (the checkout) and changes into it.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root" || exit 1
logs="$root/.scalebook/logs"

# Settings of a user's shell that would lead pip, Python or Ansible away from this checkout.
unset PYTHONHOME PYTHONPATH VIRTUAL_ENV PIP_USER PIP_TARGET PIP_PREFIX ANSIBLE_INVENTORY
export ANSIBLE_CONFIG="$root/ansible.cfg"

say() { printf '%s\n' "$*"; }
step() { printf '\n[%4d s] %s\n' "$SECONDS" "$*"; }
die() {
  printf '\nscalebook: %s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}

# check_place: stop where Ansible could not work, with the cure.
check_place() {
  case "$root" in
    *[[:cntrl:]\'\"\`\$\\:\;\&\|\<\>\(\)\{\}\[\]\*\?\!\#]*)
      die "the path of this checkout holds a character that shells or Ansible read as their own: $root" \
        "Move it to a path of letters, digits, spaces, dots, dashes and underscores, and start again there." ;;
  esac
  if [ -n "$(find "$root" -maxdepth 0 -perm -0002)" ]; then
    die "everyone may write into $root, and Ansible ignores the ansible.cfg of such a directory." \
      "Cure: chmod o-w '$root'"
  fi
  [ -w "$root" ] || die "$(id -un) may not write into $root; clone scalebook into a directory of your own."
  # Ansible refuses to start where the encoding is not UTF-8 (LANG=C, or a locale that was never made).
  if [ "$(locale charmap 2>/dev/null)" != UTF-8 ]; then export LC_ALL=C.UTF-8; fi
}

# usable_python PYTHON: true when it runs, is 3.10 or newer, and can make an environment. A pyenv
# shim without a version behind it, or a Debian python3 without python3-venv, is not usable.
usable_python() {
  "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}

# find_python: print the first usable Python; false when there is none. That of .venv does not
# count, though .venv may be activated: it must outlive .venv.
find_python() {
  local name PATH=${PATH//"$root/.venv/bin:"/}
  for name in python3 python3.13 python3.12 python3.11 python3.10 \
    /usr/bin/python3{,.13,.12,.11,.10} /usr/local/bin/python3{,.13,.12,.11,.10}; do
    if usable_python "$name"; then
      command -v "$name"
      return
    fi
  done
  return 1
}

# as_root COMMAND...: run it as root, directly or through a sudo that asks for no password.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# install_python: let apt install the distribution's Python with venv, else one beside it.
install_python() {
  local package wanted
  command -v apt-get >/dev/null || return 1
  as_root true 2>/dev/null || return 1
  mkdir -p "$logs"
  say "Installing Python with venv from the distribution (log: ${logs#"$root"/}/apt.log)"
  as_root apt-get update >"$logs/apt.log" 2>&1 </dev/null || return 1
  for wanted in python3 python3.13 python3.12 python3.11 python3.10; do
    package="$wanted-venv"
    [ -n "$(apt-cache madison "$package" 2>/dev/null)" ] || continue
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" \
      >>"$logs/apt.log" 2>&1 </dev/null || return 1
    if find_python >/dev/null; then return; fi
  done
  return 1
}

# prepare_venv REQUIREMENTS: make .venv hold what the file pins. A mark, written last, carries the
# file's checksum and the place, so an interrupted install is done again and a finished one never.
prepare_venv() {
  local requirements=$1 mark python want log
  mark=".venv/.scalebook-$requirements"
  want="$(sha256sum <"$requirements") $root"
  if [ -f "$mark" ] && [ "$(cat "$mark")" = "$want" ] && .venv/bin/python -c '' 2>/dev/null; then
    return
  fi
  if ! python=$(find_python); then
    install_python || die "there is no Python 3.10 or newer that can make a virtual environment." \
      "Debian 12+, Ubuntu 22.04+: sudo apt-get install python3-venv" \
      "Older: install Python 3.11 with its venv module (pyenv, uv, deadsnakes), and have python3.11 on PATH." \
      "$([ ! -f "$logs/apt.log" ] || tail -n 3 "$logs/apt.log")"
    python=$(find_python)
  fi
  mkdir -p "$logs"
  log="$logs/pip.log"
  say "Installing $requirements into .venv with $python (log: ${log#"$root"/})"
  # A moved checkout or a removed Python leaves a .venv whose commands do not start: make it anew.
  if ! grep -qsF "$root/.venv/bin/" .venv/bin/pip || ! .venv/bin/python -c '' 2>/dev/null; then
    "$python" -m venv --clear .venv || die "$python could not make .venv (see above)."
  fi
  rm -f "$mark"
  if ! .venv/bin/python -m pip install --no-user --disable-pip-version-check --require-hashes \
    -r "$requirements" >"$log" 2>&1 </dev/null; then
    tail -n 12 "$log" >&2
    if grep -qE 'Name or service not known|name resolution|No route to host|Network is unreachable|NewConnectionError|ConnectTimeout|Connection refused|ProxyError' "$log"; then
      die "the package registry cannot be reached from here." \
        "Behind a proxy set HTTPS_PROXY; to use a mirror set PIP_INDEX_URL; then start again."
    fi
    die "pip could not install $requirements (above; all of it in ${log#"$root"/})."
  fi
  printf '%s' "$want" >"$mark"
}
