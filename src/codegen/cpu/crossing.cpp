#include "codegen/cpu/crossing.h"

#include "codegen/walk.h"

namespace bendc::flow {

namespace {

class Marker {
 public:
  explicit Marker(const Module& module) : m_(module) {
    out_.types.resize(m_.types.size());
    out_.datas.resize(m_.datas.size());
  }

  Crossing run() {
    for (uint32_t i = 0; i < m_.funcs.size(); ++i)
      each_node(m_, m_.funcs[FuncId(i)].body, [&](NodeId at) {
        for (const CallSite& call : m_.nodes[at].calls) {
          for (VarId var : m_.list(call.args)) type(m_.vars[var].type);
          type(m_.funcs[call.func].result);
        }
      });
    while (!work_.empty()) {
      const TypeId id = work_.back();
      work_.pop_back();
      parts(m_.types[id]);
    }
    return std::move(out_);
  }

 private:
  void type(TypeId id) {
    if (out_.types[id.index]) return;
    out_.types[id.index] = true;
    work_.push_back(id);
  }

  void parts(const Type& t) {
    switch (t.kind) {
      case TypeKind::U32:
      case TypeKind::F32:
      case TypeKind::Nat:
      case TypeKind::Enum:
      case TypeKind::Token:
        return;
      case TypeKind::Struct:
      case TypeKind::Array:
        for (TypeId part : t.parts) type(part);
        return;
      case TypeKind::Sum:
        for (const auto& variant : t.variants)
          for (TypeId part : variant) type(part);
        return;
      case TypeKind::Ref:
        if (out_.datas[t.data.index]) return;
        out_.datas[t.data.index] = true;
        for (const CtorLayout& ctor : m_.datas[t.data].ctors)
          for (TypeId field : ctor.fields) type(field);
        return;
      case TypeKind::Fn:
      case TypeKind::Any:
        if (!out_.objects) objects();
        return;
    }
  }

  // What any object of the program may hold.
  void objects() {
    out_.objects = true;
    for (uint32_t i = 0; i < m_.funcs.size(); ++i)
      each_node(m_, m_.funcs[FuncId(i)].body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        if (n.kind != NodeKind::Let) return;
        if (n.expr.kind != ExprKind::Closure && n.expr.kind != ExprKind::Box && n.expr.kind != ExprKind::Request) return;
        for (VarId var : m_.list(n.expr.args)) type(m_.vars[var].type);
      });
  }

  const Module& m_;
  Crossing out_;
  std::vector<TypeId> work_;
};

}  // namespace

Crossing find_crossing(const Module& module) { return Marker(module).run(); }

std::vector<bool> find_forking(const Module& m) {
  std::vector<std::vector<uint32_t>> callers(m.funcs.size());
  std::vector<bool> forking(m.funcs.size());
  std::vector<uint32_t> work;
  auto mark = [&](uint32_t func) {
    if (forking[func]) return;
    forking[func] = true;
    work.push_back(func);
  };
  for (uint32_t i = 0; i < m.funcs.size(); ++i)
    each_node(m, m.funcs[FuncId(i)].body, [&](NodeId at) {
      const Node& n = m.nodes[at];
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) callers[n.expr.func.index].push_back(i);
      if (n.kind == NodeKind::Tail) callers[n.func.index].push_back(i);
      if (n.kind != NodeKind::Fork) return;
      for (const CallSite& call : n.calls) callers[call.func.index].push_back(i);
      if (n.calls.size() > 1) mark(i);
    });
  while (!work.empty()) {
    const uint32_t func = work.back();
    work.pop_back();
    for (uint32_t caller : callers[func]) mark(caller);
  }
  return forking;
}

}  // namespace bendc::flow
