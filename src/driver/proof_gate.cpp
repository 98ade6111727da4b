#include "driver/proof_gate.h"

#include <fmt/format.h>

namespace bendc {

Diagnostics check_proof_gate(const Program& program, const SourceMap& sources, const std::string& path, const FileReader& reader) {
  Diagnostics out;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  if (path.substr(folder.size()) != "PROOF.bend") return out;
  std::string reason;
  if (!reader.read(folder + "LAWS.bend", reason)) return out;
  for (const AliasTarget& alias : program.modules[program.entry].aliases)
    if (program.modules[alias.module].key == "LAWS") return out;
  const FileId file = program.modules[program.entry].ast.file;
  const Span first_line{file, 0, static_cast<uint32_t>(sources.line_text(file, 1).size())};
  Diagnostic& d = out.add(Code::B2, first_line, "`PROOF.bend` does not import the `LAWS.bend` beside it");
  d.notes.push_back("a PROOF.bend proves the laws of its folder, so it imports them");
  d.fix = "add `import ./LAWS.bend as Laws` to the imports";
  return out;
}

}  // namespace bendc
