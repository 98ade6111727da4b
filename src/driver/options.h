// What the command line asks for. Filled by main.cpp, read by commands.cpp and pipeline.cpp.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace bendc {

enum class DiagnosticFormat : uint8_t { Text, Json };

struct Options {
  std::string file;
  std::vector<std::string> words;      // of the program, under `run`
  std::string output;                  // build: -o
  bool safe = false;                   // check: relying on unsafe code is an error
  bool normalise = false;              // run: evaluate main in the checker
  bool verify = false;                 // check the invariants of every form of the program
  bool time_phases = false;
  int optimize = -1;                   // 0..3; -1: the command's default
  std::string cpu;                     // empty: the command's default
  std::string dump;                    // ast, core, flow, device, forks, llvm, device-llvm, ptx, asm, after:PASS
  std::string stop_after;              // load, elaborate, check, lower, a Flow pass, emit, optimize
  DiagnosticFormat diagnostics = DiagnosticFormat::Text;
  std::string gpu;                     // auto, off, require, emulate; empty: BEND_GPU or auto
  std::string gpu_device, gpu_memory, gpu_fork, gpu_threshold;   // for the runtime; empty: their variables or defaults
  bool html = false;                   // explain a program: as a page
  bool stats = false;                  // counters on stderr at the program's end
  bool driver_present = false;         // a GPU driver's library can be opened
  bool launches = false;               // with the launch module: forks as grids launched from the device
  std::vector<uint32_t> gpu_archs;     // build: with machine code for these
  bool emulator = false;               // build: with the device machine compiled for the host
  bool shared = false;                 // build: a shared object without the runtime, in place of an executable
  bool no_ptx = false;                 // build: without the code for a GPU
  uint32_t threads = 0;                // 0: BEND_THREADS or the default
};

inline constexpr int kExitRefused = 1;
inline constexpr int kExitUsage = 2;

}  // namespace bendc
