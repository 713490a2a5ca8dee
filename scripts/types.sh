#!/usr/bin/env bash
# Checks the types of this project's Python with mypy --strict; the settings are in pyproject.toml.
#
# Programs of a role import each other by their file names, and several roles have files of the same name
# (train.py, model.py), as do filter_plugins and callback_plugins (scalebook.py). Therefore mypy runs once
# per directory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.venv/bin:$PATH"

status=0

# check DIRECTORY: check the Python files of a directory.
check() {
  printf '%s: ' "$1"
  # Frameworks and ansible-core have no types here: their classes and decorators are Any.
  MYPYPATH="$1:roles/workload/files/kit:roles/horovod/files:roles/torch_bert/files" \
    mypy --allow-subclassing-any --allow-untyped-decorators "$1"/*.py || status=1
}

printf 'module_utils: '
mypy || status=1
for directory in library *_plugins roles/*/files roles/*/files/kit roles/*/library roles/*/filter_plugins; do
  if compgen -G "$directory/*.py" >/dev/null; then check "$directory"; fi
done
printf 'scripts/generated: '
MYPYPATH=scripts mypy scripts/generated/*.py || status=1

exit "$status"
