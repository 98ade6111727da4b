#!/bin/bash
# The library's Scan and CUB's DeviceScan, 2^20 to 2^30 U32 in place on the device, in one run. A scan's time is (N scans - one scan) / (N - 1), each all in one device
# call; the best of some numbers of blocks. Checksums of one scan are compared. usage: run-scan.sh [RESULTS]    RESULTS: folder for scan.txt (default: ./results)
cd "$(dirname "$(readlink -f "$0")")" || exit 1
out=$(readlink -m "${1:-results}")
mkdir -p "$out"
PATH=$PATH:/usr/local/cuda/bin
[ -x twins/scan_cuda ] || nvcc -O3 -std=c++17 -arch="${ARCH:-sm_90}" --extended-lambda -o twins/scan_cuda twins/scan.cu || exit 1
kernels() {   # kernels WORDS: microseconds and result of bin/scan_repeat
  local result
  result=$(BEND_GPU=require BEND_STATS=1 timeout 60 bin/scan_repeat "$@" 2>"$out/stats.tmp") || { cat "$out/stats.tmp" >&2; return 1; }
  echo "$(sed -n 's/.*, least \([0-9]*\) us.*/\1/p' "$out/stats.tmp") $result"
}
failed=0
printf '%-5s %-7s %10s %10s %7s %s\n' size blocks us "CUB us" "of CUB" check | tee "$out/scan.txt"
# log2 of the size | scans | log2 of the blocks
while read -r size count blocks; do
  read -r sum cub < <(twins/scan_cuda "$size" | awk '{print $5, $6 * 1e6}')
  read -r one result < <(kernels "$size" "${blocks%% *}" 1)
  check=ok; [ "$result" = $((16#$sum)) ] || { check="BAD $result $((16#$sum))"; failed=1; }
  best=
  for b in $blocks; do
    read -r all _ < <(kernels "$size" "$b" "$count")
    us=$(awk -v a="$all" -v o="$one" -v n="$count" 'BEGIN{printf "%.1f", (a - o) / (n - 1)}')
    if [ -z "$best" ] || awk "BEGIN{exit !($us < $best)}"; then best=$us at=$b; fi
  done
  awk -v k="$size" -v b="$at" -v u="$best" -v c="$cub" -v s="$check" 'BEGIN{printf "2^%-3d 2^%-5d %10.1f %10.1f %7.2f %s\n", k, b, u, c, c / u, s}' | tee -a "$out/scan.txt"
done <<'ROWS'
20 129 15 14
22 129 17 16
24 65 19 18 17
26 33 21 20 19
28 9 23 22 21 20
30 5 25 24 23 22
ROWS
rm -f "$out/stats.tmp"
exit $failed
