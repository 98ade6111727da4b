// Method: all candidates start as borrowed; a sweep over every function takes away those with a consuming use and repeats until nothing
// changes (each sweep is linear; a parameter changes at most once, and in practice two or three sweeps are enough).
#include "codegen/borrow.h"

#include <unordered_map>
#include <unordered_set>

#include "codegen/call_graph.h"
#include "codegen/passes.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

class Inference {
 public:
  explicit Inference(Module& module) : m_(module) {}

  void run() {
    const uint32_t count = m_.funcs.size();
    components_ = call_components(m_);
    marks_.resize(count);
    wanted_.resize(count);
    fixed_.resize(count);
    matched_.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      const Func& f = m_.funcs[FuncId(i)];
      for (VarId p : f.params) marks_[i].push_back(lendable(p));
      wanted_[i].assign(f.params.size(), false);
      // Lent already: callers go on with the argument whatever the function does with it.
      if (!f.borrowed.empty()) wanted_[i] = fixed_[i] = f.borrowed;
      std::unordered_set<uint32_t> subjects;
      each_node(m_, f.body, [&](NodeId at) {
        if (m_.nodes[at].kind == NodeKind::Case) subjects.insert(m_.nodes[at].subject.index);
      });
      for (VarId p : f.params) matched_[i].push_back(subjects.count(p.index) > 0);
    }
    if (m_.entry.valid()) own_all(m_.entry);
    for (const Node& n : m_.nodes) {
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Closure) own_all(n.expr.func);
      else if (n.expr.bang) own_arrays(n.expr.func);
      if (n.kind != NodeKind::Fork) continue;
      for (const CallSite& call : n.calls) if (call.bang) own_arrays(call.func);
    }
    do {
      changed_ = false;
      for (uint32_t i = 0; i < count; ++i) sweep(FuncId(i));
    } while (changed_);
    find_wanted();
    for (uint32_t i = 0; i < count; ++i) {
      for (size_t p = 0; p < marks_[i].size(); ++p) marks_[i][p] = marks_[i][p] && wanted_[i][p];
    }
    // Dropping unwanted marks can leave a borrowed parameter passed to an owned one: settle again, only taking away.
    do {
      changed_ = false;
      for (uint32_t i = 0; i < count; ++i) sweep(FuncId(i));
    } while (changed_);
    for (uint32_t i = 0; i < count; ++i) {
      bool any = false;
      for (bool b : marks_[i]) any |= b;
      m_.funcs[FuncId(i)].borrowed = any ? marks_[i] : std::vector<bool>{};
    }
  }

 private:
  void own(FuncId f, size_t p) {
    if (!marks_[f.index][p] || (!fixed_[f.index].empty() && fixed_[f.index][p])) return;
    marks_[f.index][p] = false;
    changed_ = true;
  }
  void own_all(FuncId f) {
    for (size_t p = 0; p < marks_[f.index].size(); ++p) marks_[f.index][p] = false;
  }
  // A device may give an array back as another block, so a `!` call takes the handles that it is given.
  void own_arrays(FuncId f) {
    for (size_t p = 0; p < marks_[f.index].size(); ++p)
      if (kind(m_.funcs[f].params[p]) == TypeKind::Array) marks_[f.index][p] = false;
  }
  TypeKind kind(VarId v) const { return m_.types[m_.vars[v].type].kind; }
  bool lendable(VarId v) const { return kind(v) == TypeKind::Ref || kind(v) == TypeKind::Array; }

  // Follows which parameter a variable is read from (itself, or a field reached through con_gets).
  void sweep(FuncId id) {
    const Func& f = m_.funcs[id];
    std::unordered_map<uint32_t, size_t> root;
    for (size_t p = 0; p < f.params.size(); ++p)
      if (marks_[id.index][p]) root[f.params[p].index] = p;
    auto consumed = [&](VarId v) {
      if (auto it = root.find(v.index); it != root.end()) own(id, it->second);
    };
    auto pass = [&](FuncId callee, Slice args, bool tail) {
      auto list = m_.list(args);
      for (size_t i = 0; i < list.size(); ++i) {
        const bool reads = marks_[callee.index][i];
        if (!reads) consumed(list[i]);
        // Passing on something owned here to a borrower means a drop after the call: no tail call, so not on a cycle.
        else if (tail && components_[callee.index] == components_[id.index] && lendable(list[i])) {
          auto it = root.find(list[i].index);
          if (it == root.end() || !marks_[id.index][it->second]) own(callee, i);
        }
      }
    };
    each_node(m_, f.body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      switch (n.kind) {
        case NodeKind::Let: {
          const Expr& e = n.expr;
          auto args = m_.list(e.args);
          if (e.kind == ExprKind::ConGet) {
            auto it = root.find(args[0].index);
            if (it != root.end() && counted_ref(n.var)) root[n.var.index] = it->second;
            else if (it != root.end() && used_once(m_.vars[n.var].type)) consumed(args[0]);
          } else if (e.kind == ExprKind::Call) pass(e.func, e.args, false);
          else if (e.kind == ExprKind::Prim) {
            for (size_t i = 0; i < args.size(); ++i)
              if (!prim_borrows(e, i)) consumed(args[i]);
          } else if (e.kind != ExprKind::Get && e.kind != ExprKind::VariantGet) {
            for (VarId v : args) consumed(v);
          }
          break;
        }
        case NodeKind::Fork:
          for (const CallSite& call : n.calls) pass(call.func, call.args, false);
          break;
        case NodeKind::Ret:
          // A dup, where the caller would make one to keep the value. What is only handed on and returned at last is moved, and so is an array.
          if (auto it = root.find(n.subject.index); it != root.end() && !matched_[id.index][it->second]) own(id, it->second);
          break;
        case NodeKind::Tail: pass(n.func, n.args, true); break;
        case NodeKind::Jump:
          for (VarId v : m_.list(n.args)) consumed(v);
          break;
        case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: case NodeKind::Join: case NodeKind::Case: case NodeKind::Switch: case NodeKind::Abort:
          break;
      }
    });
  }
  // Fields that are no ref are not followed: what is read of them is copied, which arrays and closures, used once, are not for.
  bool counted_ref(VarId v) const { return kind(v) == TypeKind::Ref; }
  bool used_once(TypeId id) const {
    const Type& type = m_.types[id];
    if (type.kind == TypeKind::Array || type.kind == TypeKind::Fn) return true;
    for (TypeId part : type.kind == TypeKind::Struct ? type.parts : std::vector<TypeId>{})
      if (used_once(part)) return true;
    for (const auto& variant : type.variants)
      for (TypeId part : variant)
        if (used_once(part)) return true;
    return false;
  }

  // A borrow pays when a caller keeps the value: the argument has other uses there, or is itself read from a borrowed parameter of another
  // function.
  void find_wanted() {
    const uint32_t count = m_.funcs.size();
    for (uint32_t i = 0; i < count; ++i) {
      const FuncId id(i);
      const Func& f = m_.funcs[id];
      std::unordered_map<uint32_t, uint32_t> uses;
      auto add = [&](Slice s) { for (VarId v : m_.list(s)) ++uses[v.index]; };
      each_node(m_, f.body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        if (n.kind == NodeKind::Let && n.expr.kind != ExprKind::ConGet) add(n.expr.args);
        if (n.kind == NodeKind::Tail || n.kind == NodeKind::Jump) add(n.args);
        for (const CallSite& call : n.calls) add(call.args);
        if (n.kind == NodeKind::Ret) ++uses[n.subject.index];
      });
      auto site = [&](FuncId callee, Slice args) {
        auto list = m_.list(args);
        for (size_t p = 0; p < list.size(); ++p)
          if (marks_[callee.index][p] && uses[list[p].index] > 1) wanted_[callee.index][p] = true;
      };
      each_node(m_, f.body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) site(n.expr.func, n.expr.args);
        if (n.kind == NodeKind::Tail) site(n.func, n.args);
        for (const CallSite& call : n.calls) site(call.func, call.args);
      });
    }
    // What a wanted borrower passes on to another borrower is wanted there too.
    bool again = true;
    while (again) {
      again = false;
      for (uint32_t i = 0; i < count; ++i) {
        const Func& f = m_.funcs[FuncId(i)];
        std::unordered_set<uint32_t> kept;
        for (size_t p = 0; p < f.params.size(); ++p) if (marks_[i][p] && wanted_[i][p]) kept.insert(f.params[p].index);
        if (kept.empty()) continue;
        auto site = [&](FuncId callee, Slice args) {
          auto list = m_.list(args);
          for (size_t p = 0; p < list.size(); ++p)
            if (marks_[callee.index][p] && !wanted_[callee.index][p] && kept.count(list[p].index)) wanted_[callee.index][p] = again = true;
        };
        each_node(m_, f.body, [&](NodeId at) {
          const Node& n = m_.nodes[at];
          if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::ConGet && kept.count(m_.list(n.expr.args)[0].index)) kept.insert(n.var.index);
          if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) site(n.expr.func, n.expr.args);
          if (n.kind == NodeKind::Tail) site(n.func, n.args);
          for (const CallSite& call : n.calls) site(call.func, call.args);
        });
      }
    }
  }

  Module& m_;
  std::vector<uint32_t> components_;
  std::vector<std::vector<bool>> marks_, wanted_;
  std::vector<std::vector<bool>> fixed_;      // empty where nothing is
  std::vector<std::vector<bool>> matched_;    // parameters that a case looks at
  bool changed_ = false;
};

}  // namespace

void infer_borrows(Module& m, const PassOptions&) { Inference(m).run(); }

}  // namespace bendc
