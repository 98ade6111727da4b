// fuse_bangs: a `!` call whose result only feeds another `!` call becomes part of that call, so that the value between them never leaves the device.
// In and out: Flow before ownership.
//
//   let t = call! @build(d, i)  let s = call! @sum(t)
//   becomes   let s = call! @sum.of.build(d, i)      fn @sum.of.build(d, i) { let t = call @build(d, i) let s = call @sum(t) ret s }
#pragma once
#include "codegen/flow.h"

namespace bendc {

struct PassOptions;
void fuse_bangs(flow::Module& module, const PassOptions& options);

}  // namespace bendc
