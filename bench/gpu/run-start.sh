#!/bin/bash
# What a program's first `!` takes: against the driver's own floor (`doctor`), with PTX that the driver must compile (cold), finds in its cache (cached), or need not see
# (sm_90: built with --gpu-arch), at once and after half a second of work on the CPU. The runs take turns. usage: run-start.sh [RESULTS] [SECONDS] [ROUNDS]
# RESULTS gets start.tsv, a line a run, and start.txt, medians in milliseconds
cd "$(dirname "$(readlink -f "$0")")" || exit 1
out=$(readlink -m "${1:-results}")
limit=${2:-90}
rounds=${3:-5}
mkdir -p "$out"
start=$SECONDS
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
export BEND_GPU=require BEND_STATS=1 CUDA_CACHE_PATH=$cache
tsv=$out/start.tsv
printf 'program\tmode\tdriver\tcontext\tmodule\tmemory\twaited\tfirst\n' >"$tsv"
floor() { CUDA_CACHE_PATH=$cache ./bin/doctor | awk '/^floor of/ { sub(/ ms/, ""); printf "floor\tdoctor\t0\t0\t0\t0\t0\t%d\n", $NF * 1000 }' >>"$tsv"; }
run() {   # run MODE NAME WORDS...
  local mode=$1 name=$2 folder=$cache
  shift 2
  [ "$mode" != cold ] || folder=$(mktemp -d)
  CUDA_CACHE_PATH=$folder timeout 20 "bin/$name" "$@" 2>"$cache/stderr" >"$cache/stdout" || { echo "FAIL $name $*: $(head -c 300 "$cache/stderr")" | tee -a "$out/start.txt"; failed=1; }
  [ "$folder" = "$cache" ] || rm -rf "$folder"
  local key="${name%.sm_90} $*"
  [ -n "${want[$key]:-}" ] || want[$key]=$(BEND_GPU=off BEND_STATS=0 "bin/${name%.sm_90}" "$@")
  [ "$(cat "$cache/stdout")" = "${want[$key]}" ] || { echo "FAIL $name $* ($mode): $(head -c 100 "$cache/stdout"), not ${want[$key]}" | tee -a "$out/start.txt"; failed=1; }
  sed -n 's/.*start: driver \([0-9]*\) us, context \([0-9]*\) us, module \([0-9]*\) us, memory \([0-9]*\) us, waited for \([0-9]*\) us, first call \([0-9]*\) us.*/\1\t\2\t\3\t\4\t\5\t\6/p' "$cache/stderr" |
    sed "s/^/${name%.sm_90} $*\t$mode\t/" >>"$tsv"
}
failed=0
declare -A want   # the CPU's answers
: >"$out/start.txt"
work=${WORK:-$(for n in 100000000; do   # rounds of arithmetic that take about 0.55 s here
  begin=$(date +%s%N); BEND_GPU=off BEND_STATS=0 bin/start $n >/dev/null; end=$(date +%s%N); echo $((n * 550000000 / (end - begin))); done)}
./bin/doctor >/dev/null   # the first of a machine is slower
for program in 'start 0' 'radix 12 1' 'nbody 64 2 1'; do run first $program; done   # fills the cache
for ((round = 1; round <= rounds; ++round)); do
  [ "$((SECONDS - start))" -lt "$((limit - 8))" ] || { echo "the time ended after $((round - 1)) rounds" >>"$out/start.txt"; break; }
  floor
  for program in 'start 0' 'radix 12 1' 'nbody 64 2 1' "start $work"; do
    [ "$round" -gt 2 ] || run cold $program
    run cached $program
    name=${program%% *}
    [ ! -x "bin/$name.sm_90" ] || run sm_90 "$name.sm_90" ${program#* }
  done
done
awk -F'\t' -v work="$work" 'NR > 1 { n[$1 "\t" $2]++; for (i = 3; i <= 8; ++i) v[$1 "\t" $2, i, n[$1 "\t" $2]] = $i; if (!(($1 "\t" $2) in seen)) { seen[$1 "\t" $2] = 1; order[++rows] = $1 "\t" $2 } }
  function median(key, i,   a, j, k, m, t) { m = n[key]; for (j = 1; j <= m; ++j) a[j] = v[key, i, j]; for (j = 2; j <= m; ++j) for (k = j; k > 1 && a[k] < a[k - 1]; --k) { t = a[k]; a[k] = a[k - 1]; a[k - 1] = t }
    return (a[int((m + 1) / 2)] + a[int(m / 2) + 1]) / 2000 }
  END { floor = median("floor\tdoctor", 8); printf "floor (driver, context, an empty module): %.1f ms, %d runs; work: %s rounds\n", floor, n["floor\tdoctor"], work
    printf "%-22s %-7s %4s %8s %8s %8s %8s %8s %8s %8s\n", "program", "mode", "runs", "driver", "context", "module", "memory", "waited", "first", "-floor"
    for (r = 1; r <= rows; ++r) { key = order[r]; if (key ~ /^floor/) continue; split(key, part, "\t")
      printf "%-22s %-7s %4d %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f\n", part[1], part[2], n[key], median(key, 3), median(key, 4), median(key, 5), median(key, 6), median(key, 7), median(key, 8), median(key, 8) - floor } }' "$tsv" | tee -a "$out/start.txt"
[ "$failed" = 0 ]
