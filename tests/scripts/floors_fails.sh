#!/usr/bin/env bash
# The floor test sees what it is for: each wall broken in a copy of the sources makes it fail, by name.
set -euo pipefail
source=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fresh() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/tests"
    cp -r "$source"/{sim,models,scenarios,reports,tools,.github,README.md} "$work/tree/"
    cp -r "$source"/tests/scripts "$work/tree/tests/"
    find "$source/tests" -maxdepth 1 -type f -exec cp {} "$work/tree/tests/" \;
    ln -s "$source/tests/reference" "$work/tree/tests/reference"
}
check() { # what must be said
    if (cd "$work/tree" && bash "$source/tests/scripts/floors.sh" "$work/none/zeropeak" "$work/tree") >"$work/out" 2>&1; then
        echo "FAIL: not noticed: $1"
        failed=1
    elif ! grep -qF -- "$1" "$work/out"; then
        echo "FAIL: not said: $1"
        cat "$work/out"
        failed=1
    fi
}
mkdir "$work/none"
fresh
(cd "$work/tree" && bash "$source/tests/scripts/floors.sh" "$work/none/zeropeak" "$work/tree") >"$work/out" || { cat "$work/out"; echo "FAIL: the sources as they are"; failed=1; }
echo '#include "models/job/job.h"' >>"$work/tree/sim/tape/tape.c"
check "sim/tape/ may not include models/job/"
fresh
echo '#include "models/families/traits_internal.h"' >>"$work/tree/models/step/step.c"
check "models/families/traits_internal.h is internal to models/families/"
fresh
echo '#include "models/step/step.h"' >>"$work/tree/models/step/verdict.h"
check "circle by includes:"
fresh
mkdir "$work/tree/models/attic"
echo '/* */' >"$work/tree/models/attic/old.c"
check "models/attic/ is no room"
fresh
for i in $(seq 401); do echo '/* */'; done >"$work/tree/models/words/long.c"
check "models/words/long.c has 401 lines"
fresh
for i in $(seq 26); do echo '/* */' >"$work/tree/models/words/w$i.c"; done
check "models/words/ has"
fresh
# Two sources that call each other, as a build leaves them.
(cd "$work/tree/models/words" && echo 'int there(void); int here(void); int here(void) { return there(); }' >here.c &&
    echo 'int there(void); int here(void); int there(void) { return here(); }' >there.c)
objects="$work/none/CMakeFiles/zp_models.dir/models/words"
mkdir -p "$objects"
for name in here there; do cc -c "$work/tree/models/words/$name.c" -o "$objects/$name.c.o"; done
check "circle by symbols:"
rm -r "$work/none/CMakeFiles"
fresh
printf '#include <stdio.h>\nvoid f(void);\nvoid f(void) { puts(""); }\n' >"$work/tree/models/words/loud.c"
check "a library prints"
fresh
echo 'See `models/words/nowhere.h`.' >>"$work/tree/tools/docs/architecture.md"
check "names models/words/nowhere.h, which is not there"
exit $failed
