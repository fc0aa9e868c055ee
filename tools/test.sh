#!/usr/bin/env bash
# All tests: style, warnings of two compilers, unit and reference tests, sanitizers, short fuzzing.
#   tools/test.sh          everything (what CI runs)
#   tools/test.sh quick    one build and its tests
set -euo pipefail
cd "$(dirname "$0")/.."
bash tools/packages.sh test
jobs=$(nproc)
sources() { git ls-files '*.c' '*.h' 2>/dev/null || find sim models scenarios reports tools tests -name '*.[ch]'; }

step() { printf '\n== %s\n' "$*"; }
# Builds quietly; on failure shows what the compiler said and stops.
build() {
    local folder=$1
    shift
    cmake --build "$folder" -j"$jobs" "$@" >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }
}

step "build and test (gcc, warnings are errors)"
cmake -S . -B build-test -DCMAKE_BUILD_TYPE=Release -DZP_WERROR=ON >/dev/null
build build-test
ctest --test-dir build-test -j"$jobs" --output-on-failure
[ "${1:-}" = quick ] && exit 0

step "format"
sources | xargs clang-format --dry-run --Werror

step "build (clang, warnings are errors)"
CC=clang cmake -S . -B build-clang -DCMAKE_BUILD_TYPE=Release -DZP_WERROR=ON >/dev/null
build build-clang

step "clang-tidy"
sources | grep '\.c$' | grep -v '^tests/' | xargs -P "$jobs" -n 4 clang-tidy --quiet -p build-clang 2>/dev/null

step "address and undefined-behaviour sanitizers"
# -O1, as AddressSanitizer's manual advises: without it the tests take twice as long.
cmake -S . -B build-sanitize -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-g -O1" \
    -DZP_SANITIZE=address,undefined >/dev/null
build build-sanitize
ctest --test-dir build-sanitize -j"$jobs" --output-on-failure

step "fuzzing, ${ZP_FUZZ_SECONDS:-10} s a target"
CC=clang cmake -S . -B build-fuzz -DCMAKE_BUILD_TYPE=Release -DZP_FUZZ=ON \
    -DZP_SANITIZE=address,undefined >/dev/null
for source in tests/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c)
    build build-fuzz --target "$target"
    mkdir -p "build-fuzz/found/$target"
    "build-fuzz/tests/$target" -max_total_time="${ZP_FUZZ_SECONDS:-10}" -timeout=120 -rss_limit_mb=2048 \
        -artifact_prefix="build-fuzz/found/" "build-fuzz/found/$target" \
        "tests/fuzz/corpus/${target#fuzz_}" >"build-fuzz/$target.log" 2>&1 ||
        { tail -40 "build-fuzz/$target.log"; exit 1; }
    echo "$target: nothing found"
done

step "all passed"
