// Runs many programs in one process, one after the other: each is a shared object of `bendc build --shared`, loaded, run by bend_start and unloaded. The
// CUDA driver and its primary context stay for the process's whole life, so a program brings and takes away its own modules, memory, streams and graphs.
//   In:  on stdin a line for each program, fields apart by tabs: PROGRAM FOLDER STDOUT STDERR GPU [WORD...]: run PROGRAM in FOLDER with BEND_GPU=GPU and
//        the words as its arguments. BEND_* variables are those of the process.
//   Out: on stdout `ready DRIVER_US HELD`, then for each program `done STATUS LOAD_US RUN_US UNLOADED HELD`: whether its object is gone, and what the
//        process holds: THREADS DESCRIPTORS MAPPED_KIB DRIVER, the last of them
//        what it has not given back to the stand-in driver.
// A program that ends the process (a stack overflow, a fault) has no such line: its status is the process's. tests/tools/device_cases.py is the other side.
// usage: case_runner [--device | --stand-in]      --device: open the CUDA driver and hold its context before the first program; --stand-in: the same, and
//        BEND_CUDA_LIBRARY names the stand-in (tests/fake_cuda), whose kernels are the program's functions for the emulator
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda/fake_cuda.h"
#include "runtime/effect.h"
#include "runtime/gpu/device.h"
#include "runtime/gpu/emulated_exit.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/options.h"
#include "runtime/message.h"
#include "runtime/symbols.h"

using namespace bendc::rt;

namespace {

constexpr int kMostWords = 64;
constexpr int kExitRunner = 90;   // no program's

// Naming them links them; -rdynamic lets the programs find them.
const void* const kRuntime[] = {
#define BENDC_RT(name, result, args) reinterpret_cast<const void*>(&name),
#include "runtime/abi.def"
#undef BENDC_RT
#define BENDC_EFFECT(name) reinterpret_cast<const void*>(&bend_eff_##name),
#include "runtime/effects.def"
#undef BENDC_EFFECT
#define BENDC_EFFECT_API(name) reinterpret_cast<const void*>(&name),
#include "runtime/effect.def"
#undef BENDC_EFFECT_API
};

[[noreturn]] void give_up(const char* what, const char* why) {
  dprintf(STDERR_FILENO, "case_runner: %s: %s\n", what, why);
  _exit(kExitRunner);
}

uint64_t entries_of(const char* folder) {
  DIR* dir = opendir(folder);
  if (!dir) return 0;
  uint64_t count = 0;
  while (const dirent* entry = readdir(dir)) count += entry->d_name[0] != '.';
  closedir(dir);
  return count;
}

uint64_t mapped_kib() {
  FILE* file = fopen("/proc/self/statm", "re");
  if (!file) return 0;
  unsigned long pages = 0;
  if (fscanf(file, "%lu", &pages) != 1) pages = 0;
  fclose(file);
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

void redirect(int to, const char* path, int flags) {
  const int fd = open(path, flags | O_CLOEXEC, 0666);
  if (fd < 0 || dup2(fd, to) < 0) give_up(path, strerror(errno));
  close(fd);
}

// The driver in place of CUDA's, and the program whose functions are its kernels, which get no argument of ours.
struct StandIn {
  FakeCudaProgram program;
  FakeCudaHeld held;
  const BendGpuProgram* running;
} g_stand_in;

void run_round(void* control, uint32_t thread, uint32_t threads) {
  gpu::bend_emulated_thread(g_stand_in.running->emulated_round, static_cast<BendDeviceControl*>(control), thread, threads);
}
void run_flat(void* control, uint32_t warp, uint32_t warps) {
  gpu::bend_emulated_thread(g_stand_in.running->emulated_flat, static_cast<BendDeviceControl*>(control), warp, warps);
}

void open_stand_in() {
  const char* path = getenv("BEND_CUDA_LIBRARY");
  void* library = dlopen(path ? path : "", RTLD_NOW | RTLD_LOCAL);
  if (!path || !library) give_up("BEND_CUDA_LIBRARY", path ? dlerror() : "it names no stand-in");
  g_stand_in.program = reinterpret_cast<FakeCudaProgram>(dlsym(library, "fake_cuda_program"));
  g_stand_in.held = reinterpret_cast<FakeCudaHeld>(dlsym(library, "fake_cuda_held"));
  if (!g_stand_in.program || !g_stand_in.held) give_up(path, "it is no stand-in");
}

// The stand-in does not read code; that this is none of the runtime's kernels is all it looks for.
const char kNoPtx[] = ".version 6.2\n.target sm_70\n";
const BendGpuCode kNoCode = {BEND_GPU_PTX, 70, kNoPtx, sizeof kNoPtx};

// The program as the stand-in runs it; `gpu` is filled in. The object's immortal nodes lie anywhere in its memory, which is all that the runtime may read of it.
BendProgram for_stand_in(void* object, const BendProgram* program, BendGpuProgram* gpu) {
  FakeCuda config;
  config.memory = size_t{1} << 32;
  BendProgram out = *program;
  if (program->gpu) {
    *gpu = *program->gpu;
    gpu->codes = &kNoCode;
    gpu->code_count = 1;
    gpu->statics = "bend_statics";
    out.gpu = g_stand_in.running = gpu;
    config.round = run_round;
    config.flat = gpu->emulated_flat ? run_flat : nullptr;
    const link_map* map = nullptr;
    if (dlinfo(object, RTLD_DI_LINKMAP, &map) != 0) give_up("dlinfo", dlerror());
    const char* base = reinterpret_cast<const char*>(map->l_addr);
    const ElfW(Ehdr)* head = reinterpret_cast<const ElfW(Ehdr)*>(base);
    const ElfW(Phdr)* segments = reinterpret_cast<const ElfW(Phdr)*>(base + head->e_phoff);
    config.statics = base;
    for (int i = 0; i < head->e_phnum; ++i)
      if (segments[i].p_type == PT_LOAD) config.statics_bytes = segments[i].p_vaddr + segments[i].p_memsz;
  }
  g_stand_in.program(&config);
  return out;
}

// The driver's own threads and the context outlive every program.
uint64_t hold_context() {
  gpu::GpuConfig config;
  if (!gpu::read_gpu_config(&config, nullptr)) _exit(kExitRunner);
  const uint64_t begin = gpu::now_ns();
  static gpu::Device device;
  Message why;
  if (!gpu::device_probe(&device, config, &why)) give_up("no device", Message(why).bytes("\0", 1).data());
  if (int code = device.driver.context_retain(&device.context, device.ordinal)) {
    gpu::describe(&device.driver, "cuDevicePrimaryCtxRetain", code, &why);
    give_up("no context", why.bytes("\0", 1).data());
  }
  return (gpu::now_ns() - begin) / 1000;
}

void answer(int fd, Message line) {
  line.text(" ").number(entries_of("/proc/self/task")).text(" ").number(entries_of("/proc/self/fd")).text(" ").number(mapped_kib());
  line.text(" ").number(static_cast<uint64_t>(g_stand_in.held ? g_stand_in.held(nullptr) : 0)).text("\n");
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(kExitRunner);
}

struct Ran {
  int status;
  uint64_t load_us, run_us;
  bool unloaded;
};

Ran run(char** words, int count) {
  const char* path = words[0];
  const uint64_t begin = gpu::now_ns();
  void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!object) give_up(path, dlerror());
  const BendProgram* program = static_cast<const BendProgram*>(dlsym(object, "bend_program"));
  if (!program) give_up(path, "it defines no bend_program");
  BendProgram replaced;
  BendGpuProgram gpu;
  if (g_stand_in.program) {
    replaced = for_stand_in(object, program, &gpu);
    program = &replaced;
  }
  const uint64_t loaded = gpu::now_ns();
  BendOptions options = {};
  options.gpu = words[4];
  options.returns_errors = 1;
  char* arguments[kMostWords + 1] = {words[0]};
  int argc = 1;
  for (int i = 5; i < count; ++i) arguments[argc++] = words[i];
  const int status = bend_start(program, &options, argc, arguments);
  const uint64_t ended = gpu::now_ns();
  dlclose(object);
  void* still = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (still) dlclose(still);
  return {status, (loaded - begin) / 1000, (ended - loaded) / 1000, still == nullptr};
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc == 2 ? argv[1] : "";
  const bool stand_in = strcmp(mode, "--stand-in") == 0, device = stand_in || strcmp(mode, "--device") == 0;
  if (argc > 2 || (argc == 2 && !device)) {
    fputs("usage: case_runner [--device | --stand-in]\n", stderr);
    return 2;
  }
  if (stand_in) open_stand_in();
  for (const void* function : kRuntime)
    if (!function) return kExitRunner;
  FILE* requests = fdopen(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), "r");
  const int answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (!requests || answers < 0) give_up("stdin or stdout", strerror(errno));
  answer(answers, Message().text("ready ").number(device ? hold_context() : 0));
  char* line = nullptr;
  size_t room = 0;
  for (ssize_t size; (size = getline(&line, &room, requests)) > 0;) {
    if (line[size - 1] == '\n') line[size - 1] = 0;
    char* words[kMostWords];
    int count = 0;
    for (char* rest = line; char* word = strsep(&rest, "\t");) {
      if (count == kMostWords) give_up("a request", "too many words");
      words[count++] = word;
    }
    if (count < 5) give_up("a request", "five fields are needed");
    if (chdir(words[1]) != 0) give_up(words[1], strerror(errno));
    redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
    redirect(STDOUT_FILENO, words[2], O_WRONLY | O_CREAT | O_TRUNC);
    redirect(STDERR_FILENO, words[3], O_WRONLY | O_CREAT | O_TRUNC);
    const Ran ran = run(words, count);
    answer(answers, Message().text("done ").number(static_cast<uint64_t>(ran.status)).text(" ").number(ran.load_us).text(" ").number(ran.run_us).text(ran.unloaded ? " 1" : " 0"));
  }
  return 0;
}
