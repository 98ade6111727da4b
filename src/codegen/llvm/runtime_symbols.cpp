// Addresses of everything generated code may call, for the JIT. The lists are those of the declarations (abi.def, effects.def).
#include <cstring>

#include "codegen/llvm/context.h"
#include "runtime/abi.h"

// Declared without their types: only the addresses are taken.
extern "C" {
#define BENDC_RT(name, result, args) void name();
#include "runtime/abi.def"
#undef BENDC_RT
#define BENDC_EFFECT(name) void bend_eff_##name();
#include "runtime/effects.def"
#undef BENDC_EFFECT
}

extern "C" {
#if defined(__SANITIZE_THREAD__)
#define BENDC_TSAN(name) void name();
#include "codegen/llvm/tsan.def"
#undef BENDC_TSAN
#elif defined(__SANITIZE_ADDRESS__)
#define BENDC_ASAN(name) void name();
#include "codegen/llvm/asan.def"
#undef BENDC_ASAN
#endif
}

namespace bendc::codegen {

std::vector<Symbol> runtime_symbols() {
  std::vector<Symbol> out;
  auto add = [&out](const char* name, auto* function) { out.push_back({name, reinterpret_cast<void*>(function)}); };
#define BENDC_RT(name, result, args) add(#name, &name);
#include "runtime/abi.def"
#undef BENDC_RT
#define BENDC_EFFECT(name) add("bend_eff_" #name, &bend_eff_##name);
#include "runtime/effects.def"
#undef BENDC_EFFECT
#if defined(__SANITIZE_THREAD__)
#define BENDC_TSAN(name) add(#name, &name);
#include "codegen/llvm/tsan.def"
#undef BENDC_TSAN
#elif defined(__SANITIZE_ADDRESS__)
#define BENDC_ASAN(name) add(#name, &name);
#include "codegen/llvm/asan.def"
#undef BENDC_ASAN
#endif
  // What LLVM may call on its own.
  add("memcpy", static_cast<void* (*)(void*, const void*, size_t)>(&std::memcpy));
  add("memmove", static_cast<void* (*)(void*, const void*, size_t)>(&std::memmove));
  add("memset", static_cast<void* (*)(void*, int, size_t)>(&std::memset));
  add("memcmp", static_cast<int (*)(const void*, const void*, size_t)>(&std::memcmp));
  return out;
}

}  // namespace bendc::codegen
