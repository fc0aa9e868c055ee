#!/usr/bin/env bash
# Includes only point down: sim < models < scenarios | reports < tools.
set -euo pipefail
cd "$2"
bad=0
forbid() { # floor, then the folders it may not include
    local floor=$1
    shift
    for other in "$@"; do
        if grep -rn --include='*.[ch]' "^#include \"$other" "$floor"; then
            echo "$floor/ must not include $other"
            bad=1
        fi
    done
}
forbid sim models/ scenarios/ reports/ tools/ tests/
forbid models scenarios/ reports/ tools/ tests/
forbid scenarios reports/ tools/ tests/
forbid reports scenarios/ tools/ tests/ sim/players/player.h sim/players/maxplus.h sim/events/queue.h
forbid tools tests/ sim/players/player.h sim/players/maxplus.h
# What the engine must not be able to spell, and what a library must not do.
if grep -rniE --include='*.[ch]' 'zero|shard|fsdp|deepspeed' sim | grep -viE 'zero(s|ed|-?byte|-length| time|th|_time)|non-?zero|g_new0|[a-z]+ zero|zero [a-z]+ ' ; then
    echo "sim/ speaks of the layers above"
    bad=1
fi
if grep -rnE --include='*.c' '\b(printf|puts|fputs|g_print|g_printerr)\(' sim models scenarios reports; then
    echo "a library prints"
    bad=1
fi
# Files of one purpose each.
for file in $(find sim models scenarios reports tools -name '*.[ch]'); do
    lines=$(wc -l <"$file")
    if [ "$lines" -gt 450 ]; then
        echo "$file has $lines lines"
        bad=1
    fi
done
# Only the agreed folders and files at the top.
for entry in $(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u); do
    case $entry in
    .* | CMakeLists.txt | CMakePresets.json | LICENSE | README.md | sim | models | scenarios | reports | tests | tools) ;;
    *) echo "unexpected at the top: $entry"; bad=1 ;;
    esac
done
exit $bad
