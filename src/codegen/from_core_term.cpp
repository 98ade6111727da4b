// Terms: the walk itself, literals and constructors.
//
// `lower` takes a term with the arguments that wait for it. A lambda or match consumes them in order; the goal is the function type that
// the checker held the term against, so a match arm sees the types that its constructor decides.
#include <fmt/format.h>

#include "codegen/lowerer.h"
#include "codegen/prim_types.h"

namespace bendc {

using core::Quantity;
using core::TermId;
using core::TermKind;

namespace {

constexpr size_t kChunk = 256;   // constructors of one chain in one function

}  // namespace

void Lowerer::lower(TermId t, Scope s, const Value* goal, PendingList pending, Dest& dest) {
  for (;;) {
    stop_at_limit();
    const core::Term term = book_.terms[t];
    if (const Span span = book_.span(t); span.valid()) span_ = span;
    switch (term.kind) {
      case TermKind::Lam: {
        goal = m_.whnf(goal);
        if (goal->tag != Tag::All) internal("a lambda whose type is no function type");
        const Value* domain = m_.domain(goal);
        const bool erased = m_.binder_quantity(goal) == Quantity::None;
        if (erased && (pending.empty() || pending.back().live)) {
          // The binder has no run-time form: the body is the value.
          const Value* x = reps_.opaque(domain);
          s = bind_erased(s, x, domain);
          goal = m_.codomain(goal, x);
        } else if (pending.empty()) {
          return finish(dest, lambda(t, s, goal));
        } else {
          const Pending arg = pending.back();
          pending.pop_back();
          s = arg.live ? bind_live(s, arg.op, arg.value, domain) : bind_erased(s, arg.value, domain);
          if (arg.live && out_.vars[arg.op.var].name == "x" && term.name.valid()) out_.vars[arg.op.var].name = names_.text(term.name);
          goal = m_.codomain(goal, arg.value);
        }
        t = TermId(term.a);
        continue;
      }
      case TermKind::Mat:
      case TermKind::MatLit:
      case TermKind::Efq:
        if (pending.empty()) return finish(dest, lambda(t, s, goal));
        return match(t, s, goal, std::move(pending), dest);
      case TermKind::Let:
        lower_let(term, s);
        t = TermId(term.c);
        continue;
      case TermKind::Ann:
        goal = m_.delay(TermId(term.b), s.env);
        t = TermId(term.a);
        continue;
      case TermKind::Rwt: {
        // A proof has no run-time content, so it is not computed; only the type that it changes is.
        const Value* evidence = type_of(TermId(term.a), s);
        evidence = evidence == nullptr ? nullptr : m_.whnf(evidence);
        if (evidence != nullptr && evidence->tag == Tag::Eql) {
          const Value* args[] = {as<EqlValue>(evidence)->left, m_.rfl()};
          goal = m_.apply(m_.delay(TermId(term.b), s.env), args, 2);
        }
        t = TermId(term.c);
        continue;
      }
      case TermKind::Ctr: return finish(dest, construct(t, s, goal));
      case TermKind::U32:
      case TermKind::Nat:
      case TermKind::F32:
      case TermKind::Str: return finish(dest, literal(t, goal));
      case TermKind::Rfl: return finish(dest, unit(RepKind::Proof));
      case TermKind::Kind:
      case TermKind::Quant:
      case TermKind::All:
      case TermKind::Adt:
      case TermKind::Eql: return finish(dest, unit(RepKind::Type));
      case TermKind::Qua: return finish(dest, {constant(term.a, reps_.flow(reps_.basic(RepKind::Quantity))), reps_.basic(RepKind::Quantity)});
      case TermKind::Meet: return finish(dest, meet(term, s));
      case TermKind::Hole:
      case TermKind::Error: return finish(dest, unreachable(dest.rep));
      case TermKind::Var:
      case TermKind::Ref:
      case TermKind::App: return spine(t, s, std::move(pending), &dest, nullptr);
    }
    internal("an unknown kind of term");
  }
}

Operand Lowerer::check(TermId term, Scope s, const Value* goal) {
  const Span span = span_;
  Dest dest;
  dest.rep = reps_.of(goal);
  lower(term, s, goal, {}, dest);
  span_ = span;
  return dest.result;
}

const Value* Lowerer::type_of(TermId t, Scope s) {
  const core::Term& term = book_.terms[t];
  switch (term.kind) {
    case TermKind::Var: return lookup(s, term.a)->type;
    case TermKind::Ref: return m_.all_of_def(core::DefId(term.a));
    case TermKind::Ann: return m_.delay(TermId(term.b), s.env);
    case TermKind::App: {
      uint32_t first = 0;
      const Value* type;
      if (auto it = book_.instance_calls.find(t); it != book_.instance_calls.end()) {
        type = m_.all_of_def(it->second);
        first = book_.defs[book_.defs[it->second].instance_of].templates;
      } else {
        if (m_.deep()) return nullptr;
        type = type_of(TermId(term.a), s);
      }
      for (uint32_t i = first; i < term.c && type != nullptr; ++i) {
        type = m_.whnf(type);
        if (type->tag != Tag::All) return nullptr;
        type = m_.codomain(type, m_.delay(book_.list(term.b, term.c)[i], s.env));
      }
      return type;
    }
    case TermKind::Kind: case TermKind::All: case TermKind::Adt: case TermKind::Eql: case TermKind::Quant: return m_.type();
    case TermKind::Qua: case TermKind::Meet: return m_.quant();
    case TermKind::Let: case TermKind::Lam: case TermKind::Ctr: case TermKind::U32: case TermKind::Nat: case TermKind::F32: case TermKind::Str:
    case TermKind::Mat: case TermKind::MatLit: case TermKind::Efq: case TermKind::Rfl: case TermKind::Rwt: case TermKind::Hole: case TermKind::Error:
      return nullptr;
  }
  return nullptr;
}

// --- Values -----------------------------------------------------------------------------------------------------------------------

Operand Lowerer::literal(TermId t, const Value* goal) {
  const core::Term term = book_.terms[t];
  goal = m_.whnf(goal);
  const core::DataId data = goal->tag == Tag::Adt ? core::DataId(goal->a) : core::DataId();
  if (term.kind == TermKind::Str) {
    const RepId rep = reps_.adt(reps_.string_data);
    const flow::TypeId type = reps_.flow(rep);
    return {expr(flow::ExprKind::Str, {}, type, string_index(book_.strings[term.a]), 0, "s"), rep};
  }
  RepKind kind = RepKind::U32;
  core::DataId own = reps_.u32_data;
  if (term.kind == TermKind::Nat) {
    kind = RepKind::Nat;
    own = reps_.nat_data;
  } else if (term.kind == TermKind::F32) {
    kind = RepKind::F32;
    own = reps_.f32_data;
  }
  if (data.valid() && data != own) {
    fail(Code::B5, fmt::format("a literal stands for a value of `{}` here, which is not Base's type of numbers", name_of(book_.datatypes[data].name)), "write its constructors");
    return unreachable(reps_.of(goal));
  }
  return {constant(term.a, reps_.flow(reps_.basic(kind))), reps_.basic(kind)};
}

// A constructor. Its last field is very often a constructor again (lists, strings of successors), so that chain is a loop.
Operand Lowerer::construct(TermId t, Scope s, const Value* goal) {
  struct Layer {
    const Value* adt;
    core::CtorId ctor;
    std::vector<Operand> fields;     // evaluated ones
    Span span;
  };
  std::vector<Layer> layers;
  Operand value;
  for (;;) {
    stop_at_limit();
    const core::Term term = book_.terms[t];
    goal = m_.whnf(goal);
    if (layers.size() == kChunk && term.kind == TermKind::Ctr) {
      value = construct_apart(t, s, goal);
      break;
    }
    if (term.kind != TermKind::Ctr || goal->tag != Tag::Adt) {
      if (term.kind == TermKind::Ctr) internal("a constructor whose type is no datatype");
      value = check(t, s, goal);
      break;
    }
    const core::CtorId ctor(term.a);
    const auto* adt = as<AdtValue>(goal);
    Layer layer{goal, ctor, {}, book_.span(t)};
    const std::vector<core::Telescope> fields = book_.ctors[ctor].fields;
    int last_live = -1;
    for (size_t i = 0; i < fields.size(); ++i)
      if (fields[i].quantity != Quantity::None) last_live = static_cast<int>(i);
    const Env* env = m_.env_of(adt);
    const Value* last_type = nullptr;
    TermId last_term;
    for (size_t i = 0; i < fields.size(); ++i) {
      const TermId field = book_.list(term.b, term.c)[i];
      const Value* type = m_.delay(fields[i].type, env);
      if (static_cast<int>(i) == last_live) {
        last_type = type;
        last_term = field;
      } else if (fields[i].quantity != Quantity::None) {
        layer.fields.push_back(check(field, s, type));
      }
      env = m_.extend(env, m_.delay(field, s.env));
    }
    layers.push_back(std::move(layer));
    if (last_live < 0) break;
    t = last_term;
    goal = last_type;
  }
  const Span span = span_;
  for (bool innermost = true; !layers.empty(); innermost = false) {
    Layer layer = std::move(layers.back());
    layers.pop_back();
    if (layer.span.valid()) span_ = layer.span;
    if (!innermost || value.var.valid()) layer.fields.push_back(value);
    const core::DataId data(layer.adt->a);
    const uint32_t index = book_.ctors[layer.ctor].index;
    if (data == reps_.nat_data) {
      const RepId rep = reps_.basic(RepKind::Nat);
      if (layer.fields.empty()) {
        value = {constant(0, reps_.flow(rep)), rep};
      } else if (auto same = unchanged(rep, index, layer.fields)) {
        value = *same;
      } else {
        value = {prim(flow::Prim::NatSucc, {layer.fields[0].var}, reps_.flow(rep)), rep};
      }
    } else if (data == reps_.u32_data) {
      value = {bits_of_word(layer.fields[0]), reps_.basic(RepKind::U32)};
    } else if (data == reps_.f32_data) {
      const RepId rep = reps_.basic(RepKind::F32);
      value = {prim(flow::Prim::F32FromBits, {bits_of_word(layer.fields[0])}, reps_.flow(rep)), rep};
    } else if (data == reps_.array_data) {
      const RepId rep = reps_.of(layer.adt);
      if (layer.fields.size() == 1) {
        value = {prim(flow::Prim::ArrayLeaf, {coerce(layer.fields[0], reps_[rep].b).var}, reps_.flow(rep)), rep};
      } else {
        value = {prim(flow::Prim::ArrayNode, {coerce(layer.fields[0], rep).var, coerce(layer.fields[1], rep).var}, reps_.flow(rep)), rep};
      }
    } else {
      value = build(reps_.of(layer.adt), index, layer.fields);
    }
  }
  span_ = span;
  return value;
}

// The rest of a long chain in a function of its own: code generation takes more than linear time in the size of a function (a list of
// 20,000 literals: 31 s in one piece).
Operand Lowerer::construct_apart(TermId t, Scope s, const Value* goal) {
  const RepId rep = reps_.of(goal);
  Builder* outer = b_;
  Builder* root = outer;
  while (root->outer != nullptr) root = root->outer;
  const flow::FuncId func = new_func(fmt::format("{}.part{}", out_.funcs[root->func].name, root->lambdas++), span_);
  set_signature(func, {}, rep);
  Builder builder;
  open(builder, func, outer);
  ret(coerce(construct(t, s, goal), rep).var);
  close(builder);
  std::vector<flow::VarId> captured, params;
  for (const auto& [from, mine] : builder.captures) {
    captured.push_back(from);
    params.push_back(mine);
  }
  out_.funcs[func].params = std::move(params);
  return {call(func, captured, reps_.flow(rep)), rep};
}

// q <&> r on quantities known at run time: &2 gives r; &0 gives &0; &1 gives &0 for &0, else &1.
Operand Lowerer::meet(const core::Term& term, Scope s) {
  const RepId rep = reps_.basic(RepKind::Quantity);
  const Operand left = check(TermId(term.a), s, m_.quant()), right = check(TermId(term.b), s, m_.quant());
  const flow::TypeId type = reps_.flow(rep);
  flow::Node join;
  join.kind = flow::NodeKind::Join;
  join.join = out_.new_join();
  const flow::VarId result = new_var(type, "q");
  join.vars = out_.var_lists.add(std::span(&result, 1));
  const flow::JoinId id = join.join;
  const flow::NodeId join_node = emit(std::move(join));
  auto jump = [&](flow::VarId var) {
    Dest dest{Dest::Kind::Jump, rep, id, {}};
    finish(dest, {var, rep});
  };
  auto branch = [&](flow::VarId subject) {
    flow::Node node;
    node.kind = flow::NodeKind::Case;
    node.subject = own(subject);
    node.arms = {{0, {}}, {1, {}}, {2, {}}};
    return emit(std::move(node));
  };
  const flow::NodeId outer = branch(left.var);
  b_->hole = {Hole::Slot::Arm, {}, outer, 0};
  jump(constant(0, type));
  b_->hole = {Hole::Slot::Arm, {}, outer, 2};
  jump(right.var);
  b_->hole = {Hole::Slot::Arm, {}, outer, 1};
  const flow::NodeId inner = branch(right.var);
  for (uint32_t i = 0; i < 3; ++i) {
    b_->hole = {Hole::Slot::Arm, {}, inner, i};
    jump(constant(i == 0 ? 0 : 1, type));
  }
  b_->hole = {Hole::Slot::Body, {}, join_node, 0};
  return {result, rep};
}

}  // namespace bendc
