#include "codegen/gpu/last_frees.h"

#include "codegen/memory_layout.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

class Finder {
 public:
  explicit Finder(const DeviceModule& device) : device_(device), m_(device.module), layouts_(m_), makes_(m_.funcs.size()), followed_(m_.funcs.size()) {}

  std::vector<bool> run() {
    repeat([&](FuncId func) { return set(makes_, func, makes_from(m_.funcs[func].body)); });
    repeat([&](FuncId func) { return visit_sites(func); });
    std::vector<bool> out(m_.funcs.size());
    for (uint32_t i = 0; i < m_.funcs.size(); ++i) out[i] = device_.reachable[i] && !device_.inlined[i] && !makes_[i] && !followed_[i];
    return out;
  }

 private:
  template <class F> void repeat(F&& step) {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t i = 0; i < m_.funcs.size(); ++i)
        if (device_.reachable[i]) changed |= step(FuncId(i));
    }
  }

  static bool set(std::vector<bool>& flags, FuncId func, bool holds) {
    if (!holds || flags[func.index]) return false;
    flags[func.index] = true;
    return true;
  }

  // Whether the node by itself takes memory of the kind that dead nodes leave, or calls what does.
  bool makes(const Node& n) {
    if (n.kind == NodeKind::Tail) return makes_[n.func.index];
    for (const CallSite& site : n.calls)
      if (makes_[site.func.index]) return true;
    if (n.kind != NodeKind::Let) return false;
    switch (n.expr.kind) {
      case ExprKind::Const: case ExprKind::Struct: case ExprKind::Get: case ExprKind::Variant: case ExprKind::VariantGet: case ExprKind::ConGet: return false;
      case ExprKind::Con: return m_.datas[m_.types[m_.vars[n.var].type].data].ctors[n.expr.imm].repr == CtorRepr::Node;
      case ExprKind::Prim: return layouts_.of(m_.vars[n.var].type).counted;
      case ExprKind::Call: return makes_[n.expr.func.index];
      case ExprKind::Str: case ExprKind::Apply: case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box: case ExprKind::Unbox: return true;
    }
    return true;
  }

  bool makes_from(NodeId body) {
    bool found = false;
    each_node(m_, body, [&](NodeId at) { found |= makes(m_.nodes[at]); });
    return found;
  }

  // What is followed by something that makes nodes: calls by the rest of the function, forks by each other too, and all that is called last by what
  // comes after the function. A function's join points may come after any part of it.
  bool visit_sites(FuncId func) {
    bool changed = false;
    const bool after = followed_[func.index] || joins_make(func);
    each_node(m_, m_.funcs[func].body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Tail) changed |= set(followed_, n.func, after);
      const bool call = n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call;
      if (!call && n.calls.empty()) return;
      const bool rest = after || makes_from(n.next);
      if (call) changed |= set(followed_, n.expr.func, rest);
      for (size_t i = 0; i < n.calls.size(); ++i) {
        bool beside = rest;
        for (size_t k = 0; k < n.calls.size(); ++k) beside |= k != i && makes_[n.calls[k].func.index];
        changed |= set(followed_, n.calls[i].func, beside);
      }
    });
    return changed;
  }

  bool joins_make(FuncId func) {
    bool found = false;
    each_node(m_, m_.funcs[func].body, [&](NodeId at) {
      if (m_.nodes[at].kind == NodeKind::Join) found |= makes_from(m_.nodes[at].body);
    });
    return found;
  }

  const DeviceModule& device_;
  const Module& m_;
  Layouts layouts_;
  std::vector<bool> makes_;      // by function: it, or what it calls, makes a node
  std::vector<bool> followed_;   // by function: some node is made after a call of it, or beside it
};

}  // namespace

std::vector<bool> find_last_frees(const DeviceModule& device) { return Finder(device).run(); }

}  // namespace bendc
