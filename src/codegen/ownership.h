// insert_ownership: makes every use of counted memory explicit. In: Flow where variables may be used any number of times and fields are
// read with get/con_get. Out: the same module with `owned` set: every counted variable is consumed exactly once on every path, with
// dup, drop and open placed so that a match frees (or hands on) the node it opens and a value is dropped as soon as it is dead.
//
// A counted type holds a ref, array, closure, any-box or token somewhere. What consumes an operand: constructors, calls (parameters not
// marked borrowed), apply, closure captures, requests, box and unbox, ret, jump, and what a primitive does not borrow (prim_borrows).
// What only reads: con_get on a borrowed variable, case, what prim_borrows says.
//
//   case %t { 1 => { let %l = con_get 1 0(%t); let %r = con_get 1 1(%t); .. f(%l) .. } }
//   becomes   1 => { open %t 1(%l, %r); drop %r; .. f(%l) .. }
#pragma once
#include "codegen/flow.h"

namespace bendc::flow {

[[nodiscard]] bool is_counted(const Module& module, TypeId type);

}  // namespace bendc::flow

namespace bendc {
struct PassOptions;
void insert_ownership(flow::Module& module, const PassOptions& options);
}  // namespace bendc
