#!/usr/bin/env bash
# Installs the Debian packages that building (and, with "test", testing) needs.  Does nothing where
# they are all there.
set -euo pipefail
packages=(gcc cmake make pkg-config libglib2.0-dev libsqlite3-dev libjson-glib-dev libyaml-dev
          gnuplot-nox)
if [ "${1:-}" = test ]; then
    packages+=(clang clang-format clang-tidy libclang-rt-14-dev sqlite3 man-db python3 git)
fi
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
root=()
[ "$(id -u)" -eq 0 ] || root=(sudo)
export DEBIAN_FRONTEND=noninteractive
"${root[@]}" apt-get update -qq
"${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
