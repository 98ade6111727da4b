#!/bin/bash
# Runs the programs of sanitizers.txt under compute-sanitizer: memcheck at every way of dealing out forks, racecheck at host and flat.
# usage: run-sanitizers.sh [RESULTS] [SECONDS]   RESULTS gets sanitizers.txt; exit status 0 when all ran and nothing was reported
cd "$(dirname "$(readlink -f "$0")")" || exit 1
out=$(readlink -m "${1:-results}")
limit=${2:-240}
mkdir -p "$out"
tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || { echo "compute-sanitizer is missing"; exit 1; }
export tool out BEND_GPU=require BEND_GPU_MEMORY=256MB
one() {   # one CHECK WAY NAME WORDS...
  local check=$1 way=$2 name=$3 log want got
  shift 3
  log=$(mktemp)
  want=$(BEND_GPU=off timeout 20 "bin/$name" "$@" 2>&1)
  got=$(BEND_GPU_FORK=$way timeout 120 "$tool" --tool "$check" --error-exitcode 99 --log-file "$log" "bin/$name" "$@" 2>"$log.err"); local status=$?
  if [ "$status" = 0 ] && [ "$got" = "$want" ]; then
    echo "ok $check $way $name"
  else
    printf 'FAIL %s %s %s: status %s, got %s, want %s\n%s\n%s\n' "$check" "$way" "$name" "$status" "$got" "$want" "$(head -c 1200 "$log")" "$(head -c 400 "$log.err")"
  fi
  rm -f "$log" "$log.err"
}
export -f one
# runs CHECK WAY...: a line for each program and way
runs() {
  local check=$1 name words
  shift
  while IFS='|' read -r name words _; do words=$(echo $words)
    name=${name// /}; [[ $name == '#'* || -z $name || ! -x bin/$name ]] && continue
    for way in "$@"; do printf '%s %s %s %s\n' "$check" "$way" "$name" "$words"; done
  done <sanitizers.txt
}
start=$SECONDS
# side_by_side JOBS: runs the lines, until the time is used
side_by_side() {
  local left=$((limit - (SECONDS - start)))
  [ "$left" -gt 0 ] && timeout "$left" xargs -P "$1" -L 1 bash -c 'one "$@"' one
}
races=$(runs racecheck host flat)
accesses=$(runs memcheck auto host flat thread warp block)
# Eight processes under racecheck once took the 128 GB of a machine, and the kernel ended one of them.
{ side_by_side "${RACE_JOBS:-3}" <<<"$races"; side_by_side "${JOBS:-8}" <<<"$accesses"; } >"$out/sanitizers.txt"
wanted=$(wc -l <<<"$races"$'\n'"$accesses")
passed=$(grep -c '^ok ' "$out/sanitizers.txt") failed=$(grep -c '^FAIL ' "$out/sanitizers.txt")
[ "$((passed + failed))" = "$wanted" ] || echo "$((wanted - passed - failed)) did not end in $limit s" | tee -a "$out/sanitizers.txt"
echo "sanitizers: $passed passed, $failed failed" | tee -a "$out/sanitizers.txt"
[ "$passed" = "$wanted" ] && [ "$passed" -gt 0 ]
