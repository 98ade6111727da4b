// infer_borrows: decides which parameters a function only reads, so that its callers keep them and no counts move.
// A ref, array or sum (of refs and uncounted fields) parameter is borrowed when every use reads it (case, con_get, a borrowing primitive, a borrowed parameter of another call) or,
// when a case looks at it, returns it, none of its parts is stored or handed over, no tail call of a cycle would have to drop it afterwards, and at least one caller
// still needs the value (a value used once is better given away: the callee then frees it while it is warm). A returned parameter takes a dup,
// which a caller that keeps the value would make otherwise; many a function that only reads has an arm like that, for trees of unequal shapes.
// What is read from such parameters stays lent where paths meet in a join point, inside a sum (`Some{left}`) and through a selector (selectors.h): these variables are
// marked `borrowed` and count nothing, so a walk that chooses its next node by a function of its own, as all choices on computed values are made, moves no counts.
#pragma once
#include "codegen/flow.h"

namespace bendc {
struct PassOptions;
void infer_borrows(flow::Module& module, const PassOptions& options);
}  // namespace bendc
