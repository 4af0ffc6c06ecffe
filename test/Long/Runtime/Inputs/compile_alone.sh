#!/bin/bash
# Compiles each source of the runtime for CPUs by itself: the unity build hides a missing include.
# Those for MPI need its headers, which mpicxx finds.
#
#   compile_alone.sh RUNTIME
set -uo pipefail
cd "$1" || exit 1
failed=0
for file in $(find common cpu processes -name '*.cpp' | sort); do
  if ! mpicxx -std=c++17 -fsyntax-only -w -I. -Iinclude "$file"; then
    echo "$file does not compile alone" >&2
    failed=1
  fi
done
exit $failed
