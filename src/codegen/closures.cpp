// Closures. A lambda becomes a function whose leading parameters are the variables it captures (found while its body is lowered) and whose
// last one is its own. A call with too few arguments becomes a closure over the instance, one argument at a time.
#include <fmt/format.h>

#include "codegen/lowerer.h"

namespace bendc {

Operand Lowerer::lambda(core::TermId term, Scope s, const Value* goal) {
  goal = m_.whnf(goal);
  if (goal->tag != Tag::All) internal("a lambda whose type is no function type");
  const Span span = span_;
  const Value* domain = m_.domain(goal);
  const Value* x = reps_.opaque(domain);
  const RepId param = reps_.of(domain), result = reps_.of(m_.codomain(goal, x));
  const RepId params[] = {param};
  Builder* outer = b_;
  Builder* root = outer;               // lambdas are numbered by the def they stand in, however deep
  while (root->outer != nullptr) root = root->outer;
  const flow::FuncId func = new_func(fmt::format("{}.fn{}", out_.funcs[root->func].name, root->lambdas++), span);
  set_signature(func, params, result);
  Builder builder;
  open(builder, func, outer);
  PendingList pending{{true, {out_.funcs[func].params[0], param}, x}};
  Dest dest;
  dest.kind = Dest::Kind::Return;
  dest.rep = result;
  lower(term, s, goal, std::move(pending), dest);
  close(builder);
  std::vector<flow::VarId> all, captured;
  for (const auto& [from, mine] : builder.captures) {
    captured.push_back(from);
    all.push_back(mine);
  }
  all.push_back(out_.funcs[func].params[0]);
  out_.funcs[func].params = std::move(all);
  span_ = span;
  flow::Expr closure;
  closure.kind = flow::ExprKind::Closure;
  closure.func = func;
  closure.args = own_list(captured);
  const RepId rep = reps_.fn(param, result);
  return {let(closure, reps_.flow(rep), "f"), rep};
}

RepId Lowerer::curried_rep(const Callable& callable, uint32_t from) {
  RepId rep = callable.result;
  for (uint32_t i = static_cast<uint32_t>(callable.params.size()); i-- > from;) rep = reps_.fn(callable.params[i], rep);
  return rep;
}

Operand Lowerer::partial(const Callable& callable, std::span<const Operand> args) {
  const uint32_t given = static_cast<uint32_t>(args.size());
  std::vector<flow::VarId> vars;
  for (const Operand& arg : args) vars.push_back(arg.var);
  flow::Expr closure;
  closure.kind = flow::ExprKind::Closure;
  closure.func = curried(callable, given);
  closure.args = own_list(vars);
  const RepId rep = curried_rep(callable, given);
  return {let(closure, reps_.flow(rep), "f"), rep};
}

// The function behind a closure that has `captured` arguments and takes the next one: the instance itself for the last argument, else a
// function that makes the closure of one argument more.
flow::FuncId Lowerer::curried(const Callable& callable, uint32_t captured) {
  const uint32_t total = static_cast<uint32_t>(callable.params.size());
  if (captured + 1 == total) return callable.func;
  const auto key = std::make_pair(callable.func.index, captured);
  if (auto it = curried_.find(key); it != curried_.end()) return it->second;
  const flow::FuncId func = new_func(fmt::format("{}.curry{}", out_.funcs[callable.func].name, captured + 1), out_.funcs[callable.func].span);
  curried_.emplace(key, func);
  const RepId result = curried_rep(callable, captured + 1);
  set_signature(func, std::span(callable.params).first(captured + 1), result);
  Builder builder;
  open(builder, func, nullptr);
  std::vector<Operand> args;
  for (uint32_t i = 0; i <= captured; ++i) args.push_back({out_.funcs[func].params[i], callable.params[i]});
  ret(partial(callable, args).var);
  close(builder);
  return func;
}

// (f, x) -> f(x), for a closure application among the calls of a fork.
flow::FuncId Lowerer::apply_function(flow::TypeId fn_type) {
  if (auto it = apply_functions_.find(fn_type.index); it != apply_functions_.end()) return it->second;
  const flow::FuncId func = new_func("apply", span_);
  apply_functions_.emplace(fn_type.index, func);
  const flow::TypeId param = out_.types[fn_type].parts[0], result = out_.types[fn_type].parts[1];
  out_.funcs[func].result = result;
  Builder builder;
  open(builder, func, nullptr);
  const flow::VarId operands[] = {new_var(fn_type, "f"), new_var(param, "x")};
  out_.funcs[func].params.assign(std::begin(operands), std::end(operands));
  ret(expr(flow::ExprKind::Apply, operands, result));
  close(builder);
  return func;
}

}  // namespace bendc
