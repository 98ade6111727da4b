// The two passes: declare everything, then elaborate declaration by declaration.
#include "checker/elaborate.h"

#include "checker/elaborator.h"

namespace bendc {

ElaborateResult elaborate(const Program& program, const SourceMap& sources, Interner& names, size_t stack) {
  ElaborateResult out;
  elab::Reports reports;
  elab::Symbols symbols(program, names);
  size_t nodes = 0;
  for (const Module& m : program.modules) nodes += m.ast.nodes.size();
  out.book.terms.reserve(nodes + nodes / 2);
  out.book.spans.reserve(nodes + nodes / 2);
  if (program.entry.valid()) out.book.entry_uses_base = program.modules[program.entry].uses_base;

  std::vector<elab::Declared> declared = elab::declare(program, names, symbols, out.book, reports);
  {
    elab::Elaborator elaborator(program, names, symbols, out.book, reports, stack);
    for (const elab::Declared& d : declared) elaborator.declaration(d);
  }

  for (Diagnostics* phase : {&reports.parse, &reports.flatten, &reports.check}) {
    if (out.diagnostics.has_errors()) break;
    out.diagnostics.append(std::move(*phase));
  }
  if (!out.diagnostics.has_errors()) out.diagnostics.append(std::move(reports.warnings));
  out.diagnostics.sort(sources);
  return out;
}

}  // namespace bendc
