// infer_borrows: decides which parameters a function only reads, so that its callers keep them and no counts move.
// A ref parameter is borrowed when every use reads it (case, con_get, a borrowing primitive, a borrowed parameter of another call), none
// of its parts is stored or handed over, no tail call of a cycle would have to drop it afterwards, and at least one caller still needs
// the value (a value used once is better given away: the callee then frees it while it is warm).
#pragma once
#include "codegen/flow.h"

namespace bendc {
struct PassOptions;
void infer_borrows(flow::Module& module, const PassOptions& options);
}  // namespace bendc
