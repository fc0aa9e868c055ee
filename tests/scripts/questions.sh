#!/usr/bin/env bash
# The lines that tools/docs/questions.md shows are what its commands print.
set -euo pipefail
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build"
ln -s "$program" "$work/build/zeropeak"
ln -s "$source/scenarios" "$work/scenarios"
cd "$work"
inside=none
shown=0
failed=0
: >out.txt
while IFS= read -r line; do
    case $line in
    '```sh') inside=sh ;;
    '```text') inside=text ;;
    '```') inside=none ;;
    *)
        if [ $inside = sh ]; then
            bash -c "$line" >out.txt || { echo "failed: $line"; failed=1; }
        elif [ $inside = text ]; then
            shown=$((shown + 1))
            grep -qxF -- "$line" out.txt || { echo "not printed: $line"; failed=1; }
        fi
        ;;
    esac
done <"$source/tools/docs/questions.md"
[ "$shown" -gt 0 ] || failed=1
echo "$shown lines are as shown"
exit $failed
