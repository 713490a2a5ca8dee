#!/bin/sh
# Completes what a killed package manager left on this host. Its exit status is that of apt-get.
# usage: repair_packages.sh ETC    the directory of passwd and group
set -u
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

# useradd and similar programs fail when one of them was killed before it wrote its process number into the lock, or
# when another process has that number now; packages that need a user cannot be configured then.
for file in passwd shadow group gshadow subuid subgid; do
  lock=$1/$file.lock
  [ -e "$lock" ] || continue
  holder=$(tr -dc 0-9 <"$lock")
  case "$(cat "/proc/${holder:-none}/comm" 2>/dev/null)" in
    *user* | *group* | passwd | chpasswd | chage | chsh | chfn | vipw | vigr) ;;
    *) rm -f "$lock" ;;
  esac
done

repair() {
  # dpkg marks a package whose unpacking was cut off: reinstreq. Where only the last steps of the unpacking are
  # missing, apt configures the package without unpacking it again, which dpkg refuses, unless it is named.
  # shellcheck disable=SC2046 # names of packages, which have no spaces
  apt-get --yes -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold --fix-broken --reinstall \
    install $(dpkg-query --show --showformat '${db:Status-Eflag} ${binary:Package}\n' | sed -n 's/^reinstreq //p')
}

dpkg --force-confdef --force-confold --configure -a
# An archive that is needed again may be missing, and so may the lists that say where it is.
repair || { apt-get update && repair; }
