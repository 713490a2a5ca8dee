#!/bin/sh
# Finishes what a package manager that was killed left on this host. Ends with its status.
# usage: mend.sh ETC    the directory of passwd and group
set -u
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

# useradd and its kin refuse to go on where one of them was killed before it wrote its process number into the lock,
# or where another process has that number since: packages that need a user cannot be configured then.
for file in passwd shadow group gshadow subuid subgid; do
  lock=$1/$file.lock
  [ -e "$lock" ] || continue
  holder=$(tr -dc 0-9 <"$lock")
  case "$(cat "/proc/${holder:-none}/comm" 2>/dev/null)" in
    *user* | *group* | passwd | chpasswd | chage | chsh | chfn | vipw | vigr) ;;
    *) rm -f "$lock" ;;
  esac
done

mend() {
  apt-get --yes -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold --fix-broken install
}

dpkg --force-confdef --force-confold --configure -a
# An archive that is needed again may not be there any more, nor the lists that say where it is.
mend || { apt-get update && mend; }
