# Shared by the scripts: packages, the build and its lock. Sourced by bash, never run. $root is the repository.
# Progress goes to stderr and only to a terminal; everything else is silent unless it fails.

# What a build of bendc needs on Debian 12 beyond its base system; docs/building.md lists the versions.
build_packages=(cmake g++ libcli11-dev libfmt-dev llvm-22-dev ninja-build doctest-dev)
test_packages=(python3)
bench_packages=(clang python3 valgrind)

say() { printf '%s\n' "$*" >&2; }
progress() { if [ -t 2 ]; then printf '\r\033[K%s' "$*" >&2; fi; }
progress_end() { if [ -t 2 ]; then printf '\r\033[K' >&2; fi; }

missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
  done
}

# Runs a command with its output in a log that is shown only when the command fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" -ne 0 ]; then
    progress_end
    cat "$log" >&2
    say "failed ($status): $*"
  fi
  rm -f "$log"
  return "$status"
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    say "this needs root, and sudo is missing: $*"
    return 1
  fi
}

# Installs the packages of its arguments that are missing. Without apt it does nothing and leaves the complaint to CMake.
install_packages() {
  local missing sources=() extra=
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || return 0
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -gt 0 ] || return 0
  say "installing ${missing[*]}"
  if [ "$(id -u)" -ne 0 ] && [ -t 0 ] && command -v sudo >/dev/null; then sudo -v || return 1; fi
  local options=(-o DPkg::Lock::Timeout=300)
  quietly as_root apt-get "${options[@]}" update -q || return 1
  # llvm-22 lives in bookworm-security, which a bare debootstrap does not list. Such a system gets it as a source for these two calls alone.
  if printf '%s\n' "${missing[@]}" | grep -qx llvm-22-dev && [ -z "$(apt-cache search --names-only '^llvm-22-dev$')" ]; then
    extra=$(mktemp -d)
    chmod 755 "$extra"
    cp /etc/apt/sources.list.d/* "$extra"/ 2>/dev/null || true
    printf 'deb http://deb.debian.org/debian-security bookworm-security main\n' >"$extra/bookworm-security.list"
    sources=(-o "Dir::Etc::SourceParts=$extra")
    quietly as_root apt-get "${options[@]}" "${sources[@]}" update -q || { rm -rf "$extra"; return 1; }
  fi
  local status=0
  quietly as_root apt-get "${options[@]}" "${sources[@]}" install -y -q --no-install-recommends "${missing[@]}" || status=$?
  if [ -n "$extra" ]; then rm -rf "$extra"; fi
  return "$status"
}

# As many compilers as processors, and no more than fit in memory (a file that includes LLVM takes about 1 GiB).
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null || echo "$cores")
  if [ "${memory:-0}" -lt 1 ]; then memory=1; fi
  echo $((cores < memory ? cores : memory))
}

# build_preset PRESET TARGET...: configures where needed and builds. One build at a time; a second caller waits.
build_preset() {
  local preset=$1
  shift
  local folder=$root/build/$preset
  mkdir -p "$folder"
  (
    flock 9
    # A checkout that was moved, or copied with its build folder, starts afresh: CMake keeps absolute paths.
    if [ -f "$folder/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
      find "$folder" -mindepth 1 -delete
    fi
    if [ ! -f "$folder/build.ninja" ]; then
      progress "configuring $preset"
      cd "$root" && quietly cmake --preset "$preset" || exit 1
    fi
    run_ninja "$folder" "$@"
  ) 9>"$root/build/.lock"
}

run_ninja() {
  local folder=$1 log status=0 line
  shift
  log=$(mktemp)
  NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "$(build_jobs)" "$@" 2>&1 </dev/null | tee "$log" | while IFS= read -r line; do
    case $line in '['*) progress "building ${folder##*/} ${line%%]*}]" ;; esac
  done || status=$?   # the caller has pipefail on
  progress_end
  if [ "$status" -ne 0 ]; then
    grep -v '^\[[0-9/]*\] [A-Z]' "$log" >&2 || true
    say "the build of $folder failed"
  fi
  rm -f "$log"
  return "$status"
}
