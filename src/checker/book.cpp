// The book in checking order, then the verdict: open laws and TODOs (B1), reliance on unsafe code (B3).
#include "checker/book.h"

#include <fmt/format.h>

#include "checker/reliance.h"
#include "checker/typecheck.h"

namespace bendc {

using core::DataId;
using core::DefId;
using core::DefKind;
using core::EventKind;

namespace {

void report_todos(const core::Book& book, const Interner& names, const Checker& checker, const std::vector<DefId>& laws, Diagnostics& out) {
  const size_t count = checker.todos.size() + laws.size();
  const Span first = laws.empty() ? checker.todos.front().span : book.defs[laws.front()].name_span;
  Diagnostic& d = out.add(Code::B1, first, "");
  if (!laws.empty()) {
    const std::string name = core::display_name(names.text(book.defs[laws.front()].name));
    d.message = fmt::format("the law `{}` has no fill", name);
    d.fix = fmt::format("prove it: `def {}(..): ...`", name);
  } else {
    d.message = "a `?TODO` is left";
    d.fix = "replace the hole by a term of its goal; `?name` shows the goal and the context";
  }
  if (count > 1) d.notes.push_back(fmt::format("{} open laws and TODOs in all", count));
  d.notes.push_back("the rest of the program checks, but it does not run while laws or TODOs are open");
  for (size_t i = 1; i < laws.size(); ++i) d.labels.push_back({book.defs[laws[i]].name_span, "also open"});
  for (size_t i = laws.empty() ? 1 : 0; i < checker.todos.size(); ++i) d.labels.push_back({checker.todos[i].span, "also left"});
}

}  // namespace

CheckResult check_book(core::Book& book, const SourceMap& sources, Interner& names, const CheckOptions& options) {
  CheckResult result;
  Checker checker(book, sources, names, options, result.diagnostics);
  for (const core::Event& event : book.events) {
    switch (event.kind) {
      case EventKind::CheckData: checker.check_data(DataId(event.id)); break;
      case EventKind::CheckDef: checker.check_def(DefId(event.id)); break;
      case EventKind::CheckLawType: checker.check_law_type(DefId(event.id)); break;
    }
  }

  std::vector<DefId> laws;
  for (uint32_t i = 0; i < book.defs.size(); ++i) {
    const core::Def& def = book.defs[DefId(i)];
    const bool stdlib = def.module < book.module_is_stdlib.size() && book.module_is_stdlib[def.module];
    if (def.kind == DefKind::Law && !def.body.valid() && !def.foreign && !def.broken && !stdlib) laws.push_back(DefId(i));
  }
  Verdict& verdict = result.verdict;
  verdict.todos = static_cast<uint32_t>(laws.size() + checker.todos.size());
  const bool errors = result.diagnostics.has_errors();
  if (!errors && verdict.todos != 0) report_todos(book, names, checker, laws, result.diagnostics);
  verdict.relies_on_unsafe = relies_on_unsafe(book);
  if (options.safe && !result.diagnostics.has_errors() && !verdict.relies_on_unsafe.empty()) {
    const core::Def& first = book.defs[verdict.relies_on_unsafe.front()];
    Diagnostic& d = result.diagnostics.add(Code::B3, first.name_span, fmt::format("`{}` relies on unsafe or foreign code", core::display_name(names.text(first.name))));
    for (size_t i = 1; i < verdict.relies_on_unsafe.size(); ++i) d.labels.push_back({book.defs[verdict.relies_on_unsafe[i]].name_span, "relies on it too"});
    d.notes.push_back("`--safe` accepts only code whose safety the checker itself has proved");
  }
  verdict.clean = !result.diagnostics.has_errors() && verdict.todos == 0;
  return result;
}

}  // namespace bendc
