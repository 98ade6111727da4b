// Method: all candidates start as borrowed; a sweep over every function takes away those with a consuming use and repeats until nothing
// changes (each sweep is linear; a parameter changes at most once, and in practice two or three sweeps are enough).
#include "codegen/borrow.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "codegen/call_graph.h"
#include "codegen/passes.h"
#include "codegen/prim_types.h"
#include "codegen/selectors.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

constexpr size_t kMostChoices = 64;   // of a function: each becomes a join point, the later ones within the earlier ones' bodies

// The parameters that a variable is read from, ascending. None: a constructor without memory.
using Roots = std::vector<uint32_t>;

void merge(Roots& into, const Roots& more) {
  Roots both;
  std::set_union(into.begin(), into.end(), more.begin(), more.end(), std::back_inserter(both));
  into = std::move(both);
}

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
      selectors_.push_back(is_selector(m_, FuncId(i)));
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
    std::vector<NodeId> choices;
    for (uint32_t i = 0; i < count; ++i) {
      const std::unordered_map<uint32_t, Roots> root = sweep(FuncId(i));
      for (uint32_t v : made_) {
        const auto it = root.find(v);
        if (it != root.end() && !kept_.count(v) && (!it->second.empty() || lent_on_.count(v))) m_.vars[VarId(v)].borrowed = true;
      }
      choices.insert(choices.end(), choices_.begin(), choices_.end());
    }
    for (NodeId at : choices)
      if (m_.vars[m_.nodes[at].var].borrowed) inline_lent_choice(m_, at);
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
  bool lendable(VarId v) const { return kind(v) == TypeKind::Array || is_lendable_value(m_, m_.vars[v].type); }

  // Follows which parameters a variable is read from: itself, a field reached through gets, a sum or join parameter made of such. Every jump to a join point is
  // visited before the join point's body (each_node takes the newest body first), so the roots of its parameters are known there.
  std::unordered_map<uint32_t, Roots> sweep(FuncId id) {
    const Func& f = m_.funcs[id];
    std::unordered_map<uint32_t, Roots> root;
    std::unordered_map<uint32_t, Slice> joins;
    made_.clear();
    lent_on_.clear();
    choices_.clear();
    for (size_t p = 0; p < f.params.size(); ++p)
      if (marks_[id.index][p]) root[f.params[p].index] = {static_cast<uint32_t>(p)};
    auto readable = [&](VarId v) { return root.count(v.index) > 0 && !kept_.count(v.index); };
    // What is made of lent parts has to be counted after all.
    auto keep = [&](VarId v) { changed_ |= kept_.insert(v.index).second; };
    auto consumed = [&](VarId v) {
      auto it = root.find(v.index);
      if (it == root.end()) return;
      for (uint32_t p : it->second) own(id, p);
      if (it->second.empty() && !lent_on_.count(v.index)) kept_.insert(v.index);
      else if (made_.count(v.index)) keep(v);
    };
    auto pass = [&](FuncId callee, Slice args, bool tail) {
      auto list = m_.list(args);
      for (size_t i = 0; i < list.size(); ++i) {
        const bool reads = marks_[callee.index][i];
        if (!reads) consumed(list[i]);
        // Passing on something owned here to a borrower means a drop after the call: no tail call, so not on a cycle.
        else if (tail && components_[callee.index] == components_[id.index] && lendable(list[i])) {
          if (!readable(list[i]) || root[list[i].index].empty()) own(callee, i);
        }
      }
    };
    // A value made of lent ones is lent on, unless a use of it consumes.
    auto made_of = [&](VarId v, std::span<const VarId> parts) {
      auto lent = [&](VarId part) { return !is_lendable_value(m_, m_.vars[part].type) || readable(part); };
      if (kept_.count(v.index) || !std::all_of(parts.begin(), parts.end(), lent)) return false;
      Roots all;
      for (VarId part : parts)
        if (readable(part)) merge(all, root[part.index]);
      for (VarId part : parts)
        if (readable(part)) lent_on_.insert(part.index);
      made_.insert(v.index);
      root[v.index] = std::move(all);
      return true;
    };
    auto choice = [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.expr.bang || !selectors_[n.expr.func.index] || choices_.size() == kMostChoices) return false;
      auto args = m_.list(n.expr.args);
      if (std::none_of(args.begin(), args.end(), [&](VarId v) { return readable(v) && !root[v.index].empty(); }) || !made_of(n.var, args)) return false;
      choices_.push_back(at);
      return true;
    };
    each_node(m_, f.body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      switch (n.kind) {
        case NodeKind::Let: {
          const Expr& e = n.expr;
          auto args = m_.list(e.args);
          if (e.kind == ExprKind::ConGet || e.kind == ExprKind::VariantGet) {
            auto it = root.find(args[0].index);
            if (it == root.end()) break;
            if (counted_ref(n.var)) root[n.var.index] = Roots(it->second);
            else if (used_once(m_.vars[n.var].type)) consumed(args[0]);
          } else if (e.kind == ExprKind::Call) {
            if (!choice(at)) pass(e.func, e.args, false);
          } else if (e.kind == ExprKind::Prim) {
            for (size_t i = 0; i < args.size(); ++i)
              if (!prim_borrows(e, i)) consumed(args[i]);
          } else if (e.kind != ExprKind::Get) {
            const bool word = e.kind == ExprKind::Con && con_is_word(m_, m_.vars[n.var].type, e.imm);
            const bool sum = e.kind == ExprKind::Variant && is_lendable_value(m_, m_.vars[n.var].type);
            if (!((word || sum) && made_of(n.var, args)))
              for (VarId v : args) consumed(v);
          }
          break;
        }
        case NodeKind::Fork:
          for (const CallSite& call : n.calls) pass(call.func, call.args, false);
          break;
        case NodeKind::Ret:
          // A dup, where the caller would make one to keep the value. What is only handed on and returned at last is moved, and so is an array, and what
          // was put together here.
          if (auto it = root.find(n.subject.index); it != root.end()) {
            const Roots roots = it->second;
            if (made_.count(n.subject.index)) consumed(n.subject);
            else for (uint32_t p : roots) if (!matched_[id.index][p]) own(id, p);
          }
          break;
        case NodeKind::Tail: pass(n.func, n.args, true); break;
        case NodeKind::Join: joins[n.join.index] = n.vars; break;
        case NodeKind::Jump: {
          auto args = m_.list(n.args), params = m_.list(joins[n.join.index]);
          for (size_t i = 0; i < args.size(); ++i) {
            const VarId p = params[i];
            if (!is_lendable_value(m_, m_.vars[p].type)) {
              consumed(args[i]);
            } else if (kept_.count(p.index) || !readable(args[i])) {
              keep(p);
              root.erase(p.index);
              consumed(args[i]);
            } else {
              made_.insert(p.index);
              const Roots more = root[args[i].index];
              merge(root[p.index], more);
              lent_on_.insert(args[i].index);
            }
          }
          break;
        }
        case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: case NodeKind::Case: case NodeKind::Switch: case NodeKind::Abort: break;
      }
    });
    return root;
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
      std::unordered_map<uint32_t, VarId> inside;   // a boxed part of a sum made here
      auto add = [&](Slice s) { for (VarId v : m_.list(s)) ++uses[v.index]; };
      each_node(m_, f.body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        if (n.kind == NodeKind::Let && n.expr.kind != ExprKind::ConGet && n.expr.kind != ExprKind::VariantGet) add(n.expr.args);
        if (n.kind == NodeKind::Tail || n.kind == NodeKind::Jump) add(n.args);
        for (const CallSite& call : n.calls) add(call.args);
        if (n.kind == NodeKind::Ret) ++uses[n.subject.index];
        if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Variant && is_lendable_value(m_, m_.vars[n.var].type))
          for (VarId part : m_.list(n.expr.args))
            if (is_lendable_value(m_, m_.vars[part].type)) inside[n.var.index] = part;
      });
      auto kept_by_caller = [&](VarId v) {
        const auto part = inside.find(v.index);
        return uses[v.index] > 1 || (part != inside.end() && uses[part->second.index] > 1);
      };
      auto site = [&](FuncId callee, Slice args) {
        auto list = m_.list(args);
        for (size_t p = 0; p < list.size(); ++p)
          if (marks_[callee.index][p] && kept_by_caller(list[p])) wanted_[callee.index][p] = true;
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
        std::unordered_map<uint32_t, Slice> joins;
        auto site = [&](FuncId callee, Slice args) {
          auto list = m_.list(args);
          for (size_t p = 0; p < list.size(); ++p)
            if (marks_[callee.index][p] && !wanted_[callee.index][p] && kept.count(list[p].index)) wanted_[callee.index][p] = again = true;
        };
        each_node(m_, f.body, [&](NodeId at) {
          const Node& n = m_.nodes[at];
          if (n.kind == NodeKind::Join) joins[n.join.index] = n.vars;
          if (n.kind == NodeKind::Let && (n.expr.kind == ExprKind::ConGet || n.expr.kind == ExprKind::VariantGet || n.expr.kind == ExprKind::Variant ||
                                          (n.expr.kind == ExprKind::Call && selectors_[n.expr.func.index])))
            for (VarId v : m_.list(n.expr.args)) if (kept.count(v.index)) kept.insert(n.var.index);
          if (n.kind == NodeKind::Jump)
            for (size_t p = 0; p < m_.list(n.args).size(); ++p) if (kept.count(m_.list(n.args)[p].index)) kept.insert(m_.list(joins[n.join.index])[p].index);
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
  std::vector<bool> selectors_;
  std::vector<NodeId> choices_;               // calls of selectors in the function swept last that may be lent
  std::unordered_set<uint32_t> kept_;         // variables made of lent parts that a use consumes: they are counted
  std::unordered_set<uint32_t> made_;         // of the function swept last: sums and join parameters with roots, constructors without memory
  std::unordered_set<uint32_t> lent_on_;      // of the same: what went into one of these
  bool changed_ = false;
};

}  // namespace

void infer_borrows(Module& m, const PassOptions&) { Inference(m).run(); }

}  // namespace bendc
