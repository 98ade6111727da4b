// A runtime with a device, emulated or behind the stand-in driver, a program of hand-written segments, and faults seen as a program's thread sees them.
#pragma once
#include <doctest/doctest.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "fake_cuda/fake_cuda.h"
#include "runtime/gpu/gpu.h"
#include "runtime_fixture.h"

namespace bendc::test {

struct DeviceFixture : RuntimeFixture {
  DeviceFixture(const BendGpuProgram* gpu, bool emulated, uint64_t memory = 64u << 20) : entries(gpu->entries) {
    library = dlopen(BENDC_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    fake.round = gpu->emulated_round;
    if (!emulated) configure();
    program.gpu = gpu;
    runtime->config.gpu.use = emulated ? rt::gpu::Use::Emulate : rt::gpu::Use::Require;
    runtime->config.gpu.memory = memory;
    runtime->config.gpu.library = BENDC_FAKE_CUDA;
    bool failed = false;
    runtime->gpu = faulting() = rt::gpu::gpu_open(runtime->config.gpu, gpu, &failed);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &old);
  }
  ~DeviceFixture() {
    sigaction(SIGSEGV, &old, nullptr);
    rt::gpu::gpu_close(runtime->gpu);
  }
  void configure() { reinterpret_cast<FakeCudaConfigure>(dlsym(library, "fake_cuda_configure"))(&fake); }
  BendWord call(uint32_t entry, BendWord argument) {
    BendWord result = 0;
    REQUIRE(bend_gpu_call(&worker, &entries[entry], &argument, &result) == 1);
    return result;
  }
  rt::gpu::Residency& residency() { return runtime->gpu->residency; }
  rt::gpu::Space& space() { return runtime->gpu->space; }

  const BendGpuEntry* entries;
  void* library;
  FakeCuda fake;
  struct sigaction old;

 private:
  static rt::gpu::Gpu*& faulting() {   // a signal handler has no argument of ours
    static rt::gpu::Gpu* gpu;
    return gpu;
  }
  static void on_fault(int, siginfo_t* info, void*) {
    rt::Message why;
    rt::gpu::Touch touch = rt::gpu::gpu_touch(faulting(), info->si_addr, &why);
    if (touch == rt::gpu::Touch::Done) return;
    if (touch == rt::gpu::Touch::NotOurs) why.text("a fault that no array explains");
    rt::Message line;
    line.text("bend: the GPU failed in a fault: ").bytes(why.data(), why.size());
    [[maybe_unused]] auto n = write(2, line.data(), line.size());
    _exit(touch == rt::gpu::Touch::Failed ? 1 : 99);
  }
};

// Runs in a child: the exit status and what it wrote to stderr.
template <class Body>
std::pair<int, std::string> run_in_child(Body body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    _exit(body());
  }
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), text};
}

// The argument and the result of a call with one word, in a machine that runs the root's task alone.
template <class Segment>
void run_root(void* raw, uint32_t thread, Segment segment) {
  auto* c = static_cast<BendDeviceControl*>(raw);
  if (thread != 0 || c->in_count == 0) return;
  auto* task = reinterpret_cast<const BendTaskRecord*>(c->in_queue);
  uint64_t value;
  std::memcpy(&value, task + 1, 8);
  value = segment(c, task->segment, value);
  std::memcpy(reinterpret_cast<void*>(c->result), &value, 8);
  c->finished = 1;
}

}  // namespace bendc::test
