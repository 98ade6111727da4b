#include "runtime/machine.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

namespace bendc::rt {

namespace {

// The start of a small file of /proc or /sys as a C string; false when it cannot be read.
bool read_small(const char* path, char* text, size_t capacity) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  size_t size = 0;
  while (size + 1 < capacity) {
    ssize_t n = read(fd, text + size, capacity - 1 - size);
    if (n <= 0) break;
    size += static_cast<size_t>(n);
  }
  close(fd);
  text[size] = 0;
  return size > 0;
}

bool read_number(const char* path, uint64_t* value) {
  char text[64];
  if (!read_small(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return false;   // `max` is no limit
  *value = strtoull(text, nullptr, 10);
  return true;
}

// The value in bytes of a `Name:   123 kB` row.
uint64_t meminfo_row(const char* table, const char* name) {
  const char* row = strstr(table, name);
  return row ? strtoull(row + strlen(name), nullptr, 10) * 1024 : 0;
}

struct Path {
  char text[PATH_MAX];
  bool set(const char* a, const char* b, const char* c) {
    size_t na = strlen(a), nb = strlen(b), nc = strlen(c);
    if (na + nb + nc + 1 > sizeof text) return false;
    memcpy(text, a, na);
    memcpy(text + na, b, nb);
    memcpy(text + na + nb, c, nc + 1);
    return true;
  }
};

// This process's control group below the mount of `controller` ("" is version 2), without the final newline.
bool own_group(const char* controller, char* group, size_t capacity) {
  char table[4096];
  if (!read_small("/proc/self/cgroup", table, sizeof table)) return false;
  for (char* row = table; *row;) {
    char* end = strchr(row, '\n');
    if (end) *end = 0;
    char* first = strchr(row, ':');
    char* second = first ? strchr(first + 1, ':') : nullptr;
    if (second) {
      *second = 0;
      if (strcmp(first + 1, controller) == 0 && strlen(second + 1) < capacity) {
        strcpy(group, second + 1);
        return true;
      }
    }
    if (!end) break;
    row = end + 1;
  }
  return false;
}

// Calls visit(path) for a control file of the process's group and of every group above it; a container may see only the root.
template <class Visit>
void for_groups(const char* controller, const char* mount, const char* file, Visit visit) {
  char group[PATH_MAX];
  if (!own_group(controller, group, sizeof group)) return;
  for (;;) {
    Path path;
    if (path.set(mount, strcmp(group, "/") == 0 ? "" : group, file)) visit(path.text);
    char* slash = strrchr(group, '/');
    if (!slash || (slash == group && slash[1] == 0)) break;
    if (slash == group) slash[1] = 0;
    else *slash = 0;
  }
}

}  // namespace

MemoryLimits memory_limits() {
  MemoryLimits limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  char table[4096];
  if (read_small("/proc/meminfo", table, sizeof table)) {
    limits.total = meminfo_row(table, "MemTotal:") + meminfo_row(table, "SwapTotal:");
    limits.available = meminfo_row(table, "MemAvailable:") + meminfo_row(table, "SwapFree:");
  }
  auto apply = [&](uint64_t limit, const char* usage_path) {
    if (limit >= limits.total) return;
    limits.total = limit;
    uint64_t used = 0;
    if (!read_number(usage_path, &used)) used = 0;
    uint64_t left = limit > used ? limit - used : 0;
    if (left < limits.available) limits.available = left;
  };
  auto visit_v2 = [&](const char* path) {
    uint64_t limit;
    char usage[PATH_MAX];
    strcpy(usage, path);
    strcpy(strrchr(usage, '/') + 1, "memory.current");
    if (read_number(path, &limit)) apply(limit, usage);
  };
  auto visit_v1 = [&](const char* path) {
    uint64_t limit;
    char usage[PATH_MAX];
    strcpy(usage, path);
    strcpy(strrchr(usage, '/') + 1, "memory.usage_in_bytes");
    if (read_number(path, &limit)) apply(limit, usage);
  };
  for_groups("", "/sys/fs/cgroup", "/memory.max", visit_v2);
  for_groups("memory", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", visit_v1);
  rlimit addresses;
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY) limits.addresses = addresses.rlim_cur;
  return limits;
}

uint32_t usable_cpus() {
  uint32_t count = 0;
  // The kernel refuses a set smaller than its own; 4096 covers every CONFIG_NR_CPUS in use.
  constexpr int kMaxCpus = 4096;
  alignas(cpu_set_t) char set[kMaxCpus / 8];
  if (sched_getaffinity(0, sizeof set, reinterpret_cast<cpu_set_t*>(set)) == 0)
    for (size_t i = 0; i < sizeof set; ++i) count += static_cast<uint32_t>(__builtin_popcount(static_cast<unsigned char>(set[i])));
  if (count == 0) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    count = online > 0 ? static_cast<uint32_t>(online) : 1;
  }
  auto apply = [&](uint64_t quota, uint64_t period) {
    if (period == 0) return;
    uint64_t whole = (quota + period - 1) / period;
    if (whole >= 1 && whole < count) count = static_cast<uint32_t>(whole);
  };
  for_groups("", "/sys/fs/cgroup", "/cpu.max", [&](const char* path) {
    char text[64];
    if (!read_small(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return;
    char* rest;
    uint64_t quota = strtoull(text, &rest, 10);
    apply(quota, strtoull(rest, nullptr, 10));
  });
  for_groups("cpu", "/sys/fs/cgroup/cpu", "/cpu.cfs_quota_us", [&](const char* path) {
    uint64_t quota, period;
    char other[PATH_MAX];
    strcpy(other, path);
    strcpy(strrchr(other, '/') + 1, "cpu.cfs_period_us");
    if (read_number(path, &quota) && read_number(other, &period)) apply(quota, period);
  });
  return count;
}

}  // namespace bendc::rt
