// In the order of the functions and of their bodies' nodes.
#include "codegen/objects.h"

#include "codegen/walk.h"

namespace bendc::flow {

ObjectTable number_objects(const Module& module) {
  ObjectTable out;
  auto& m = const_cast<Module&>(module);   // each_node serves passes that add nodes; this one adds none
  for (const Func& func : module.funcs) {
    each_node(m, func.body, [&](NodeId at) {
      const Node& n = module.nodes[at];
      if (n.kind != NodeKind::Let) return;
      const auto next = static_cast<uint32_t>(out.shapes.size());
      if (n.expr.kind == ExprKind::Closure) {
        const auto captures = static_cast<uint32_t>(module.list(n.expr.args).size());
        if (out.closures.try_emplace({n.expr.func.index, captures}, next).second) out.shapes.push_back({n.expr.func, captures, TypeId()});
      }
      if (n.expr.kind == ExprKind::Box) {
        const TypeId content = module.vars[module.list(n.expr.args)[0]].type;
        if (out.boxes.try_emplace(content.index, next).second) out.shapes.push_back({FuncId(), 0, content});
      }
    });
  }
  return out;
}

}  // namespace bendc::flow
