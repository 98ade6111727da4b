#!/bin/bash
# Small runs of a pack's programs on the device, compared with the CPU, side by side.
# usage: small-runs.sh ROWS WAY...   ROWS: a file of lines `program | words of a small run | ..`. One line a run: `ok small NAME (WAY)` or `FAIL small NAME (WAY): ..`
cd "$(dirname "$(readlink -f "$0")")" || exit 1
rows=$1
shift
export BEND_GPU_MEMORY=${BEND_GPU_MEMORY:-2GB}
one() {   # one WAY NAME WORDS...
  local way=$1 name=$2 want got err
  shift 2
  err=$(mktemp)
  want=$(BEND_GPU=off BEND_STATS=0 timeout 30 "bin/$name" "$@" 2>&1)
  got=$(BEND_GPU=require BEND_GPU_FORK=$way timeout 30 "bin/$name" "$@" 2>"$err")
  if [ "$got" = "$want" ] && ! grep -q 'no launches from the device' "$err"; then
    echo "ok small $name ($way)"
  else
    echo "FAIL small $name ($way): got $got, want $want; $(tail -3 "$err" | head -c 600 | tr '\n' ' ')"
  fi
  rm -f "$err"
}
export -f one
while IFS='|' read -r name small _; do
  name=${name// /}; [[ $name == '#'* || -z $name || ! -x bin/$name ]] && continue
  for way in "$@"; do echo $way $name $small; done
done <"$rows" | xargs -r -P "${JOBS:-8}" -L 1 bash -c 'one "$@"' one
