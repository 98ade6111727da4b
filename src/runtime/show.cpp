// The printer of value mains: generated code walks the value and calls these for its leaves and the text between them.
#include "runtime/runtime.h"
#include "runtime/strings.h"
#include "support/text.h"

using namespace bendc;
using namespace bendc::rt;

namespace {

Output* out_of(BendWorker* worker) { return &worker->runtime->out; }

void show_escaped(Output* out, uint32_t c, char quote) {
  char text[16];
  output_bytes(out, text, text::escape_show(c, quote, text));
}

}  // namespace

void bend_show_text(BendWorker* worker, const char* bytes, uint64_t size) { output_bytes(out_of(worker), bytes, size); }

void bend_show_u32(BendWorker* worker, uint32_t value) {
  char text[20];
  output_bytes(out_of(worker), text, text::u64_show(value, text));
}

void bend_show_nat(BendWorker* worker, uint64_t value) {
  char text[21];
  size_t size = text::u64_show(value, text);
  text[size] = 'n';
  output_bytes(out_of(worker), text, size + 1);
}

void bend_show_f32(BendWorker* worker, float value) {
  char text[text::kF32Chars];
  output_bytes(out_of(worker), text, text::f32_show_point(value, text));
}

void bend_show_char(BendWorker* worker, uint32_t code_point) {
  Output* out = out_of(worker);
  output_bytes(out, "'", 1);
  show_escaped(out, code_point, '\'');
  output_bytes(out, "'", 1);
}

void bend_show_string(BendWorker* worker, BendWord string) {
  Output* out = out_of(worker);
  output_bytes(out, "\"", 1);
  u32_list_visit(string, [&](uint32_t c) { show_escaped(out, c, '"'); });
  output_bytes(out, "\"", 1);
}
