#!/bin/bash
# Checks and times a pack made by scripts/gpu-pack on a machine with a GPU. Needs the CUDA driver; nvcc, when there, compiles the twins.
# usage: run-gpu.sh [RESULTS] [SECONDS]   RESULTS: folder for doctor.txt, checks.txt, times.tsv, twins.txt (default: ./results); SECONDS: 480
# Exit status: 0 when every check passed.
cd "$(dirname "$(readlink -f "$0")")" || exit 1
out=$(readlink -m "${1:-results}")
limit=${2:-480}
mkdir -p "$out"
start=$SECONDS
left() { echo $((limit - (SECONDS - start))); }
export BEND_GPU=require
passed=0 failed=0
check() {   # check NAME OK [TEXT]
  if [ "$2" = 1 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); printf 'FAIL %s\n%s\n' "$1" "${3:-}" | head -c 1500 >>"$out/checks.txt"; fi
}
: >"$out/checks.txt"

{ date -u; uname -m; nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; cat COMMIT; } >"$out/doctor.txt" 2>&1
./bin/doctor >>"$out/doctor.txt" 2>&1 || { cat "$out/doctor.txt"; echo "no GPU can be used"; exit 1; }
cat "$out/doctor.txt"

# The twins compile while the checks run.
twins=
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
  twins=1
  (PATH=$PATH:/usr/local/cuda/bin; nvcc -O3 -arch="${ARCH:-sm_90}" -o roots roots.cu; cd twins && bash ./build_all.sh gpu >build.log 2>&1) &
  builder=$!
fi

# Every case of the project, at the ways in CASE_FORKS, each in a process of its own or in CASE_PROCESSES of them.
cases=$(python3 cases/device_cases.py run cases --forks "${CASE_FORKS:-auto}" --processes "${CASE_PROCESSES:-1}" --seconds "$((limit / 2))" --log "$out/cases.tmp" 2>&1)
cat "$out/cases.tmp" >>"$out/checks.txt"; rm -f "$out/cases.tmp"
echo "cases: $cases" | tee -a "$out/checks.txt"
if read -r p _ f _ < <(tail -1 <<<"$cases") && [[ $p =~ ^[0-9]+$ && $f =~ ^[0-9]+$ ]]; then passed=$((passed + p)) failed=$((failed + f)); else check "cases" 0 "no totals"; fi
! grep -q 'left out' <<<"$cases" || check "all cases" 0 "$cases"

# Small runs of the benchmark programs against the CPU, at several ways of dealing out forks.
small=$(./small-runs.sh rows.txt auto host sequential)
passed=$((passed + $(grep -c '^ok ' <<<"$small"))) failed=$((failed + $(grep -c '^FAIL ' <<<"$small")))
grep '^FAIL ' <<<"$small" >>"$out/checks.txt"
grep -q '^ok ' <<<"$small" || check "small runs" 0 "none passed"
[ -n "$twins" ] && wait $builder
# The compiler's square roots and reciprocals, for every operand.
if [ -n "$twins" ]; then roots=$(timeout 30 ./roots 2>&1) && check roots 1 || check roots 0 "$roots"; fi
echo "checks: $passed passed, $failed failed" | tee -a "$out/checks.txt"

# Times: three runs of a row; its counters stand on stderr. device_us is by events, copies included; kernels_us and copies_us are those of the target's call that took
# least, of a program that makes the call several times.
printf 'program\twords\tresult\tcpu_result\twall_s\tdevice_us\tcall_us\trounds\ttasks\tin_bytes\tout_bytes\tkernels_us\tcopies_us\n' >"$out/times.tsv"
field() { sed -n "s/.*[ ,]$1 \([0-9]*\).*/\1/p" <<<"$2" | head -1; }
while IFS='|' read -r name small timed target; do
  name=${name// /}; [[ $name == '#'* || -z $name || ! -x bin/$name ]] && continue
  [ "${timed// /}" != - ] || continue
  cpu=$(BEND_GPU=off timeout 20 bin/$name $timed 2>/dev/null)
  for run in 1 2 3; do
    [ "$(left)" -lt 60 ] && { echo "no time is left for run $run of $name" | tee -a "$out/checks.txt"; break; }
    begin=$(date +%s%N)
    result=$(BEND_STATS=1 timeout 20 bin/$name $timed 2>stats.tmp); status=$?
    end=$(date +%s%N)
    stats=$(grep 'bend: gpu: ' stats.tmp | head -1)
    own=$(grep "^bend: gpu: \`${target// /}.*!\`: " stats.tmp | head -1)   # without a target: the first of them
    [ $status = 0 ] || result="status $status: $(head -c 200 stats.tmp | tr '\n\t' '  ')"
    awk -v n="$name" -v w="$timed" -v r="$result" -v c="$cpu" -v t=$((end - begin)) -v d="$(field device "$stats")" -v u="$(field wall "$stats")" \
      -v rounds="$(sed -n 's/.* \([0-9]*\) rounds.*/\1/p' <<<"$stats")" -v tasks="$(sed -n 's/.* \([0-9]*\) tasks.*/\1/p' <<<"$stats")" -v i="$(field in "$stats")" -v o="$(field out "$stats")" -v k="$(field least "$own")" -v m="$(field copies "$own")" \
      'BEGIN{gsub(/^ +| +$/,"",w); printf "%s\t%s\t%s\t%s\t%.3f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",n,w,r,c,t/1e9,d,u,rounds,tasks,i,o,k,m}' | tee -a "$out/times.tsv"
    [ $status = 0 ] || break
  done
done <rows.txt
grep -h 'start:' stats.tmp >>"$out/doctor.txt"
rm -f stats.tmp
if [ -n "$twins" ] && [ "$(left)" -gt 20 ]; then (cd twins && timeout "$(($(left) - 5))" bash ./run_gpu.sh) >"$out/twins.txt" 2>&1; cat "$out/twins.txt"; fi
[ "$failed" = 0 ]
