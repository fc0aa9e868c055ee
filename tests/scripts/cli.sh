#!/usr/bin/env bash
# The command line from outside: exit codes, messages, and that nothing half-written stays behind.
set -uo pipefail
. "$2/tests/scripts/shared/expect.sh"

cp "$source/scenarios/llama3-8b-zero3.ini" ok.ini
set_key() { expect "$1" "$2" "$program" run ok.ini --no-database --set "$3"; }

expect 2 'COMMAND' "$program"
expect 0 'Commands:' "$program" --help
expect 2 "did you mean 'sweep'" "$program" swep
expect 2 'exactly one scenario' "$program" run
expect 2 'give one of --worst, --bands' "$program" validate --bands --worst
expect 2 'Unknown option|unknown option' "$program" run ok.ini --jsn
expect 4 'missing.ini' "$program" run missing.ini
expect 0 'zeropeak [0-9]' "$program" --version

set_key 3 'ranks' world.ranks=0
set_key 3 'ranks' world.ranks=-8
set_key 3 'ranks' world.ranks=99999999999999999999
set_key 3 'shard_group' world.shard_group=3
set_key 3 'stage' zero.stage=4
set_key 3 'prefetch' zero.prefetch=1000
set_key 3 'did you mean' zero.prefetsh=1
set_key 3 'micro_batch' training.micro_batch=nan
set_key 3 'parameter' precision.parameter=int3
set_key 3 'memory' 'device.memory=80G'
set_key 3 '' training.micro_batch=4000000000000000000

# A sweep without a single figure is wrong input, and leaves no record.
expect 3 'every point is refused; the first: .*shard_group' "$program" sweep ok.ini --database none.db --set sweep.world.shard_group=3,5
[ ! -e none.db ] || { echo "FAIL: a refused sweep was recorded"; failed=1; }
expect 0 '1 point is refused; the first: .*shard_group' "$program" sweep ok.ini --no-database --set sweep.world.shard_group=3,4
# Cuts are counted in GPUs: context parallel ranks are among those that ZeRO shards over.
expect 0 '^4 ranks of 64 GPUs; cut tensor x 8 with sequence, context x 2, pipeline x 2;' "$program" run ok.ini --no-database \
    --set world.ranks=64 --set zero.stage=1 --set training.accumulation=2 --set parallel.tensor=8 \
    --set parallel.sequence_parallel=yes --set parallel.context=2 --set parallel.pipeline=2
expect 4 'nowhere.csv' "$program" validate --runs nowhere.csv
expect 4 'nowhere.ini' "$program" validate --subset time_cal --calibration nowhere.ini
expect 3 'none of the .* rows is of subset time-cal; there are .*time_cal' "$program" validate --subset time-cal
expect 3 'no rows' "$program" validate --runs /dev/null

# A model that does not fit is an answer, not an error.
expect 0 'does not fit|DOES NOT FIT|no fit' "$program" run ok.ini --no-database --set device.memory="4 GiB"
expect 7 '' "$program" run ok.ini --no-database --set device.memory="4 GiB" --require-fit
expect 7 'does not fit' "$program" run --require-fit ok.ini --no-database --set device.memory="4 GiB"
expect 2 "takes no value, or 'sure'" "$program" run ok.ini --no-database --require-fit=maybe
# Without a capacity there is no verdict; an allocator that empties its cache is tight.
expect 0 '"fits" *: *null' "$program" run ok.ini --no-database --json --set device.memory=unlimited
expect 0 'No verdict' "$program" run ok.ini --no-database --require-fit=sure --set device.memory=unlimited
# A model that dies while it is built does not fit, whatever its step takes.
expect 7 'Over the life: does not fit; the worst is construction' "$program" run "$2/scenarios/llama2-70b-zero3.ini" --no-database \
    --set zero.runtime=deepspeed --set deepspeed.zero_init=no --lifecycle --require-fit
# What a framework keeps is no matter of the textbook's sum: the simulation decides.
expect 7 'Textbook sum' "$program" ledger ok.ini --require-fit --set zero.runtime=fsdp2 --set device.memory="4 GiB"
expect 0 '"fits" *: *false' "$program" run ok.ini --no-database --json --set device.memory="4 GiB"

# Databases: not ours, newer, in a folder that does not exist, on a full disk.
echo 'not a database' >foreign.db
cp foreign.db before.db
expect 5 'foreign.db' "$program" run ok.ini --database foreign.db
cmp -s foreign.db before.db || { echo "FAIL: a foreign file was changed"; failed=1; }
expect 4 'nowhere' "$program" run ok.ini --database nowhere/x.db
expect 5 'not a run database' "$program" run ok.ini --database /dev/full
# A file-size limit stands for the full disk: a new file does not stay, an old one does not change.
expect 4 '' bash -c "trap '' XFSZ; ulimit -f 40; $program run ok.ini --database full.db"
[ ! -e full.db ] || { echo "FAIL: something stayed on a full disk"; failed=1; }
"$program" run ok.ini --database large.db >/dev/null
cp large.db before.db
expect 4 '' bash -c "trap '' XFSZ; ulimit -f $(($(stat -c %s large.db) / 1024 + 8)); $program run ok.ini --database large.db"
[ "$(sqlite3 large.db 'select count(*) from run')" = 1 ] || { echo "FAIL: half a run stayed"; failed=1; }
expect 4 'disk full|cannot write' bash -c "$program run ok.ini --no-database --json >/dev/full"
expect 0 'recorded as run 1' "$program" run ok.ini --database mine.db
expect 0 'recorded as run 2' "$program" run ok.ini --database mine.db --set zero.stage=2
expect 5 '' bash -c "sqlite3 mine.db 'pragma user_version = 999' && $program run ok.ini --database mine.db"

# Plots leave nothing behind when they fail.
expect 4 '' "$program" plot missing.db --kind memory --output x.svg
expect 2 "no plot 'nonsense'" "$program" plot mine.db --kind nonsense --output x.svg
[ ! -e x.svg ] || { echo "FAIL: a failed plot left a file"; failed=1; }

# Ctrl-C in a long sweep: exit 130, the database as before.
"$program" run ok.ini --database sweep.db >/dev/null
cp sweep.db before.db
cat ok.ini >long.ini
printf '\n[sweep]\ntraining.micro_batch = 1..1000\nzero.wrap_blocks = 1..32\nzero.prefetch = 0..7\n' >>long.ini
"$program" sweep long.ini --database sweep.db >out 2>err &
pid=$!
# However slow the machine: once it is the program that runs and catches SIGINT, bit 1 of SigCgt.
catches() { [ /proc/$pid/exe -ef "$program" ] && grep -qE '^SigCgt:.*[2367abef]$' /proc/$pid/status; }
until catches || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
kill -INT $pid 2>/dev/null
wait $pid
got=$?
[ "$got" -eq 130 ] || { echo "FAIL: interrupted sweep exits $got"; head -3 err; failed=1; }

# The effective scenario loads back to itself.
"$program" check ok.ini --dump >dump1.ini || failed=1
"$program" check dump1.ini --dump >dump2.ini || failed=1
diff <(sed 's/ *#.*//' dump1.ini) <(sed 's/ *#.*//' dump2.ini) || { echo "FAIL: dump"; failed=1; }

# The same input gives the same bytes.
"$program" run ok.ini --no-database --json --trace >a.json
"$program" run ok.ini --no-database --json --trace >b.json
cmp -s a.json b.json || { echo "FAIL: two runs differ"; failed=1; }
exit $failed
