// A runtime without a program thread for tests of its parts: one worker, a checked heap, output into a file that is read back.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

#include "runtime/memory/counts.h"
#include "runtime/memory/words.h"
#include "runtime/runtime.h"

namespace bendc::test {

struct RuntimeFixture {
  explicit RuntimeFixture(bool debug_heap = true, uint64_t most = 8ull << 30) {
    runtime = static_cast<BendRuntime*>(std::calloc(1, sizeof(BendRuntime)));
    runtime->workers = &worker;
    runtime->worker_count = 1;
    runtime->program = &program;
    worker.runtime = runtime;
    file = std::tmpfile();
    rt::output_open(&runtime->out, fileno(file));
    rt::heap_open(&runtime->heap, most, debug_heap);
    opened = rt::worker_heap_open(&worker);
  }
  ~RuntimeFixture() {
    rt::worker_heap_close(&worker);
    rt::heap_close(&runtime->heap);
    std::fclose(file);
    std::free(runtime);
  }
  RuntimeFixture(const RuntimeFixture&) = delete;

  std::string printed() {
    rt::output_flush(&runtime->out);
    std::fseek(file, 0, SEEK_SET);
    std::string text;
    char part[4096];
    while (size_t n = std::fread(part, 1, sizeof part, file)) text.append(part, n);
    return text;
  }
  rt::HeapReport check() { return rt::heap_check(&runtime->heap, &worker, 1); }

  // A node as generated code builds it; the word without the constructor's bits.
  BendWord node(uint64_t bytes, uint32_t second = 0) {
    char* memory = static_cast<char*>(bend_alloc_slow(&worker, bytes));
    std::memset(memory, 0, bytes);
    uint32_t header[2] = {1, second};
    std::memcpy(memory, header, sizeof header);
    return reinterpret_cast<BendWord>(memory);
  }
  static void put(BendWord node, uint32_t offset, BendWord value) { std::memcpy(reinterpret_cast<char*>(node & ~7ull) + offset, &value, 8); }
  static void put_u32(BendWord node, uint32_t offset, uint32_t value) { std::memcpy(reinterpret_cast<char*>(node & ~7ull) + offset, &value, 4); }

  BendRuntime* runtime;
  BendProgram program = {};
  BendWorker worker = {};
  std::FILE* file;
  bool opened;
};

}  // namespace bendc::test
