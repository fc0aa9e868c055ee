#!/usr/bin/env bash
# The rooms of tools/docs/architecture.md: who may include whom, no circles, files of one purpose.
#   floors.sh PROGRAM SOURCE   (the program's folder has the objects whose symbols are looked at)
set -euo pipefail
build=$(cd "$(dirname "$1")" && pwd)
cd "$2"
bad=0
complain() {
    echo "$*"
    bad=1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find sim models scenarios reports tools -name '*.[ch]' | LC_ALL=C sort >"$work/files"

# The table: | `room/` | what stands there | faces | may include |
awk -F'|' '/^\| `(sim|models|scenarios|reports|tools)/ {
    gsub(/[` ]/, "", $2); gsub(/`/, "", $4); gsub(/[`,]/, " ", $5)
    print $2 "|" $4 "|" $5
}' tools/docs/architecture.md >"$work/rooms"
[ "$(wc -l <"$work/rooms")" -gt 20 ] || complain "tools/docs/architecture.md has no table of rooms"
while read -r room; do
    grep -q "^$room/|" "$work/rooms" || complain "$room/ is no room of tools/docs/architecture.md"
done < <(sed 's#/[^/]*$##' "$work/files" | sort -u)
while IFS='|' read -r room faces _; do
    [ -d "$room" ] || complain "tools/docs/architecture.md: there is no $room"
    for face in $faces; do
        [ -f "$room$face" ] || complain "tools/docs/architecture.md: $room has no $face"
        head -c 2 "$room$face" | grep -q '^/\*' || complain "$room$face does not say what it is for"
    done
done <"$work/rooms"

# Includes: "includer included", and whether the table allows it.
xargs grep -Hn '^#include "' <"$work/files" |
    sed -E 's/^([^:]*):([0-9]+):#include "([^"]*)".*/\1 \2 \3/' >"$work/includes"
awk -v rooms="$work/rooms" '
    function room_of(path) { sub(/[^\/]*$/, "", path); return path }
    BEGIN {
        while ((getline line < rooms) > 0) { split(line, part, "|"); may[part[1]] = part[3] }
    }
    {
        from = room_of($1); to = room_of($3)
        if ($3 ~ /_internal\.h$/ && from != to)
            print $1 ":" $2 ": " $3 " is internal to " to
        if (from == to) next
        n = split(may[from], allowed, /[ ]+/); ok = 0
        for (i = 1; i <= n; i++) {
            rule = allowed[i]
            if (rule == to || (rule ~ /\*$/ && index(to, substr(rule, 1, length(rule) - 1)) == 1)) ok = 1
        }
        if (!ok) print $1 ":" $2 ": " from " may not include " to " (" $3 ")"
    }' "$work/includes" >"$work/walls"
[ ! -s "$work/walls" ] || { cat "$work/walls"; bad=1; }

# Circles: of headers by their includes, of rooms by theirs, and of sources by the symbols that they
# take from one another.
no_circle() { # what, edges
    tsort <"$2" >/dev/null 2>"$work/loops" || complain "circle by $1: $(sed 's/^tsort: //' "$work/loops" | grep -v loop | tr '\n' ' ')"
}
awk '$1 ~ /\.h$/ {print $1, $3}' "$work/includes" >"$work/edges"
no_circle includes "$work/edges"
awk '{print $1, $3}' "$work/includes" | sed -E 's#/[^ /]+ # #; s#/[^/]*$##' | awk '$1 != $2' | sort -u >"$work/room-edges"
no_circle "includes of rooms" "$work/room-edges"
: >"$work/objects"
if command -v nm >/dev/null && [ -d "$build/CMakeFiles" ]; then
    while read -r file; do
        object=$(find "$build/CMakeFiles" -path "*.dir/$file.o" -print -quit)
        [ -z "$object" ] || echo "$object"
    done < <(grep '\.c$' "$work/files") >"$work/objects"
fi
objects=$(wc -l <"$work/objects" 2>/dev/null || echo 0)
if [ "$objects" -gt 0 ]; then
    xargs nm -A <"$work/objects" | sed -E 's#^.*\.dir/([^:]*)\.c\.o:#\1 #' | awk '
        NF == 4 && $3 ~ /^[TDBRC]$/ { home[$4] = $1 }
        NF == 3 && $2 == "U" { user[++n] = $1; name[n] = $3 }
        END { for (i = 1; i <= n; i++) if (name[i] in home && home[name[i]] != user[i]) print user[i], home[name[i]] }
    ' | sort -u >"$work/symbols"
    no_circle symbols "$work/symbols"
else
    echo "no objects under $build: circles by symbols are not looked at"
fi

# What the engine must not be able to spell, and what a library must not do.
if grep -rniE --include='*.[ch]' 'zero|shard|fsdp|deepspeed' sim | grep -viE 'zero(s|ed|-?byte|-length| time|th|_time)|non-?zero|g_new0|[a-z]+ zero|zero [a-z]+ '; then
    complain "sim/ speaks of the layers above"
fi
if grep -rnE --include='*.c' '\b(printf|puts|fputs|g_print|g_printerr)\(' sim models scenarios reports; then
    complain "a library prints"
fi
# Files of one purpose each, folders that can be looked over.
while read -r lines file; do
    [ "$file" = total ] || [ "$lines" -le 400 ] || complain "$file has $lines lines"
done < <({ cat "$work/files"; find tests -name '*.[ch]'; } | xargs wc -l)
while read -r count room; do
    [ "$count" -le 25 ] || complain "$room/ has $count files"
done < <(sed 's#/[^/]*$##' "$work/files" | uniq -c)
# Only the agreed folders and files at the top.
for entry in $(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u); do
    case $entry in
    .* | CMakeLists.txt | CMakePresets.json | LICENSE | README.md | sim | models | scenarios | reports | tests | tools) ;;
    *) complain "unexpected at the top: $entry" ;;
    esac
done
# Paths that the pages name are there.
while read -r page path; do
    [ -e "$path" ] || compgen -G "$path" >/dev/null || complain "$page names $path, which is not there"
done < <(grep -oHE '`(sim|models|scenarios|reports|tools|tests)/[A-Za-z0-9_./*-]+`' tools/docs/*.md .github/*.md README.md |
    tr -d '`' | sed 's/:/ /' | grep -v NAME | sort -u)
exit $bad
