#!/usr/bin/env bash
# Runs every command that the README shows in a ```sh block, in order, in a folder of its own.
# tools/*.sh are what runs this test (or builds what it runs), so they are only checked to exist.
set -euo pipefail
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build"
ln -s "$program" "$work/build/zeropeak"
cp -r "$source/scenarios" "$work/"
cp -r "$source/tests/reference" "$work/reference" 2>/dev/null || true
mkdir -p "$work/tests"
ln -s "$source/tests/reference" "$work/tests/reference"
cd "$work"
ran=0
while IFS= read -r line; do
    case $line in
    '' | '#'*) continue ;;
    ./tools/*) test -x "$source/${line%% *}" || { echo "missing: $line"; exit 1; } ;;
    *)
        echo "\$ $line"
        timeout 3600 bash -c "$line" >out.txt 2>&1 || { cat out.txt; echo "failed: $line"; exit 1; }
        ran=$((ran + 1))
        ;;
    esac
done < <(for page in "$source/README.md" "$source"/tools/docs/*.md; do
    awk '/^```sh$/ {inside = 1; next} /^```/ {inside = 0} inside' "$page"
done)
[ "$ran" -gt 0 ]
echo "$ran commands ran"
