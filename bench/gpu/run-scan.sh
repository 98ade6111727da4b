#!/bin/bash
# The library's Scan and CUB's DeviceScan, 2^20 to 2^30 U32 in place on the device, in one run. A scan's time is (N scans - one scan) / (N - 1), each all in one device
# call; the best of some numbers of blocks. Checksums of one scan are compared. Where the pack has bin/scan_repeat.seed, the seed module too.
# usage: run-scan.sh [RESULTS]    RESULTS: folder for scan.txt (default: ./results)
cd "$(dirname "$(readlink -f "$0")")" || exit 1
out=$(readlink -m "${1:-results}")
mkdir -p "$out"
PATH=$PATH:/usr/local/cuda/bin
[ -x twins/scan_cuda ] || nvcc -O3 -std=c++17 -arch="${ARCH:-sm_90}" --extended-lambda -o twins/scan_cuda twins/scan.cu || exit 1
kernels() {   # kernels PROGRAM WORDS: microseconds and result
  local result program=$1
  shift
  result=$(BEND_GPU=require BEND_STATS=1 timeout 60 "bin/$program" "$@" 2>"$out/stats.tmp") || { cat "$out/stats.tmp" >&2; return 1; }
  echo "$(sed -n 's/.*, least \([0-9]*\) us.*/\1/p' "$out/stats.tmp") $result"
}
failed=0
printf '%-16s %-5s %-7s %10s %10s %7s %s\n' program size blocks us "CUB us" "of CUB" check | tee "$out/scan.txt"
# program | log2 of the size | scans | log2 of the blocks
while read -r program size count blocks; do
  [ -x "bin/$program" ] || { [ "$program" != scan_repeat ] || { echo "BAD no bin/$program" | tee -a "$out/scan.txt"; failed=1; }; continue; }
  read -r sum cub < <(twins/scan_cuda "$size" | awk '{print $5, $6 * 1e6}')
  check=ok best=
  for b in $blocks; do
    read -r one result < <(kernels "$program" "$size" "$b" 1)
    [ "$result" = $((16#$sum)) ] || { check="BAD $result $((16#$sum))"; failed=1; }
    read -r all _ < <(kernels "$program" "$size" "$b" "$count")
    us=$(awk -v a="$all" -v o="$one" -v n="$count" 'BEGIN{printf "%.1f", (a - o) / (n - 1)}')
    if [ -z "$best" ] || awk "BEGIN{exit !($us < $best)}"; then best=$us at=$b; fi
  done
  awk -v p="$program" -v k="$size" -v b="$at" -v u="$best" -v c="$cub" -v s="$check" 'BEGIN{printf "%-16s 2^%-3d 2^%-5d %10.1f %10.1f %7.2f %s\n", p, k, b, u, c, c / u, s}' | tee -a "$out/scan.txt"
done <<'ROWS'
scan_repeat 20 129 15 14
scan_repeat 22 129 17 16
scan_repeat 24 65 19 18 17
scan_repeat 26 33 21 20 19
scan_repeat 28 9 23 22 21 20
scan_repeat 30 5 25 24 23 22
scan_repeat.seed 26 33 17 16 15
scan_repeat.seed 28 9 18 17 16 15
ROWS
rm -f "$out/stats.tmp"
exit $failed
