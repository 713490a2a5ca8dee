#!/bin/sh
# A framework may open libcudnn.so and its like, NVIDIA's wheels have libcudnn.so.8: gives each library the name without a version.
# Prints the links that it makes.
# usage: link_libraries.sh FOLDER...
set -eu
for folder; do
  cd "$folder"
  for library in lib*.so.*; do
    if [ ! -e "$library" ]; then
      echo "$folder has no library" >&2
      exit 1
    fi
    link=${library%%.so.*}.so
    if [ "$(readlink "$link")" != "$library" ]; then
      ln -sfn "$library" "$link"
      echo "$folder/$link"
    fi
  done
done
