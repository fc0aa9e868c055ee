#!/usr/bin/env bash
# Writes anew what the tests hold against the program's own figures, for a review of the difference:
#   tests/scripts/shared/update.sh BUILD
# "# Expect" lines of scenarios/*.ini, golden receipts, tools/docs/cases.md, the lines shown in
# tools/docs/questions.md, tools/docs/imports.md.  Prose about figures stays for the reader.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../../.."
source=$PWD
program=$build/zeropeak
for test in scenario_files receipt table plot; do
    [ ! -x "$build/tests/test_$test" ] || ZP_UPDATE_REFERENCE=1 ZP_SOURCE_DIR=$source "$build/tests/test_$test" >/dev/null ||
        echo "test_$test still fails"
done
"$program" --generate-imports >tools/docs/imports.md
"$build/tests/check_cases" --markdown scenarios/cases >cases.new && mv cases.new tools/docs/cases.md

# The table between its marks.
"$program" validate --worst >worst.new
awk '/^<!-- zeropeak validate --worst -->$/ {print; while ((getline line < "worst.new") > 0) print line; skip = 1}
     /^<!-- end -->$/ {skip = 0} !skip || /^<!-- end -->$/ {if (!/--worst -->$/) print}' README.md >readme.new
mv readme.new README.md
rm worst.new

# A shown line becomes the printed line that reads the same but for its figures.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/build"
ln -s "$program" "$work/build/zeropeak"
ln -s "$source/scenarios" "$work/scenarios"
inside=none
: >"$work/out.txt"
: >"$work/used.txt"
plain() { sed -E 's/[0-9]+/N/g; s/N([.,  ]?N)*/N/g; s/[ =#]+/ /g' <<<"$1"; }
while IFS= read -r line; do
    case $line in
    '```sh')
        inside=sh
        : >"$work/used.txt"
        ;;
    '```text') inside=text ;;
    '```') inside=none ;;
    *)
        if [ $inside = sh ]; then
            (cd "$work" && bash -c "$line" >out.txt 2>err.txt) || echo "failed: $line" >&2
        elif [ $inside = text ] && ! grep -qxF -- "$line" "$work/out.txt"; then
            same=$(while IFS= read -r out; do
                [ "$(plain "$out")" != "$(plain "$line")" ] || grep -qxF -- "$out" "$work/used.txt" ||
                    { printf '%s\n' "$out"; break; }
            done <"$work/out.txt")
            printf '%s\n' "$same" >>"$work/used.txt"
            [ -n "$same" ] && line=$same || echo "questions.md: not printed any more: $line" >&2
        fi
        ;;
    esac
    printf '%s\n' "$line"
done <tools/docs/questions.md >"$work/questions.md"
cp "$work/questions.md" tools/docs/questions.md
git -C "$source" diff --stat -- README.md scenarios tools/docs tests/reference
