#!/bin/bash
# 200 turns over a boxed tree that the host and the device rewrite: the CPU's answer, and the pages of 64 KiB that moved against those that either side wrote since the
# last turn or read first (runtime/gpu/page_audit.h); and an array of 2^26 words that nobody touches between its calls. usage: run-turns.sh [RESULTS]
# RESULTS gets turns.txt
cd "$(dirname "$(readlink -f "$0")")" || exit 1
out=$(readlink -m "${1:-results}")
mkdir -p "$out"
export BEND_GPU=require BEND_STATS=pages
failed=0
report() {
  local line=$1 verdict=ok
  [[ $line == *' same; '* ]] || verdict=BAD
  if [[ $line =~ 'pages: '([0-9]+)' in, '([0-9]+)' out, '[0-9]+' kept; written: '([0-9]+)' by the host, '([0-9]+)' by the device; first read: '([0-9]+) ]]; then
    local moved=$((BASH_REMATCH[1] + BASH_REMATCH[2])) needed=$((BASH_REMATCH[3] + BASH_REMATCH[4] + BASH_REMATCH[5]))
    [ "$((moved * 10))" -le "$((needed * 11))" ] || verdict=BAD
    line+="; moved $moved of $needed"
  else
    verdict=BAD
  fi
  echo "$verdict $line"
  [ $verdict = ok ] || failed=1
}
{
  for words in '10 200 1' '12 200 3' '14 200 3' '16 200 3' '16 200 6'; do
    want=$(BEND_GPU=off BEND_STATS=0 bin/turns $words)
    got=$(timeout 30 bin/turns $words 2>"$out/stats.tmp")
    report "turns $words: answer $([ "$got" = "$want" ] && echo same || echo "$got, not $want"); $(sed -n 's/^bend: gpu: pages/pages/p' "$out/stats.tmp")"
  done
  for calls in 1 9; do
    BEND_STATS=1 timeout 30 bin/latency 26 $calls >/dev/null 2>"$out/stats.tmp" || failed=1
    echo "latency 26 $calls: $(sed -n 's/.*arrays: //p' "$out/stats.tmp"); $(sed -n 's/.* looks, \(in .* bytes\), device.*/\1/p' "$out/stats.tmp")"
  done
} >"$out/turns.txt"
cat "$out/turns.txt"
rm -f "$out/stats.tmp"
! grep -q '^BAD' "$out/turns.txt"
