#include "driver/assemble.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "driver/scratch.h"
#include "driver/tool.h"
#include "runtime/gpu/overlap.h"

namespace bendc {

namespace {

constexpr uint32_t kOldest = 70, kOverlapping = 90, kNewest = 999;

std::string find_ptxas() {
  if (const char* named = std::getenv("BEND_PTXAS"); named && *named) return named;
  const char* path = std::getenv("PATH");
  for (std::string rest = path ? path : ""; !rest.empty();) {
    const size_t colon = rest.find(':');
    if (std::string file = rest.substr(0, colon) + "/ptxas"; access(file.c_str(), X_OK) == 0) return file;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  for (const char* toolkit : {std::getenv("CUDA_HOME"), std::getenv("CUDA_PATH"), static_cast<char*>(nullptr)})
    if (std::string file = fmt::format("{}/bin/ptxas", toolkit ? toolkit : ""); toolkit && access(file.c_str(), X_OK) == 0) return file;
  for (const char* file : {"/usr/local/cuda/bin/ptxas", "/opt/cuda/bin/ptxas", "/usr/lib/cuda/bin/ptxas"})
    if (access(file, X_OK) == 0) return file;
  return {};
}

}  // namespace

uint32_t parse_arch(const std::string& word) {
  if (word.size() < 5 || word.size() > 6 || !word.starts_with("sm_")) return 0;
  uint32_t arch = 0;
  for (const char c : word.substr(3)) {
    if (c < '0' || c > '9') return 0;
    arch = arch * 10 + static_cast<uint32_t>(c - '0');
  }
  return arch < kOldest || arch > kNewest ? 0 : arch;
}

Assembled assemble_device(const std::string& ptx, uint32_t arch) {
  const std::string tool = find_ptxas();
  if (tool.empty()) return {"", "there is no ptxas: install a CUDA toolkit, or name the file in BEND_PTXAS", ""};
  std::unique_ptr<char, void (*)(void*)> newer(arch >= kOverlapping ? rt::gpu::overlapping_ptx(ptx.c_str()) : nullptr, std::free);
  ScratchFolder folder;
  const std::string text = folder.write("device.ptx", newer ? newer.get() : ptx);
  const std::string code = folder.file("device.cubin");
  if (!folder.error().empty()) return {"", folder.error(), ""};
  ToolResult ran = run_tool({tool, fmt::format("-arch=sm_{}", arch), "-o", code, text});
  if (!ran.started) return {"", fmt::format("cannot start `{}`: {}", tool, ran.message), ""};
  if (!ran.ok) return {"", fmt::format("`{}` makes no code for sm_{}", tool, arch), std::move(ran.output)};
  Assembled out;
  if (!folder.read(code, out.code)) out.message = folder.error();
  return out;
}

}  // namespace bendc
