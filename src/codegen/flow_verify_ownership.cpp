// Invariant 10, once ownership is explicit: every owned counted variable is consumed exactly once on every path (a dup adds one, a
// consuming use takes one); borrowed parameters and what is read from them are never consumed without a dup. Join bodies may consume
// variables from outside: each jump then pays for what the body takes.
#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "codegen/flow_verify.h"
#include "codegen/ownership.h"
#include "codegen/prim_types.h"

namespace bendc::flow {

namespace {

using Balance = std::map<uint32_t, int>;   // variable -> references held beyond those of the scope outside; zero entries are erased

class OwnershipVerifier {
 public:
  explicit OwnershipVerifier(const Module& module) : m_(module) {}

  std::string run() {
    demands_.resize(m_.join_count);
    params_.resize(m_.join_count);
    aborts_.resize(m_.join_count);
    for (uint32_t i = 0; i < m_.funcs.size() && error_.empty(); ++i) {
      const Func& f = m_.funcs[FuncId(i)];
      func_ = &f;
      borrowed_.clear();
      Balance state;
      for (size_t p = 0; p < f.params.size(); ++p) {
        if (!is_counted(m_, m_.vars[f.params[p]].type)) continue;
        if (p < f.borrowed.size() && f.borrowed[p]) borrowed_.emplace(f.params[p].index, true);
        else change(state, f.params[p], +1);
      }
      Balance want;
      bool known = true;
      body(f.body, state, want, known);
    }
    return error_;
  }

 private:
  void fail(const std::string& what) {
    if (error_.empty()) error_ = fmt::format("in `{}`: 10: {}", func_->name, what);
  }
  bool counted(VarId v) const { return is_counted(m_, m_.vars[v].type); }
  static void change(Balance& state, VarId v, int by) {
    int& n = state[v.index];
    n += by;
    if (n == 0) state.erase(v.index);
  }
  void consume(Balance& state, VarId v) {
    if (counted(v)) change(state, v, -1);
  }
  void produce(Balance& state, VarId v) {
    if (counted(v)) change(state, v, +1);
  }
  // At the end of a path: what is left must be what every other path leaves.
  void finish(const Balance& state, Balance& want, bool& known) {
    if (!known) {
      want = state;
      known = true;
      return;
    }
    if (state == want) return;
    for (const auto& [v, n] : state)
      if (!want.count(v) || want[v] != n) return fail(fmt::format("`{}` (%{}) has {} reference(s) left over at the end of a path", m_.vars[VarId(v)].name, v, n - (want.count(v) ? want[v] : 0)));
    for (const auto& [v, n] : want)
      if (!state.count(v)) return fail(fmt::format("`{}` (%{}) is consumed on one path and not on another", m_.vars[VarId(v)].name, v));
  }

  void expr(const Expr& e, Balance& state, VarId bound) {
    if (m_.vars[bound].borrowed) return;   // made of lent parts: takes and owns nothing
    auto args = m_.list(e.args);
    for (size_t i = 0; i < args.size(); ++i) {
      bool consumed = true;
      if (e.kind == ExprKind::Get || e.kind == ExprKind::VariantGet || e.kind == ExprKind::ConGet) consumed = false;
      if (e.kind == ExprKind::Prim) consumed = !prim_borrows(e, i);
      if (e.kind == ExprKind::Call) consumed = !marks_borrowed(e.func, i);
      if (consumed) consume(state, args[i]);
    }
    if (e.reuse.valid()) consume(state, e.reuse);
    // A field read is not owned until it is dup'ed: start it at zero.
    const bool read = e.kind == ExprKind::Get || e.kind == ExprKind::VariantGet || e.kind == ExprKind::ConGet;
    if (!read) produce(state, bound);
  }
  bool marks_borrowed(FuncId f, size_t i) const {
    const auto& marks = m_.funcs[f].borrowed;
    return i < marks.size() && marks[i];
  }

  void body(NodeId id, Balance state, Balance& want, bool& known) {
    while (error_.empty()) {
      const Node& n = m_.nodes[id];
      switch (n.kind) {
        case NodeKind::Let: expr(n.expr, state, n.var); break;
        case NodeKind::Open:
          consume(state, n.subject);
          for (VarId v : m_.list(n.vars)) produce(state, v);
          if (n.var.valid()) produce(state, n.var);
          break;
        case NodeKind::Dup: produce(state, n.subject); break;
        case NodeKind::Drop: consume(state, n.subject); break;
        case NodeKind::Join: {
          Balance inner, inner_want;
          bool inner_known = false;
          params_[n.join.index] = n.vars;
          for (VarId v : m_.list(n.vars)) if (!m_.vars[v].borrowed) produce(inner, v);
          demands_[n.join.index].clear();
          if (n.loop) inner_known = true;   // wants nothing left and nothing taken from outside
          body(n.body, inner, inner_want, inner_known);
          demands_[n.join.index] = inner_want;
          aborts_[n.join.index] = !inner_known;
          break;
        }
        case NodeKind::Fork:
          for (const CallSite& call : n.calls) {
            auto args = m_.list(call.args);
            for (size_t i = 0; i < args.size(); ++i)
              if (!marks_borrowed(call.func, i)) consume(state, args[i]);
          }
          for (VarId v : m_.list(n.vars)) produce(state, v);
          break;
        case NodeKind::Case:
        case NodeKind::Switch:
          for (const Arm& arm : n.arms) body(arm.body, state, want, known);
          if (n.other.valid()) body(n.other, state, want, known);
          return;
        case NodeKind::Ret:
          consume(state, n.subject);
          return finish(state, want, known);
        case NodeKind::Tail: {
          auto args = m_.list(n.args);
          for (size_t i = 0; i < args.size(); ++i)
            if (!marks_borrowed(n.func, i)) consume(state, args[i]);
          return finish(state, want, known);
        }
        case NodeKind::Jump:
          for (size_t i = 0; i < m_.list(n.args).size(); ++i)
            if (!m_.vars[m_.list(params_[n.join.index])[i]].borrowed) consume(state, m_.list(n.args)[i]);
          if (aborts_[n.join.index]) return;
          for (const auto& [v, count] : demands_[n.join.index]) change(state, VarId(v), count);
          return finish(state, want, known);
        case NodeKind::Abort: return;
      }
      id = n.next;
    }
  }

  const Module& m_;
  const Func* func_ = nullptr;
  std::string error_;
  std::unordered_map<uint32_t, bool> borrowed_;
  std::vector<Slice> params_;      // by join
  std::vector<bool> aborts_;       // by join: its body never ends in any other way
  std::vector<Balance> demands_;   // by join: what its body leaves (negative: takes) of variables from outside
};

}  // namespace

std::string verify_ownership(const Module& module) { return OwnershipVerifier(module).run(); }

}  // namespace bendc::flow
