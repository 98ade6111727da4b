// infer_borrows: decides which parameters a function only reads, so that its callers keep them and no counts move.
// A ref or array parameter is borrowed when every use reads it (case, con_get, a borrowing primitive, a borrowed parameter of another call) or,
// when a case looks at it, returns it, none of its parts is stored or handed over, no tail call of a cycle would have to drop it afterwards, and at least one caller
// still needs the value (a value used once is better given away: the callee then frees it while it is warm). A returned parameter takes a dup,
// which a caller that keeps the value would make otherwise; many a function that only reads has an arm like that, for trees of unequal shapes.
#pragma once
#include "codegen/flow.h"

namespace bendc {
struct PassOptions;
void infer_borrows(flow::Module& module, const PassOptions& options);
}  // namespace bendc
