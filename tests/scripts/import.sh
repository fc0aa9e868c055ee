#!/usr/bin/env bash
# Files of other programs: `zeropeak import` and zero.config give the same job, and mistakes are named.
set -uo pipefail
. "$2/tests/scripts/shared/expect.sh"

# Both ways run to the same table.
cp "$source"/tests/reference/fsdp_inputs/{accelerate-fsdp2.yaml,accelerate-deepspeed.yaml,torchtitan.toml} .
cp "$source"/tests/reference/ds_inputs/{01-auto-zero3,16-zeropp}.json .
cp "$source/tests/reference/hf/tinyllama-1.1b.json" config.json
for file in *.yaml *.toml 0*.json 1*.json; do
    printf '[scenario]\nname = same\n[model]\nconfig = %s/config.json\n[zero]\nconfig = %s\n[world]\nranks = 16\n' \
        "$work" "$file" >direct.ini
    "$program" import config.json "$file" --set world.ranks=16 --set scenario.name=same \
        --output written.ini 2>/dev/null
    "$program" run direct.ini --no-database 2>/dev/null | sed 's/(direct.ini)//' >direct.txt
    "$program" run written.ini --no-database 2>/dev/null | sed 's/(written.ini)//' >written.txt
    grep -q Verdict direct.txt && diff direct.txt written.txt || {
        echo "FAIL: $file: zero.config and import differ"
        failed=1
    }
done

echo '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 4}}' >stage4.json
echo '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}}' >stage1.json
printf '[model]\ncatalog = GPT-2-XL\n[zero]\nconfig = stage1.json\n' >ok.ini
use() { expect "$1" "$2" "$program" run ok.ini --no-database --set "$3"; }
use 4 'nowhere.json' zero.config=nowhere.json
use 3 'goes to \[model\] config' zero.config=config.json
use 3 'no settings file' zero.config=ok.ini
use 3 'stage4.json:1.*stage' zero.config=stage4.json
use 3 'stage1.json:1: \[zero\] stage: the runtime .* has no stage 1' zero.runtime=fsdp2
expect 3 'second file of its kind' "$program" import 01-auto-zero3.json 16-zeropp.json
expect 3 'no model' "$program" import 01-auto-zero3.json
expect 2 'give a file' "$program" import
expect 4 'nowhere' "$program" import config.json --output nowhere/x.ini

# A relative path starts where its reader is: at the file that says it, at the working folder for --set.
mkdir below
cp config.json below/model.json
cp stage1.json below/settings.json
cp "$source/models/calibration/A100-SXM-40.ini" below/gpu.ini
printf '[model]\nconfig = model.json\n[zero]\nconfig = settings.json\n[device]\ncalibration = gpu.ini\n' >below/all.ini
printf '[model]\nconfig = model.json\n[world]\nranks = 8\n[sweep]\nmodel.config = model.json\n' >below/sweep.ini
below() { expect "$1" "$2" "$program" "$3" below/"$4".ini --no-database --set "$5"; }
below 0 'stage 1' run all world.ranks=8
for key in model.config:model.json zero.config:settings.json device.calibration:gpu.ini; do
    below 0 'stage 1' run all "${key/:/=below/}"
    below 4 "No such file" run all "${key/:/=}"
done
below 0 'model.json' sweep sweep zero.stage=1
below 0 'below/model.json' sweep sweep sweep.model.config=below/model.json
below 3 'No such file' sweep sweep sweep.model.config=model.json
exit $failed
