// Lets and forks. A parallel let whose live values are calls that run something becomes a fork; every other let computes its values in order.
#include "codegen/lowerer.h"

namespace bendc {

using core::Quantity;
using core::TermId;
using core::TermKind;

bool Lowerer::occurs(TermId t, uint32_t level) const {
  std::vector<TermId> todo{t};
  std::unordered_set<TermId> seen;
  auto list = [&](uint32_t offset, uint32_t count) {
    for (TermId x : book_.list(offset, count)) todo.push_back(x);
  };
  while (!todo.empty()) {
    const TermId id = todo.back();
    todo.pop_back();
    if (!id.valid() || !seen.insert(id).second) continue;
    const core::Term& term = book_.terms[id];
    switch (term.kind) {
      case TermKind::Var:
        if (term.a == level) return true;
        break;
      case TermKind::Let:
        for (uint32_t i = 0; i < term.b; ++i) todo.push_back(book_.let_rows[term.a + i].value);
        todo.push_back(TermId(term.c));
        break;
      case TermKind::Kind: case TermKind::Lam: todo.push_back(TermId(term.a)); break;
      case TermKind::Meet: case TermKind::All: case TermKind::Ann: todo.push_back(TermId(term.a)); todo.push_back(TermId(term.b)); break;
      case TermKind::App: todo.push_back(TermId(term.a)); list(term.b, term.c); break;
      case TermKind::Adt: case TermKind::Ctr: list(term.b, term.c); break;
      case TermKind::Mat: case TermKind::MatLit: todo.push_back(TermId(term.b)); todo.push_back(TermId(term.c)); break;
      case TermKind::Eql: case TermKind::Rwt: todo.push_back(TermId(term.a)); todo.push_back(TermId(term.b)); todo.push_back(TermId(term.c)); break;
      case TermKind::Ref: case TermKind::Quant: case TermKind::Qua: case TermKind::U32: case TermKind::Nat: case TermKind::F32: case TermKind::Str:
      case TermKind::Efq: case TermKind::Rfl: case TermKind::Hole: case TermKind::Error:
        break;
    }
  }
  return false;
}

// Binds the rows of a let. The values of live rows are computed here, in order. A parallel let with calls forks; of its rows, one whose name
// does not occur in the body is left out, as the language says.
void Lowerer::lower_let(const core::Term& term, Scope& s) {
  const std::vector<core::LetRow> rows(book_.let_rows.begin() + term.a, book_.let_rows.begin() + term.a + term.b);
  const Span span = span_;
  const bool parallel = (term.flags & core::kParallel) != 0;
  std::vector<uint32_t> live;
  for (uint32_t i = 0; i < rows.size(); ++i)
    if (rows[i].quantity != Quantity::None && (!parallel || occurs(TermId(term.c), s.env->length + i))) live.push_back(i);
  std::vector<Typed> values(rows.size());
  const bool forked = parallel && live.size() >= 2 && lower_fork(rows, live, s, values);
  if (!forked) {
    for (uint32_t i : live) {
      values[i] = infer(rows[i].value, s);
      flow::Var& var = out_.vars[values[i].op.var];
      if (rows[i].name.valid() && (var.name == "t" || var.name == "c")) var.name = names_.text(rows[i].name);
    }
  }
  const Scope outer = s;
  uint32_t next = 0;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    const Value* value = m_.delay(rows[i].value, outer.env);
    if (next < live.size() && live[next] == i) {
      s = bind_live(s, values[i].op, value, values[i].type);
      ++next;
    } else {
      s = bind_erased(s, value, type_of(rows[i].value, outer));
    }
  }
  span_ = span;
}

// All rows are saturated calls of defs with bodies, foreign defs, or closure applications: run them as a fork. The rule of the language:
// a native, literal, constructor, variable or partial application among them makes the let sequential.
bool Lowerer::lower_fork(std::span<const core::LetRow> rows, std::span<const uint32_t> live, Scope s, std::vector<Typed>& out) {
  struct Plan {
    core::DefId def;                 // none: a closure application
    std::vector<Argument> args;
    TermId head;
    Scope scope;
  };
  std::vector<Plan> plans;
  for (uint32_t i : live) {
    TermId t = rows[i].value;
    while (book_.terms[t].kind == TermKind::Ann) t = TermId(book_.terms[t].a);
    Plan plan;
    plan.scope = s;
    for (;;) {
      const core::Term& term = book_.terms[t];
      if (term.kind == TermKind::App) {
        uint32_t first = 0;
        auto it = book_.instance_calls.find(t);
        if (it != book_.instance_calls.end()) first = book_.defs[book_.defs[it->second].instance_of].templates;
        std::vector<Argument> args;
        for (uint32_t k = first; k < term.c; ++k) args.push_back({book_.list(term.b, term.c)[k], plan.scope, std::nullopt});
        plan.args.insert(plan.args.begin(), args.begin(), args.end());
        if (it != book_.instance_calls.end()) {
          plan.def = it->second;
          break;
        }
        t = TermId(term.a);
        continue;
      }
      if (term.kind == TermKind::Ref) {
        const core::Def& def = book_.defs[core::DefId(term.a)];
        // A def that stands for a `~` argument is what it stands for.
        if (def.instance_of.valid() && def.arity == 0 && def.body.valid() && !plan.args.empty()) {
          const TermKind kind = book_.terms[def.body].kind;
          if (kind == TermKind::Ref || kind == TermKind::App) {
            t = def.body;
            plan.scope = empty_scope();
            continue;
          }
        }
        plan.def = core::DefId(term.a);
      }
      break;
    }
    if (plan.def.valid()) {
      const core::Def& def = book_.defs[plan.def];
      const bool callable = def.body.valid() || def.foreign;
      // Held arguments only (`adder(3)` whose body is a lambda): a closure, nothing to run.
      if (prim_of(plan.def).has_value() || !callable || plan.args.size() < arity_of(plan.def)) return false;
    } else {
      if (plan.args.empty()) return false;
      plan.head = t;
      const TermKind kind = book_.terms[t].kind;
      if (kind != TermKind::Var && kind != TermKind::Ann) return false;
    }
    if (!plan.def.valid() || plan.args.size() > arity_of(plan.def)) {
      const Value* type = plan.def.valid() ? m_.all_of_def(plan.def) : type_of(plan.head, plan.scope);
      bool last_live = false;
      for (const Argument& arg : plan.args) {
        type = type == nullptr ? nullptr : m_.whnf(type);
        if (type == nullptr || type->tag != Tag::All) return false;
        last_live = m_.binder_quantity(type) != Quantity::None;
        type = m_.codomain(type, argument_value(arg));
      }
      if (!last_live) return false;
    }
    plans.push_back(std::move(plan));
  }

  // Arguments first, in order; then all calls at once.
  std::vector<flow::CallSite> calls;
  std::vector<Typed> results;
  for (Plan& plan : plans) {
    Typed fn;
    std::vector<flow::VarId> operands;
    flow::FuncId func;
    if (plan.def.valid()) {
      const uint32_t arity = arity_of(plan.def);
      if (plan.args.size() == arity) {
        std::vector<Operand> args;
        std::vector<StaticArg> statics;
        const Value* type = m_.all_of_def(plan.def);
        for (Argument& arg : plan.args) {
          type = m_.whnf(type);
          const Value* domain = m_.domain(type);
          if (m_.binder_quantity(type) == Quantity::None) {
            const Value* value = argument_value(arg);
            statics.push_back(reps_.canonical(domain, value));
            type = m_.codomain(type, value);
          } else {
            Pending p = argument(arg, domain, true);
            args.push_back(p.op);
            type = m_.codomain(type, p.value);
          }
        }
        const Callable callee = callables_[instance(plan.def, std::move(statics))];
        for (size_t k = 0; k < args.size(); ++k) operands.push_back(coerce(args[k], callee.params[k]).var);
        func = callee.func;
        results.push_back({{{}, callee.result}, type});
      }
    }
    if (!func.valid()) {
      // f(a, .., z) with f a closure, or with more arguments than one call takes: all but the last application happen here.
      Argument last = plan.args.back();
      plan.args.pop_back();
      if (plan.def.valid()) {
        call_def(plan.def, false, plan.args, nullptr, &fn);
      } else {
        fn = infer(plan.head, plan.scope);
        if (!plan.args.empty()) {
          Typed partial;
          apply_closure(fn, plan.args, nullptr, &partial);
          fn = partial;
        }
      }
      const Value* type = m_.whnf(fn.type);
      if (type->tag != Tag::All) internal("a fork of a call of no function");
      const Operand f = coerce(fn.op, reps_.of(type));
      Pending p = argument(last, m_.domain(type), true);
      operands = {f.var, coerce(p.op, reps_[f.rep].a).var};
      func = apply_function(reps_.flow(f.rep));
      results.push_back({{{}, reps_[f.rep].b}, m_.codomain(type, p.value)});
    }
    calls.push_back({func, own_list(operands), false});
  }
  std::vector<flow::VarId> vars;
  for (size_t k = 0; k < results.size(); ++k) {
    results[k].op.var = new_var(out_.funcs[calls[k].func].result, std::string(names_.text(rows[live[k]].name)));
    vars.push_back(results[k].op.var);
    out[live[k]] = results[k];
  }
  flow::Node node;
  node.kind = flow::NodeKind::Fork;
  node.vars = out_.var_lists.add(vars);
  node.calls = std::move(calls);
  emit(std::move(node));
  return true;
}

}  // namespace bendc
