// What the fuzzers run on one input: any bytes in; the process aborts when an invariant breaks. tests/fuzz/corpus holds inputs for each.
#pragma once
#include <cstdint>
#include <string_view>

namespace bendc::fuzz {

void parse_input(std::string_view bytes);   // lexer, parser, both renderers
void check_input(std::string_view bytes);   // all of `bendc check` on one file, with Base
void flow_input(std::string_view bytes);    // Flow's text form, its verifier, and back

}  // namespace bendc::fuzz
