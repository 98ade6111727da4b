// The program's own effects (`import "./x.c"`): which C files there are and which functions they must define; compiled to objects for `build`,
// or to one shared object in this process for `run`.
#pragma once
#include <string>
#include <vector>

#include "codegen/flow.h"
#include "codegen/llvm/context.h"
#include "driver/scratch.h"

namespace bendc {

struct EffectFile {
  std::string path;                     // of the .c file
  std::string prefix;                   // x0_: stands before the names of its functions
  std::vector<std::string> names;       // host_name: the file has BEND_EFFECT(host_name)
};

[[nodiscard]] std::vector<EffectFile> effect_files(const flow::Module& module);

struct EffectObjects {
  std::vector<std::string> paths;       // object files in the scratch folder
  std::string message;                  // what failed, in one line; empty: nothing
  std::string output;                   // what the C compiler said
};
[[nodiscard]] EffectObjects compile_effects(const std::vector<EffectFile>& files, ScratchFolder& folder);

// Complains about the functions that a failed link did not find; empty when it failed for another reason.
[[nodiscard]] std::string missing_effects(const std::vector<EffectFile>& files, const std::string& output);

struct LoadedEffects {
  std::vector<codegen::Symbol> symbols;
  std::string message, output;
};
[[nodiscard]] LoadedEffects load_effects(const std::vector<EffectFile>& files);

}  // namespace bendc
