#!/usr/bin/env bash
# Man page, help and completion come from the tables and cannot lag behind them.
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$program" --generate-man >zeropeak.1
if command -v man >/dev/null; then
    warnings=$(man -l --warnings -Tutf8 zeropeak.1 2>&1 >page.txt)
    [ -z "$warnings" ] || { echo "$warnings"; exit 1; }
fi
commands=$("$program" --help | sed -n '/^Commands:/,/^$/p' | awk 'NR > 1 && NF {print $1}')
[ -n "$commands" ]
for command in $commands; do
    grep -q "^\.SS $command" zeropeak.1 || { echo "the man page lacks $command"; exit 1; }
    "$program" "$command" --help | grep "Examples:" >/dev/null || { echo "$command --help"; exit 1; }
done
for key in $("$program" explain | awk '{print $1}'); do
    "$program" explain "$key" >/dev/null || { echo "explain $key"; exit 1; }
done
# The page of imports is what the tables say.
"$program" --generate-imports | diff - "$2/tools/docs/imports.md" || { echo "tools/docs/imports.md is not current"; exit 1; }
# Completion offers commands, options and keys.
"$program" --generate-completion >completion
complete_words() {
    bash -c 'source completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _zeropeak; printf "%s\n" "${COMPREPLY[@]}"' _ "$@"
}
complete_words zeropeak sw | grep -x sweep >/dev/null
complete_words zeropeak run --js | grep -x -- --json >/dev/null
complete_words zeropeak explain zero.pre | grep -x zero.prefetch >/dev/null
# How far to trust it is what validate says today.
awk '/^<!-- zeropeak validate --worst -->$/ {inside = 1; next} /^<!-- end -->$/ {inside = 0} inside' "$2/README.md" |
    diff - <("$program" validate --worst) || { echo "README.md: the table of runs is not current"; exit 1; }
