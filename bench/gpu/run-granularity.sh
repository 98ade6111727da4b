#!/bin/bash
# Runs the pack's programs at every way of dealing out forks, on a machine with a GPU: small sizes against the CPU, then times. Three runs of each way,
# the ways in turn, so that what a machine does more slowly at first, or now and then, is no way's own.
# usage: run-granularity.sh [RESULTS] [SECONDS] [PROGRAM...]   RESULTS gets granularity.tsv and granularity-checks.txt
# WAYS: those to run; CHECK=0: times only
cd "$(dirname "$(readlink -f "$0")")" || exit 1
out=$(readlink -m "${1:-results}")
limit=${2:-420}
shift $(($# < 2 ? $# : 2))
only=" $* "
mkdir -p "$out"
start=$SECONDS
left() { echo $((limit - (SECONDS - start))); }
export BEND_GPU=require BEND_STATS=1
: >"$out/granularity-checks.txt"
if [ "${CHECK:-1}" = 1 ]; then
  awk -F'|' -v only="$only" '{ name = $1; gsub(/ /, "", name); if (only ~ /^ *$/ || index(only, " " name " ")) print }' granularity.txt >"$out/rows.tmp"
  ./small-runs.sh "$out/rows.tmp" ${WAYS:-auto host flat block warp thread} >>"$out/granularity-checks.txt"
  rm -f "$out/rows.tmp"
  grep -q '^ok ' "$out/granularity-checks.txt" || echo "FAIL no small run passed" >>"$out/granularity-checks.txt"
fi
passed=$(grep -c '^ok ' "$out/granularity-checks.txt") failed=$(grep -c '^FAIL ' "$out/granularity-checks.txt")
[ -e "$out/granularity.tsv" ] || printf 'program\twords\tway\tresult\tcpu_result\tdevice_us\tcall_us\trounds\ttasks\tgrids\trefused\tkernels_us\n' >"$out/granularity.tsv"
field() { sed -n "s/.*[ ,]$1 \([0-9]*\).*/\1/p" <<<"$2" | head -1; }
# Kernels alone, of all calls: what is copied is the same at every way, and takes page-locked memory now and other memory then.
kernels() { grep -o 'calls, kernels [0-9]* us' <<<"$1" | awk '{ sum += $3 } END { print sum }'; }
count() { sed -n "s/.* \([0-9]*\) $1.*/\1/p" <<<"$2" | head -1; }
while IFS='|' read -r name small timed; do
  name=${name// /}; [[ $name == '#'* || -z $name || ! -x bin/$name ]] && continue
  [[ $only == '  ' || $only == *" $name "* ]] || continue
  [ "${timed// /}" != - ] || continue
  cpu=$(BEND_GPU=off BEND_STATS=0 timeout 30 bin/$name $timed 2>/dev/null)
  # A way whose small run failed is not timed.
  ways=
  for way in ${WAYS:-auto host flat block warp thread}; do grep -qF "FAIL small $name ($way)" "$out/granularity-checks.txt" || ways+=" $way"; done
  for run in 1 2 3; do
    for way in $ways; do
      [ "$(left)" -gt 5 ] || { echo "FAIL stopped at $name $way: the time is used" | tee -a "$out/granularity-checks.txt"; failed=$((failed + 1)); break 3; }
      result=$(BEND_GPU_FORK=$way timeout 20 bin/$name $timed 2>"$out/stderr.tmp"); status=$?
      stats=$(tr '\n' ' ' <"$out/stderr.tmp")
      [ $status = 0 ] || result="status $status: $(head -c 200 <<<"$stats" | tr '\t' ' ')"
      printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$(echo $timed)" "$way" "$result" "$cpu" "$(field device "$stats")" "$(field wall "$stats")" "$(count rounds "$stats")" "$(count tasks "$stats")" \
        "$(count 'grids launched' "$stats")" "$(count 'forks refused' "$stats")" "$(kernels "$stats")" >>"$out/granularity.tsv"
      [ $status = 0 ] && [ "$(field wall "$stats")" -lt 1000000 ] || ways=${ways/ $way/}   # once is enough
    done
  done
done <granularity.txt
rm -f "$out/stderr.tmp"
echo "granularity: $passed passed, $failed failed" | tee -a "$out/granularity-checks.txt"
[ "$failed" = 0 ]
