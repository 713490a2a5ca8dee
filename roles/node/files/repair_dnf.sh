#!/bin/sh
# Completes what a killed dnf left on this host. Its exit status is that of the last dnf.
# usage: repair_dnf.sh DNF [OPTION...] <PACKAGES
# The arguments are the command of dnf; a line of the input is a package that rpm has recorded of the transaction that did
# not end.
set -u

# rpm's database of release 8 keeps the locks of a process that was killed.
rpm --query --all >/dev/null 2>&1 || rpm --rebuilddb || exit

# Of a package that was to be updated, both versions.
if [ -n "$("$@" --cacheonly repoquery --duplicates 2>/dev/null)" ]; then
  "$@" remove --duplicates || exit
fi

# Installed again, a package runs its scripts. Of an update, the duplicates may have taken it away.
set -- "$@" reinstall
count=$#
while read -r package; do
  rpm --query "$package" >/dev/null 2>&1 && set -- "$@" "$package"
done
[ $# -eq "$count" ] || "$@"
