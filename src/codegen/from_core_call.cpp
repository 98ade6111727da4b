// Calls. The spine of an application is flattened; its head decides: a def becomes a call of one of its instances, a native an
// operation, a local an application of a closure. Arguments are evaluated left to right, erased ones go to specialisation.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/lowerer.h"
#include "codegen/prim_types.h"

namespace bendc {

using core::Quantity;
using core::TermId;
using core::TermKind;

Typed Lowerer::infer(TermId term, Scope s) {
  const Span span = span_;
  Typed out;
  const core::Term& t = book_.terms[term];
  switch (t.kind) {
    case TermKind::Ann: {
      const TermId inner(t.a);
      out.type = m_.delay(TermId(t.b), s.env);
      out.op = check(inner, s, out.type);
      break;
    }
    case TermKind::Kind: case TermKind::Quant: case TermKind::All: case TermKind::Adt: case TermKind::Eql: case TermKind::Qua: case TermKind::Meet: {
      out.type = type_of(term, s);
      out.op = check(term, s, out.type);
      break;
    }
    case TermKind::Var: case TermKind::Ref: case TermKind::App:
    case TermKind::Let: case TermKind::Lam: case TermKind::Ctr: case TermKind::U32: case TermKind::Nat: case TermKind::F32: case TermKind::Str:
    case TermKind::Mat: case TermKind::MatLit: case TermKind::Efq: case TermKind::Rfl: case TermKind::Rwt: case TermKind::Hole: case TermKind::Error:
      spine(term, s, {}, nullptr, &out);
      break;
  }
  span_ = span;
  return out;
}

// A value that is not a call: on to its destination.
void Lowerer::deliver(Typed value, Dest* dest, Typed* out) {
  if (out != nullptr) *out = value;
  if (dest != nullptr) finish(*dest, value.op);
}

const Value* Lowerer::argument_value(const Argument& arg) {
  return arg.pending.has_value() ? arg.pending->value : m_.delay(arg.term, arg.scope.env);
}

Pending Lowerer::argument(const Argument& arg, const Value* domain, bool live) {
  if (arg.pending.has_value()) return *arg.pending;
  Pending out{live, {}, m_.delay(arg.term, arg.scope.env)};
  if (live) out.op = check(arg.term, arg.scope, domain);
  return out;
}

void Lowerer::spine(TermId t, Scope s, PendingList pending, Dest* dest, Typed* out) {
  std::vector<Argument> args;
  for (size_t i = pending.size(); i-- > 0;) args.push_back({{}, {}, pending[i]});
  // Bounds following a def that only names another one (`def f() -> A -> B: g`), which an unsafe program may make circular.
  for (uint32_t hops = 0;; ++hops) {
    const core::Term term = book_.terms[t];
    if (const Span span = book_.span(t); span.valid()) span_ = span;
    switch (term.kind) {
      case TermKind::App: {
        uint32_t first = 0;
        auto it = book_.instance_calls.find(t);
        if (it != book_.instance_calls.end()) first = book_.defs[book_.defs[it->second].instance_of].templates;
        std::vector<Argument> own;
        for (uint32_t i = first; i < term.c; ++i) own.push_back({book_.list(term.b, term.c)[i], s, std::nullopt});
        args.insert(args.begin(), own.begin(), own.end());
        if (it != book_.instance_calls.end()) {
          const bool bang = (book_.terms[TermId(term.a)].flags & core::kBang) != 0;
          return call_def(it->second, bang, args, dest, out);
        }
        t = TermId(term.a);
        continue;
      }
      case TermKind::Ref: {
        const core::DefId def(term.a);
        const core::Def& d = book_.defs[def];
        if (d.arity == 0 && d.body.valid() && !args.empty() && hops < 64 && !prim_of(def).has_value()) {
          const TermKind kind = book_.terms[d.body].kind;
          if (kind == TermKind::Ref || kind == TermKind::App) {
            t = d.body;
            s = empty_scope();
            continue;
          }
        }
        return call_def(def, (term.flags & core::kBang) != 0, args, dest, out);
      }
      case TermKind::Var: {
        const Frame* frame = lookup(s, term.a);
        if (!frame->live) return deliver({unit(RepKind::Type), m_.type()}, dest, out);   // a type where a value of type Type is wanted
        const Typed head{frame->op, frame->type};
        if (args.empty()) return deliver(head, dest, out);
        return apply_closure(head, args, dest, out);
      }
      case TermKind::Ann: {
        const Value* type = m_.delay(TermId(term.b), s.env);
        if (args.empty()) {
          Typed value{check(TermId(term.a), s, type), type};
          return deliver(value, dest, out);
        }
        // {x => .. : T}(a, ..): the lambda takes its arguments here.
        PendingList list;
        const Value* rest = type;
        for (const Argument& arg : args) {
          rest = m_.whnf(rest);
          if (rest->tag != Tag::All) internal("an application of no function");
          list.push_back(argument(arg, m_.domain(rest), m_.binder_quantity(rest) != Quantity::None));
          rest = m_.codomain(rest, list.back().value);
        }
        std::reverse(list.begin(), list.end());
        if (dest != nullptr && out == nullptr) return lower(TermId(term.a), s, type, std::move(list), *dest);
        Dest value;
        value.rep = reps_.of(rest);
        lower(TermId(term.a), s, type, std::move(list), value);
        return deliver({value.result, rest}, dest, out);
      }
      case TermKind::Let: {
        lower_let(term, s);
        t = TermId(term.c);
        continue;
      }
      case TermKind::Hole:
      case TermKind::Error: return deliver({unreachable(dest != nullptr ? dest->rep : reps_.any()), reps_.any_type()}, dest, out);
      case TermKind::U32: case TermKind::Nat: case TermKind::F32: case TermKind::Str: {
        const core::DataId data = term.kind == TermKind::U32 ? reps_.u32_data : term.kind == TermKind::Nat ? reps_.nat_data
                                : term.kind == TermKind::F32 ? reps_.f32_data : reps_.string_data;
        const Value* type = m_.adt_constant(data);
        return deliver({literal(t, type), type}, dest, out);
      }
      case TermKind::Lam: case TermKind::Ctr: case TermKind::Mat: case TermKind::MatLit: case TermKind::Efq: case TermKind::Rfl: case TermKind::Rwt:
      case TermKind::Kind: case TermKind::Quant: case TermKind::All: case TermKind::Adt: case TermKind::Eql: case TermKind::Qua: case TermKind::Meet:
        internal(fmt::format("a term ({}) whose type cannot be inferred", core::kind_name(term.kind)));
    }
  }
}

void Lowerer::call_def(core::DefId id, bool bang, std::vector<Argument>& args, Dest* dest, Typed* out) {
  const Span span = span_;
  const std::optional<flow::Prim> native = prim_of(id);
  if (!book_.defs[id].body.valid() && !book_.defs[id].foreign && !native.has_value()) {
    fail(Code::B5, fmt::format("`{}` has no body, so a call of it cannot be compiled", name_of(book_.defs[id].name)), "fill the law, or call it in types and proofs only");
    const Value* type = m_.all_of_def(id);
    return deliver({unreachable(dest != nullptr ? dest->rep : reps_.any()), type}, dest, out);
  }
  const uint32_t arity = arity_of(id);
  const Value* type = m_.all_of_def(id);
  std::vector<Operand> live;
  std::vector<StaticArg> statics;
  uint32_t i = 0;
  for (; i < arity && i < args.size(); ++i) {
    type = m_.whnf(type);
    if (type->tag != Tag::All) internal(fmt::format("`{}` is called with too many arguments", name_of(book_.defs[id].name)));
    const Value* domain = m_.domain(type);
    if (m_.binder_quantity(type) == Quantity::None) {
      const Value* value = argument_value(args[i]);
      statics.push_back(reps_.canonical(domain, value));
      type = m_.codomain(type, value);
    } else {
      const Pending p = argument(args[i], domain, true);
      live.push_back(native.has_value() ? coerce(p.op, reps_.of(domain)) : p.op);
      type = m_.codomain(type, p.value);
    }
  }
  span_ = span;
  // Arguments that are not given: erased ones stay unknown, live ones make the value a closure.
  bool saturated = true;
  const Value* rest = type;
  for (uint32_t k = i; k < arity; ++k) {
    rest = m_.whnf(rest);
    if (rest->tag != Tag::All) internal(fmt::format("`{}` has fewer parameters than its arity", name_of(book_.defs[id].name)));
    const Value* domain = m_.domain(rest);
    if (m_.binder_quantity(rest) == Quantity::None) {
      statics.push_back(reps_.unknown(domain));
      rest = m_.codomain(rest, statics.back().value);
    } else {
      saturated = false;
      rest = m_.codomain(rest, reps_.opaque(domain));
    }
  }
  if (native.has_value() && saturated) {
    const Operand value = run_prim(*native, live, reps_.of(rest));
    if (i < args.size()) return apply_closure({value, type}, std::span(args).subspan(i), dest, out);
    return deliver({value, type}, dest, out);
  }
  const Callable callee = callables_[instance(id, std::move(statics))];
  for (size_t k = 0; k < live.size(); ++k) live[k] = coerce(live[k], callee.params[k]);
  if (!saturated) return deliver({partial(callee, live), type}, dest, out);
  if (i < args.size()) {
    Typed fn;
    call_or_tail(callee, live, type, bang, false, nullptr, &fn);
    return apply_closure(fn, std::span(args).subspan(i), dest, out);
  }
  call_or_tail(callee, live, type, bang, true, dest, out);
}

void Lowerer::call_or_tail(const Callable& callee, std::vector<Operand>& args, const Value* type, bool bang, bool last, Dest* dest, Typed* out) {
  std::vector<flow::VarId> vars;
  for (const Operand& arg : args) vars.push_back(arg.var);
  if (last && !bang && dest != nullptr && dest->kind == Dest::Kind::Return && out == nullptr && reps_.same(callee.result, dest->rep)) {
    flow::Node node;
    node.kind = flow::NodeKind::Tail;
    node.func = callee.func;
    node.args = own_list(vars);
    emit(std::move(node));
    b_->hole = {};
    return;
  }
  const flow::VarId var = call(callee.func, vars, reps_.flow(callee.result), bang);
  deliver({{var, callee.result}, type}, dest, out);
}

void Lowerer::apply_closure(Typed fn, std::span<Argument> args, Dest* dest, Typed* out) {
  const Span span = span_;
  for (const Argument& arg : args) {
    const Value* type = m_.whnf(fn.type);
    if (type->tag != Tag::All) internal("an application of no function");
    if (m_.binder_quantity(type) == Quantity::None) {
      fn.type = m_.codomain(type, argument_value(arg));   // the closure takes no erased arguments
      continue;
    }
    if (reps_[fn.op.rep].kind != RepKind::Fn) fn.op = coerce(fn.op, reps_.of(type));
    const Pending p = argument(arg, m_.domain(type), true);
    span_ = span;
    const Rep rep = reps_[fn.op.rep];
    const flow::VarId operands[] = {fn.op.var, coerce(p.op, rep.a).var};
    fn.op = {expr(flow::ExprKind::Apply, operands, reps_.flow(rep.b)), rep.b};
    fn.type = m_.codomain(type, p.value);
  }
  deliver(fn, dest, out);
}

// The operands have the representations of the native's own signature; a pair too wide to be passed by value is rebuilt as a node.
Operand Lowerer::run_prim(flow::Prim p, std::span<const Operand> given, RepId result) {
  std::vector<flow::VarId> vars;
  std::vector<flow::TypeId> types;
  std::vector<Operand> args(given.begin(), given.end());
  store_element(p, args, result);
  for (const Operand& arg : args) {
    vars.push_back(arg.var);
    types.push_back(out_.vars[arg.var].type);
  }
  if (p == flow::Prim::F32Show || p == flow::Prim::F32Read) (void)reps_.flow(reps_.adt(reps_.string_data));
  const std::optional<flow::TypeId> type = flow::prim_result(out_, p, types);
  if (!type.has_value()) internal(fmt::format("operands of {}", flow::prim_text(p)));
  const flow::VarId var = prim(p, vars, *type);
  if (reps_.flow(result) == *type) return {var, result};
  const Rep rep = reps_[result];
  const std::vector<flow::TypeId> parts = out_.types[*type].parts;
  if (rep.kind != RepKind::Adt || rep.fields.size() != 1 || rep.fields[0].size() != parts.size()) internal(fmt::format("the result of {}", flow::prim_text(p)));
  std::vector<Operand> fields;
  for (uint32_t k = 0; k < parts.size(); ++k) {
    const RepId field = rep.fields[0][k];
    const RepId stored = reps_.flow(field) == parts[k] ? field : reps_.any();   // an element of an array that stores `any`
    fields.push_back(coerce({expr(flow::ExprKind::Get, std::span(&var, 1), parts[k], k), stored}, field));
  }
  return build(result, 0, fields);
}

// The element that a native puts into an array, as that array stores it.
void Lowerer::store_element(flow::Prim p, std::vector<Operand>& args, RepId result) {
  const RepId array = p == flow::Prim::ArrayNew ? result : args.empty() ? RepId() : args[0].rep;
  if (!array.valid() || reps_[array].kind != RepKind::Array) return;
  const RepId stored = reps_[array].b;
  if (p == flow::Prim::ArrayNew) args[1] = coerce(args[1], stored);
  if (p == flow::Prim::ArraySet || p == flow::Prim::ArraySwap) args[2] = coerce(args[2], stored);
  if (flow::prim_text(p).starts_with("array.atomic") && reps_[stored].kind == RepKind::Any) {
    fail(Code::B5, "an atomic operation on an array whose elements are boxed",
         "somewhere in this program an array of this element type is used where its element type is not known when compiling: know it there, or use another element type");
  }
}

}  // namespace bendc
