// The proof gate: a file named exactly PROOF.bend whose folder has a LAWS.bend must import it (B2), else its proofs prove nothing claimed there.
#pragma once
#include "frontend/module_loader.h"
#include "support/diagnostic.h"

namespace bendc {

[[nodiscard]] Diagnostics check_proof_gate(const Program& program, const SourceMap& sources, const std::string& path, const FileReader& reader);

}  // namespace bendc
