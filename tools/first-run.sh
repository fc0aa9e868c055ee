#!/usr/bin/env bash
# From a fresh checkout to the picture: Llama-3-8B under ZeRO-3 on 8 x 80 GB.
set -euo pipefail
cd "$(dirname "$0")/.."
bash tools/packages.sh
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF >/dev/null
cmake --build build -j"$(nproc)" --target zeropeak >/dev/null
build/zeropeak run scenarios/llama3-8b-zero3.ini --database build/first.db
build/zeropeak plot build/first.db --kind memory --output build/first.svg
build/zeropeak plot build/first.db --kind memory --output build/first.png
echo "the picture: build/first.svg (and .png); the records: build/first.db"
