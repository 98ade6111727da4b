// defunctionalise: closures and boxes as data, for the device, which has no indirect calls.
// In: a copy of the program's owned module and its `!` targets. Out: in every function that a target reaches, a closure is a node of one
// boxed datatype `object` whose constructor index is the object number (codegen/objects.h), with the captures as fields, and an application is
// a call of a generated function with a case over the closures of that type that can get there. Boxed values of unknown type are nodes of
// the same datatype. In memory nothing changes: { count, number, payload }, as on the host.
//
//   let g = closure add(x)    let y = apply g(1)       becomes      let g = con object.3(x)    let y = call apply(g, 1)
//   fn apply(f: object, x: u32) -> u32 { case f { 3 => { open f as 3(a); tail add(a, x) } .. } }
//
// A closure can get to an application when it is made in a function that the target reaches, or comes with the target's arguments. A target
// that could apply one whose function is host-only gets a refusal instead. Functions that no accepted target reaches lose their bodies.
#pragma once
#include <string>
#include <vector>

#include "codegen/flow.h"

namespace bendc {

struct BangTarget {
  flow::FuncId func;
  std::string refusal;           // why it cannot run on the device; empty when it can
};

// `host_only`: by function, what keeps its own code off the device, or empty.
[[nodiscard]] std::vector<BangTarget> defunctionalise(flow::Module& module, const std::vector<flow::FuncId>& targets, const std::vector<std::string>& host_only);

}  // namespace bendc
