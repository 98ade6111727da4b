#include "codegen/gpu/defunctionalise.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/objects.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

// What a target reaches.
struct Reach {
  std::vector<bool> funcs;
  std::map<uint32_t, std::set<uint32_t>> applied;   // function type -> closures that may be applied there
};

class Pass {
 public:
  Pass(Module& module, const std::vector<std::string>& host_only) : m_(module), host_only_(host_only), objects_(number_objects(module)) {}

  std::vector<BangTarget> run(const std::vector<FuncId>& targets) {
    index_types();
    std::vector<BangTarget> out;
    std::vector<bool> reached(m_.funcs.size(), false);
    for (FuncId target : targets) {
      Reach reach;
      out.push_back({target, follow(target, reach)});
      if (!out.back().refusal.empty()) continue;
      for (size_t i = 0; i < reached.size(); ++i) reached[i] = reached[i] || reach.funcs[i];
      for (const auto& [type, ids] : reach.applied) applied_[type].insert(ids.begin(), ids.end());
    }
    Node never;
    never.kind = NodeKind::Abort;
    const NodeId nothing = m_.nodes.add(std::move(never));
    for (uint32_t i = 0; i < reached.size(); ++i)
      if (!reached[i]) m_.funcs[FuncId(i)].body = nothing;
    bool any = false;
    for (const Type& type : m_.types) any |= type.kind == TypeKind::Fn || type.kind == TypeKind::Any;
    if (!any) return out;
    declare_object();
    for (const auto& [type, ids] : applied_) declare_apply(TypeId(type));
    for (uint32_t i = 0; i < reached.size(); ++i)
      if (reached[i]) rewrite(FuncId(i));
    // Every function type and `any` is the boxed datatype from here on.
    for (Type& type : m_.types) {
      if (type.kind != TypeKind::Fn && type.kind != TypeKind::Any) continue;
      type = Type{TypeKind::Ref};
      type.data = object_;
    }
    for (const auto& [type, ids] : applied_) define_apply(TypeId(type), ids);
    return out;
  }

 private:
  // The function type of each closure, and for each function type its closures.
  void index_types() {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> by_ends;
    for (uint32_t i = 0; i < m_.types.size(); ++i)
      if (const Type& type = m_.types[TypeId(i)]; type.kind == TypeKind::Fn) by_ends[{type.parts[0].index, type.parts[1].index}] = i;
    for (const ObjectShape& shape : objects_.shapes) {
      uint32_t type = TypeId().index;
      if (shape.func.valid()) {
        const Func& func = m_.funcs[shape.func];
        type = by_ends.at({m_.vars[func.params.back()].type.index, func.result.index});
      }
      const auto id = static_cast<uint32_t>(closure_type_.size());
      closure_type_.push_back(type);
      if (shape.func.valid()) of_type_[type].insert(id);
    }
  }

  // The function types inside a value that comes from outside, also through what closures capture and boxes hold.
  void incoming(TypeId id, std::set<uint32_t>& seen) {
    std::vector<TypeId> work{id};
    while (!work.empty()) {
      const TypeId at = work.back();
      work.pop_back();
      if (!seen.insert(at.index).second) continue;
      const Type& type = m_.types[at];
      switch (type.kind) {
        case TypeKind::U32: case TypeKind::F32: case TypeKind::Nat: case TypeKind::Enum: case TypeKind::Token: break;
        case TypeKind::Struct: case TypeKind::Array: work.insert(work.end(), type.parts.begin(), type.parts.end()); break;
        case TypeKind::Sum:
          for (const std::vector<TypeId>& variant : type.variants) work.insert(work.end(), variant.begin(), variant.end());
          break;
        case TypeKind::Ref:
          for (const CtorLayout& ctor : m_.datas[type.data].ctors) work.insert(work.end(), ctor.fields.begin(), ctor.fields.end());
          break;
        case TypeKind::Fn:
          for (uint32_t closure : of_type_[at.index])
            for (uint32_t i = 0; i < objects_.shapes[closure].captures; ++i) work.push_back(m_.vars[m_.funcs[objects_.shapes[closure].func].params[i]].type);
          break;
        case TypeKind::Any:
          for (const ObjectShape& shape : objects_.shapes)
            if (!shape.func.valid()) work.push_back(shape.content);
          break;
      }
    }
  }

  // What keeps the target off the device, or empty; `reach` is complete then.
  std::string follow(FuncId target, Reach& reach) {
    reach.funcs.assign(m_.funcs.size(), false);
    std::set<uint32_t> outside, made;   // types of the arguments' parts; closures made here
    for (VarId param : m_.funcs[target].params) incoming(m_.vars[param].type, outside);
    std::vector<FuncId> work;
    auto visit = [&](FuncId f) {
      if (reach.funcs[f.index]) return;
      reach.funcs[f.index] = true;
      work.push_back(f);
    };
    auto apply = [&](uint32_t type, uint32_t closure) {
      if (reach.applied[type].insert(closure).second) visit(objects_.shapes[closure].func);
    };
    visit(target);
    while (!work.empty()) {
      const FuncId f = work.back();
      work.pop_back();
      if (!host_only_[f.index].empty()) return host_only_[f.index];
      each_node(m_, m_.funcs[f].body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        if (n.kind == NodeKind::Tail) visit(n.func);
        for (const CallSite& call : n.calls) visit(call.func);
        if (n.kind != NodeKind::Let) return;
        if (n.expr.kind == ExprKind::Call) visit(n.expr.func);
        if (n.expr.kind == ExprKind::Closure) {
          const uint32_t id = closure_id(n.expr);
          made.insert(id);
          if (reach.applied.count(closure_type_[id])) apply(closure_type_[id], id);
        }
        if (n.expr.kind == ExprKind::Apply) {
          const uint32_t type = m_.vars[m_.list(n.expr.args)[0]].type.index;
          if (!reach.applied.try_emplace(type).second) return;
          for (uint32_t id : of_type_[type])
            if (outside.count(type) || made.count(id)) apply(type, id);
        }
      });
    }
    return {};
  }

  [[nodiscard]] uint32_t closure_id(const Expr& e) const { return objects_.closures.at({e.func.index, static_cast<uint32_t>(m_.list(e.args).size())}); }

  void declare_object() {
    Data data;
    data.name = "object";
    for (const ObjectShape& shape : objects_.shapes) {
      CtorLayout ctor;
      ctor.name = shape.func.valid() ? m_.funcs[shape.func].name : "box";
      if (shape.func.valid())
        for (uint32_t i = 0; i < shape.captures; ++i) ctor.fields.push_back(m_.vars[m_.funcs[shape.func].params[i]].type);
      else
        ctor.fields.push_back(shape.content);
      data.ctors.push_back(std::move(ctor));
    }
    // The number stays out of the word's low bits with more than 8 constructors; one that is no node makes code look for immediates, which
    // handles of the runtime are.
    do {
      CtorLayout immediate;
      immediate.name = "immediate";
      immediate.repr = CtorRepr::Nullary;
      data.ctors.push_back(std::move(immediate));
    } while (data.ctors.size() < 9);
    object_ = m_.datas.add(std::move(data));
  }

  void declare_apply(TypeId fn) {
    const Type type = m_.types[fn];
    auto var = [&](TypeId of, const char* name) {
      Var v;
      v.type = of;
      v.name = name;
      return m_.vars.add(std::move(v));
    };
    Func f;
    f.name = fmt::format("apply~{}", fn.index);
    f.params = {var(fn, "f"), var(type.parts[0], "x")};
    f.result = type.parts[1];
    apply_functions_[fn.index] = m_.funcs.add(std::move(f));
  }

  void define_apply(TypeId fn, const std::set<uint32_t>& ids) {
    const FuncId id = apply_functions_.at(fn.index);
    const VarId f = m_.funcs[id].params[0], x = m_.funcs[id].params[1];
    Node choice;
    choice.kind = NodeKind::Case;
    choice.subject = f;
    for (uint32_t closure : ids) {
      const ObjectShape& shape = objects_.shapes[closure];
      std::vector<VarId> captures;
      for (uint32_t i = 0; i < shape.captures; ++i) {
        Var v = m_.vars[m_.funcs[shape.func].params[i]];
        captures.push_back(m_.vars.add(std::move(v)));
      }
      Node tail;
      tail.kind = NodeKind::Tail;
      tail.func = shape.func;
      std::vector<VarId> args = captures;
      args.push_back(x);
      tail.args = m_.var_lists.add(args);
      Node open;
      open.kind = NodeKind::Open;
      open.subject = f;
      open.imm = closure;
      open.vars = m_.var_lists.add(captures);
      open.next = m_.nodes.add(std::move(tail));
      choice.arms.push_back({closure, m_.nodes.add(std::move(open))});
    }
    if (choice.arms.empty()) {
      // Nothing of the type is ever made.
      choice = Node();
      choice.kind = NodeKind::Abort;
    } else if (choice.arms.size() == 1) {
      m_.funcs[id].body = choice.arms[0].body;
      return;
    } else {
      choice.other = choice.arms.back().body;
      choice.arms.pop_back();
    }
    m_.funcs[id].body = m_.nodes.add(std::move(choice));
  }

  void rewrite(FuncId func) {
    each_node(m_, m_.funcs[func].body, [&](NodeId at) {
      Node& n = m_.nodes[at];
      if (n.kind != NodeKind::Let) return;
      switch (n.expr.kind) {
        case ExprKind::Closure:
          n.expr.imm = closure_id(n.expr);
          n.expr.kind = ExprKind::Con;
          n.expr.func = FuncId();
          return;
        case ExprKind::Box:
          n.expr.imm = objects_.boxes.at(m_.vars[m_.list(n.expr.args)[0]].type.index);
          n.expr.kind = ExprKind::Con;
          return;
        case ExprKind::Apply: {
          const FuncId callee = apply_functions_.at(m_.vars[m_.list(n.expr.args)[0]].type.index);
          const Node& next = m_.nodes[n.next];
          if (next.kind == NodeKind::Ret && next.subject == n.var) {
            n.kind = NodeKind::Tail;
            n.func = callee;
            n.args = n.expr.args;
            n.expr = Expr();
            n.var = VarId();
            n.next = NodeId();
            return;
          }
          n.expr.kind = ExprKind::Call;
          n.expr.func = callee;
          return;
        }
        case ExprKind::Unbox: {
          auto box = objects_.boxes.find(m_.vars[n.var].type.index);
          const VarId subject = m_.list(n.expr.args)[0], content = n.var;
          n.expr = Expr();
          n.var = VarId();
          if (box == objects_.boxes.end()) {   // nothing of the type is ever boxed
            n.kind = NodeKind::Abort;
            n.next = NodeId();
            return;
          }
          n.kind = NodeKind::Open;
          n.subject = subject;
          n.imm = box->second;
          n.vars = m_.var_lists.add(std::vector<VarId>{content});
          return;
        }
        case ExprKind::Const: case ExprKind::Str: case ExprKind::Prim: case ExprKind::Struct: case ExprKind::Get: case ExprKind::Variant: case ExprKind::VariantGet:
        case ExprKind::Con: case ExprKind::ConGet: case ExprKind::Call: case ExprKind::Request:
          return;
      }
    });
  }

  Module& m_;
  const std::vector<std::string>& host_only_;
  const ObjectTable objects_;
  std::vector<uint32_t> closure_type_;                    // by object number
  std::map<uint32_t, std::set<uint32_t>> of_type_;        // closures by function type
  std::map<uint32_t, std::set<uint32_t>> applied_;        // the union over accepted targets
  std::map<uint32_t, FuncId> apply_functions_;            // by function type
  DataId object_;
};

}  // namespace

std::vector<BangTarget> defunctionalise(Module& module, const std::vector<FuncId>& targets, const std::vector<std::string>& host_only) {
  return Pass(module, host_only).run(targets);
}

}  // namespace bendc
