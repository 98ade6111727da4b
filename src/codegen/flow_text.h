// Flow as text, both ways: print(parse(t)) is t up to names. Used by --dump, by pass tests and by code generation tests.
#pragma once
#include <string>

#include "codegen/flow.h"
#include "support/diagnostic.h"

namespace bendc::flow {

[[nodiscard]] std::string print_module(const Module& module);
[[nodiscard]] std::string print_func(const Module& module, FuncId func);
[[nodiscard]] std::string print_type(const Module& module, TypeId type);

struct ParsedFlow {
  Module module;
  std::string error;          // empty when fine: "line 3: expected `=`"
};
[[nodiscard]] ParsedFlow parse_module(std::string_view text);

}  // namespace bendc::flow
