#!/usr/bin/env bash
# Checks the types of this project's Python with mypy --strict; the settings are in pyproject.toml.
#
# Programs of a role import each other by their file names, and several roles have files of the same name
# (train.py, model.py), as do filter_plugins and callback_plugins (scalebook.py). Therefore mypy runs several
# times, each time on directories with no name in common. That a program imports nothing of a role that its
# node does not have is tested in tests/unit/project/test_imports.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.venv/bin:$PATH"

# What programs of other roles import.
shared="roles/workload/files/kit roles/horovod/files roles/microbench/files roles/mxnet/files roles/oneflow/files roles/paddle/files roles/pytorch/files roles/transformers/files"
# Programs import the package horovod: a filter plugin of that name is checked in a run of its own.
filters=roles/horovod/filter_plugins
# The directories of each run, and the names of the files in them.
groups=("")
names=("")
status=0

# place DIRECTORY: put a directory into the first run that has a file of none of its names.
place() {
  local own i name
  own=$(cd "$1" && echo *.py)
  for i in "${!groups[@]}"; do
    for name in $own; do
      case " ${names[i]} " in *" $name "*) continue 2 ;; esac
    done
    groups[i]+=" $1"
    names[i]+=" $own"
    return
  done
  groups+=("$1")
  names+=("$own")
}

# check DIRECTORIES: check the Python files of these directories together.
check() {
  local directories
  read -ra directories <<<"$1"
  printf '%s: ' "$1"
  # shellcheck disable=SC2046 # a pattern of each directory
  MYPYPATH=$(tr ' ' : <<<"$1 $shared") mypy $(printf '%s/*.py ' "${directories[@]}") || status=1
}

printf 'module_utils: '
mypy || status=1
# The shared ones first: where a role has a file of such a name, it is checked in another run.
for directory in $shared library *_plugins roles/*/files roles/*/library roles/*/filter_plugins; do
  case " ${groups[*]} $filters " in *" $directory "*) continue ;; esac
  if compgen -G "$directory/*.py" >/dev/null; then place "$directory"; fi
done
for group in "${groups[@]}" "$filters"; do
  check "$group"
done
printf 'scripts/generated: '
MYPYPATH=scripts mypy scripts/generated/*.py || status=1

exit "$status"
