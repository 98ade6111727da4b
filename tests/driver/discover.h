// Finds the cases below a folder. In: a root such as tests/cases. Out: its cases, sorted by id.
// A folder with a main.bend or PROOF.bend is one case and its other files are that case's modules; any other folder is looked through.
// `seed` holds a module for other cases, none of its own.
#pragma once
#include "case.h"

namespace bendc::tests {

// `prefix` leads each id ("" or "shared/"); `writable` says whether --update may rewrite the cases.
[[nodiscard]] std::vector<Case> discover_cases(const std::filesystem::path& root, const std::string& prefix, bool writable);

// Removes from `others` the cases that `own` holds with the same name and the same files.
void drop_copies(std::vector<Case>& others, const std::vector<Case>& own, const std::string& prefix);

}  // namespace bendc::tests
