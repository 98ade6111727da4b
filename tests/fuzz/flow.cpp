// Any bytes through Flow's parser: what parses is verified and printed, and what was printed parses.
#include "codegen/flow_text.h"

#include <cstdio>
#include <cstdlib>

#include "codegen/flow_verify.h"
#include "fuzz/targets.h"

namespace bendc::fuzz {

void flow_input(std::string_view bytes) {
  const flow::ParsedFlow parsed = flow::parse_module(bytes);
  if (!parsed.error.empty() || !flow::verify(parsed.module).empty()) return;
  const std::string text = flow::print_module(parsed.module);
  const flow::ParsedFlow again = flow::parse_module(text);
  if (again.error.empty()) return;
  std::fprintf(stderr, "%s\n%s\n", text.c_str(), again.error.c_str());
  std::abort();
}

}  // namespace bendc::fuzz
