// Selectors: functions that choose and read, and do nothing else: what they return is an argument, a part of one, or a sum (`Some{left}`) or a word made of such.
// Every choice on a computed value is made by a function of its own, so a walk's step is often a call of a selector. A lent choice (borrow.h) is one between lent
// values whose result is only read; it becomes a join point, where nothing is counted:
//   let x = call side(c, l, r); .. x ..   becomes   join j(borrow x) { .. x .. } case c { 0 => { jump j(l) } 1 => { jump j(r) } }
#pragma once
#include "codegen/flow.h"

namespace bendc::flow {

// A ref, or a sum by value of refs and uncounted fields.
[[nodiscard]] bool is_lendable_value(const Module& module, TypeId type);
// The constructor is a word and no node: nothing of it is counted.
[[nodiscard]] bool con_is_word(const Module& module, TypeId type, uint64_t ctor);
[[nodiscard]] bool is_selector(const Module& module, FuncId id);
// `call`: a let of a selector's call, lent.
void inline_lent_choice(Module& module, NodeId call);

}  // namespace bendc::flow
