#!/bin/sh
# Completes what a killed dnf left on this host. Its exit status is that of the last dnf.
# usage: repair_dnf.sh [PACKAGE...]    what rpm has recorded of the transaction that did not end
set -u

# rpm's database of release 8 keeps the locks of a process that was killed.
rpm --query --all >/dev/null 2>&1 || rpm --rebuilddb || exit

dnf() {
  command dnf --assumeyes --quiet --setopt=gpgcheck=True --setopt='*.gpgcheck=True' --setopt=exit_on_lock=True "$@"
}

# Of a package that was to be updated, both versions.
if [ -n "$(dnf --cacheonly repoquery --duplicates 2>/dev/null)" ]; then
  dnf remove --duplicates || exit
fi

# Installed again, a package runs its scripts. Of an update, the duplicates may have taken it away.
for package; do
  shift
  rpm --query "$package" >/dev/null 2>&1 && set -- "$@" "$package"
done
[ $# -eq 0 ] || dnf reinstall "$@"
