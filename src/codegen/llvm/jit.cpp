// Linking an object into this process with ORC (through its C API: LLJIT.h costs 7 s of compile time). `run` makes the same object as
// `build`; only the linker differs. Symbols come from a table, never from the process's dynamic symbols.
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>

#include "codegen/llvm/context.h"
#include "codegen/llvm/machine.h"

namespace bendc::codegen {

namespace {
std::string text_of(LLVMErrorRef error) {
  char* message = LLVMGetErrorMessage(error);
  std::string out = message;
  LLVMDisposeErrorMessage(message);
  return out;
}
}  // namespace

struct LoadedProgram::Impl {
  LLVMOrcLLJITRef jit = nullptr;
  ~Impl() {
    if (!jit) return;
    if (LLVMErrorRef error = LLVMOrcDisposeLLJIT(jit)) LLVMConsumeError(error);
  }
};

LoadedProgram::LoadedProgram() : impl_(std::make_unique<Impl>()) {}
LoadedProgram::~LoadedProgram() = default;
LoadedProgram::LoadedProgram(LoadedProgram&&) noexcept = default;
LoadedProgram& LoadedProgram::operator=(LoadedProgram&&) noexcept = default;

LoadedProgram load_object(std::string_view object, const Machine&, const std::vector<Symbol>& symbols) {
  LoadedProgram out;
  auto failed = [&out](LLVMErrorRef error) {
    if (error) out.error = text_of(error);
    return error != nullptr;
  };
  if (failed(LLVMOrcCreateLLJIT(&out.impl_->jit, LLVMOrcCreateLLJITBuilder()))) return out;
  LLVMOrcLLJITRef jit = out.impl_->jit;
  LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(jit);

  std::vector<LLVMOrcCSymbolMapPair> pairs;
  for (const Symbol& symbol : symbols) {
    LLVMJITEvaluatedSymbol value{reinterpret_cast<LLVMOrcExecutorAddress>(symbol.address), {LLVMJITSymbolGenericFlagsExported, 0}};
    pairs.push_back({LLVMOrcLLJITMangleAndIntern(jit, symbol.name.c_str()), value});
  }
  if (failed(LLVMOrcJITDylibDefine(library, LLVMOrcAbsoluteSymbols(pairs.data(), pairs.size())))) return out;
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), "program");
  if (failed(LLVMOrcLLJITAddObjectFile(jit, library, buffer))) return out;
  LLVMOrcExecutorAddress address = 0;
  if (failed(LLVMOrcLLJITLookup(jit, &address, "bend_program"))) return out;
  out.program = reinterpret_cast<const BendProgram*>(address);
  return out;
}

}  // namespace bendc::codegen
