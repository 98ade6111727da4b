#!/bin/bash
# Programs against themselves under other names (bench/renamed.py: bin/renamed.NAME), in turn: kernels by events, the fastest call of the target or of the one target
# there is; medians over the rounds, smallest and largest. usage: run-names.sh [RESULTS] [SECONDS] [ROUNDS]     RESULTS gets names.txt
cd "$(dirname "$(readlink -f "$0")")" || exit 1
out=$(readlink -m "${1:-results}")
limit=${2:-120}
rounds=${3:-5}
mkdir -p "$out"
start=$SECONDS
export BEND_GPU=require BEND_STATS=1 BEND_GPU_MEMORY=${BEND_GPU_MEMORY:-4GB}
tsv=$out/names.tsv
: >"$tsv"
failed=0
for ((round = 1; round <= rounds; ++round)); do
  while IFS='|' read -r name _ words target; do
    name=${name// /}
    [[ $name != '#'* && -n $name && -x bin/renamed.$name && ${words// /} != - ]] || continue
    [ "$((SECONDS - start))" -lt "$limit" ] || break 2
    for program in "$name" "renamed.$name"; do
      result=$(timeout 30 "bin/$program" $words 2>"$out/stats.tmp") || { echo "FAIL $program: $(head -c 300 "$out/stats.tmp")"; failed=1; }
      # The line of the target; under other names it is the one with the same place among the lines.
      if [ "$program" = "$name" ]; then
        place=$(grep 'kernels .* least' "$out/stats.tmp" | grep -n "^bend: gpu: \`${target// /}.*!\`: " | head -1 | cut -d: -f1)
        first=$result
      elif [ "$result" != "$first" ]; then
        echo "FAIL $program: result $result, not $first"; failed=1
      fi
      printf '%s\t%s\t%s\n' "$name" "$([ "$program" = "$name" ] && echo own || echo renamed)" "$(grep 'kernels .* least' "$out/stats.tmp" | sed -n "${place:-1}s/.* least \([0-9]*\) us.*/\1/p")" >>"$tsv"
    done
  done <rows.txt
done
rm -f "$out/stats.tmp"
awk -F'\t' '{ k = $1 "\t" $2; v[k, ++n[k]] = $3; if (!($1 in seen)) { seen[$1] = 1; order[++rows] = $1 } }
  function sorted(k,   m, j, i, t) { m = n[k]; for (j = 1; j <= m; ++j) a[j] = v[k, j]; for (j = 2; j <= m; ++j) for (i = j; i > 1 && a[i] < a[i - 1]; --i) { t = a[i]; a[i] = a[i - 1]; a[i - 1] = t }
    return (a[int((m + 1) / 2)] + a[int(m / 2) + 1]) / 2 }
  END { printf "%-14s %5s %10s %16s %10s %16s %6s\n", "program", "runs", "own us", "from - to", "renamed us", "from - to", "ratio"
    for (r = 1; r <= rows; ++r) { o = order[r] "\town"; m = sorted(o); s = a[1] " - " a[n[o]]; o = order[r] "\trenamed"; q = sorted(o)
      printf "%-14s %5d %10.0f %16s %10.0f %16s %6.3f\n", order[r], n[o], m, s, q, a[1] " - " a[n[o]], q / m } }' "$tsv" | tee "$out/names.txt"
[ "$failed" = 0 ]
