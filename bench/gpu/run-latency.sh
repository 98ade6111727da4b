#!/bin/bash
# What a warm `!` on 2^10 elements takes: wall time of `latency 10 N` by (N - 1) calls, N = CALLS + 1, with counters and without, in turn.
# usage: run-latency.sh [RESULTS] [RUNS] [CALLS]     RESULTS gets latency.txt
cd "$(dirname "$(readlink -f "$0")")" || exit 1
out=$(readlink -m "${1:-results}")
runs=${2:-5}
calls=${3:-10000}
mkdir -p "$out"
export BEND_GPU=require BEND_GPU_MEMORY=${BEND_GPU_MEMORY:-2GB}
rm -f "$out/latency.err"
wall() {   # wall STATS N: nanoseconds
  local begin end
  begin=$(date +%s%N)
  BEND_STATS=$1 timeout 30 bin/latency 10 "$2" >/dev/null 2>"$out/stats.tmp" || cat "$out/stats.tmp" >>"$out/latency.err"
  end=$(date +%s%N)
  echo $((end - begin))
}
wall 0 1 >/dev/null
{
  echo "wall time of a call, us: $calls calls against one; with --stats also its own counter, and device time by events"
  for ((run = 1; run <= runs; ++run)); do
    for stats in 0 1; do
      one=$(wall $stats 1) all=$(wall $stats $((calls + 1)))
      counted=$(sed -n 's/^bend: gpu: .*device \([0-9]*\) us, wall \([0-9]*\) us.*/\2 \1/p' "$out/stats.tmp" | head -1)
      awk -v s=$stats -v d=$((all - one)) -v n="$calls" -v c="$counted" 'BEGIN { split(c, k, " "); printf "stats %d: %.1f", s, d / n / 1000; if (s) printf " (counter %.1f, device %.1f)", k[1] / (n + 1), k[2] / (n + 1); print "" }'
    done
  done
} | tee "$out/latency.txt"
rm -f "$out/stats.tmp"
[ ! -s "$out/latency.err" ] || { cat "$out/latency.err"; exit 1; }
