// Case trees. A chain of lambda-matches on one value becomes one Case or Switch; the goal of an arm is the goal of the match at
// the arm's constructor. Values are taken apart by shape (coerce.cpp), natives by arithmetic: Nat by its predecessor, U32 and F32 by
// literal tests or, when the program looks at their bits, through their word of bits; arrays by splitting.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "codegen/lowerer.h"

namespace bendc {

using core::Quantity;
using core::TermId;
using core::TermKind;

// The arms after the last constructor are never checked and never reached.
void Lowerer::match(TermId t, Scope s, const Value* goal, PendingList pending, Dest& dest) {
  const core::Term term = book_.terms[t];
  Pending whole = pending.back();
  pending.pop_back();
  goal = m_.whnf(goal);
  if (goal->tag != Tag::All) internal("a match whose type is no function type");
  if (term.kind == TermKind::Efq || book_.unchecked.contains(t)) return finish(dest, unreachable(dest.rep));
  const Value* domain = m_.whnf(m_.domain(goal));
  if (domain->tag != Tag::Adt) internal("a match on a value of no datatype");
  if (!whole.live) internal("a match on an erased value");
  const auto* adt = as<AdtValue>(domain);
  const core::DataId data(adt->a);
  const Operand op = coerce(whole.op, reps_.of(domain));
  whole.op = op;

  // Branches that meet again: the rest of the code is a join point.
  flow::NodeId join_node;
  Dest inner = dest;
  const bool branches = !(book_.datatypes[data].ctors.size() == 1 && term.kind == TermKind::Mat);
  if (dest.kind == Dest::Kind::Value && branches) {
    flow::Node join;
    join.kind = flow::NodeKind::Join;
    join.join = out_.new_join();
    const flow::VarId result = new_var(reps_.flow(dest.rep), "r");
    join.vars = out_.var_lists.add(std::span(&result, 1));
    inner = {Dest::Kind::Jump, dest.rep, join.join, {}};
    dest.result = {result, dest.rep};
    join_node = emit(std::move(join));
  }
  if (data == reps_.nat_data) {
    match_nat(t, s, goal, adt, op, whole, pending, inner);
  } else if (data == reps_.u32_data || data == reps_.f32_data) {
    match_bits(t, s, goal, adt, op, whole, pending, inner);
  } else if (data == reps_.array_data) {
    match_array(t, s, goal, adt, op, whole, pending, inner);
  } else {
    match_data(t, s, goal, adt, op, whole, pending, inner);
  }
  if (join_node.valid()) {
    b_->hole = {Hole::Slot::Body, {}, join_node, 0};
  } else if (dest.kind == Dest::Kind::Value) {
    dest = inner;
  }
}

// One arm: its fields wait in front of the other arguments.
void Lowerer::arm(core::CtorId ctor, TermId hit, Scope s, const Value* goal, const AdtValue* adt, std::span<const Operand> fields,
                  const PendingList& pending, Dest& dest) {
  const Value* arm_goal = m_.arm_type(ctor, adt, goal);
  const std::vector<core::Telescope>& declared = book_.ctors[ctor].fields;
  std::vector<Pending> args;
  const Value* type = arm_goal;
  uint32_t next = 0;
  for (const core::Telescope& field : declared) {
    type = m_.whnf(type);
    const Value* value = reps_.opaque(m_.domain(type));
    if (field.quantity == Quantity::None) {
      args.push_back({false, {}, value});
    } else {
      args.push_back({true, fields[next++], value});
    }
    type = m_.codomain(type, value);
  }
  PendingList all = pending;
  all.insert(all.end(), args.rbegin(), args.rend());
  lower(hit, s, arm_goal, std::move(all), dest);
}

// What is left of a chain: a function of the whole value.
void Lowerer::miss(TermId t, Scope s, const Value* goal, const AdtValue*, const Pending& whole, const PendingList& pending, Dest& dest) {
  PendingList all = pending;
  all.push_back(whole);
  if (book_.unchecked.contains(t)) return finish(dest, unreachable(dest.rep));
  lower(t, s, goal, std::move(all), dest);
}

void Lowerer::match_data(TermId t, Scope s, const Value* goal, const AdtValue* adt, Operand op, const Pending& whole, const PendingList& pending,
                         Dest& dest) {
  const core::DataId data(adt->a);
  // A match may lie in each arm of another over the same constructors: nothing here takes time by their number.
  const size_t total = book_.datatypes[data].ctors.size();
  size_t left = total - adt->removed.size();
  std::unordered_set<uint32_t> covered;
  std::vector<std::pair<core::CtorId, TermId>> arms;
  while (left > 0 && book_.terms[t].kind == TermKind::Mat && !book_.unchecked.contains(t)) {
    const core::Term& term = book_.terms[t];
    const core::CtorId ctor(term.a);
    const uint32_t index = book_.ctors[ctor].index;
    if (!Machine::is_removed(adt, index) && covered.insert(index).second) {
      arms.emplace_back(ctor, TermId(term.b));
      --left;
    }
    t = TermId(term.c);
  }
  const bool rest = left > 0;
  auto body = [&](core::CtorId ctor, TermId hit) {
    const uint32_t index = book_.ctors[ctor].index;
    std::vector<Operand> fields;
    for (const core::Telescope& field : std::vector(book_.ctors[ctor].fields))
      if (field.quantity != Quantity::None) fields.push_back(project(op, index, static_cast<uint32_t>(fields.size()), std::string(names_.text(field.name))));
    arm(ctor, hit, s, goal, adt, fields, pending, dest);
  };
  if (arms.size() == 1 && !rest) return body(arms[0].first, arms[0].second);

  flow::Node node;
  node.kind = flow::NodeKind::Case;
  node.subject = own(op.var);
  for (const auto& [ctor, hit] : arms) node.arms.push_back({book_.ctors[ctor].index, {}});
  const flow::NodeId id = emit(std::move(node));
  for (uint32_t i = 0; i < arms.size(); ++i) {
    b_->hole = {Hole::Slot::Arm, {}, id, i};
    body(arms[i].first, arms[i].second);
  }
  const size_t in_flow = data == reps_.op_data ? total + 1 : total;   // the hidden request
  if (rest) {
    b_->hole = {Hole::Slot::Other, {}, id, 0};
    miss(t, s, goal, adt, whole, pending, dest);
  } else if (arms.size() < in_flow) {
    b_->hole = {Hole::Slot::Other, {}, id, 0};
    abort(2);
  }
}

void Lowerer::match_nat(TermId t, Scope s, const Value* goal, const AdtValue* adt, Operand op, const Pending& whole, const PendingList& pending,
                        Dest& dest) {
  const core::CtorId zero = m_.known().zero, succ = m_.known().succ;
  const uint32_t zero_index = book_.ctors[zero].index, succ_index = book_.ctors[succ].index;
  std::vector<std::pair<uint64_t, TermId>> literals;
  std::unordered_set<uint64_t> listed;
  TermId zero_hit, succ_hit;
  bool zero_done = Machine::is_removed(adt, zero_index), succ_done = Machine::is_removed(adt, succ_index);
  const bool no_zero = zero_done;
  while (!(zero_done && succ_done) && !book_.unchecked.contains(t)) {
    const core::Term& term = book_.terms[t];
    if (term.kind == TermKind::MatLit) {
      const uint64_t value = book_.terms[TermId(term.a)].a;
      const bool taken = succ_done ? value != 0 || zero_done : value == 0 && zero_done;
      if (!taken && listed.insert(value).second) literals.emplace_back(value, TermId(term.b));
      if (value == 0) zero_done = true;
    } else if (term.kind == TermKind::Mat) {
      const bool is_zero = core::CtorId(term.a) == zero;
      bool& done = is_zero ? zero_done : succ_done;
      if (!done) (is_zero ? zero_hit : succ_hit) = TermId(term.b);
      done = true;
    } else {
      break;
    }
    t = TermId(term.c);
  }
  const bool rest = !(zero_done && succ_done);
  auto succ_arm = [&] {
    const flow::VarId pred = prim(flow::Prim::NatPred, std::span(&op.var, 1), reps_.flow(op.rep), "p");
    projections_[pred] = {op.var, op.rep, succ_index, 0};
    const Operand field{pred, op.rep};
    arm(succ, succ_hit, s, goal, adt, std::span(&field, 1), pending, dest);
  };
  if (literals.empty() && !rest && no_zero) return succ_arm();

  flow::Node node;
  node.kind = flow::NodeKind::Switch;
  node.subject = own(op.var);
  for (const auto& [value, hit] : literals) node.arms.push_back({value, {}});
  // A zero that no literal takes: its own arm, unless what is left handles it together with the rest.
  const bool literal_zero = listed.count(0) > 0;
  const bool zero_arm = !literal_zero && !no_zero && (zero_hit.valid() || succ_hit.valid());
  if (zero_arm) node.arms.push_back({0, {}});
  const flow::NodeId id = emit(std::move(node));
  for (uint32_t i = 0; i < literals.size(); ++i) {
    b_->hole = {Hole::Slot::Arm, {}, id, i};
    const Value* value = m_.number(Tag::Nat, literals[i].first);
    lower(literals[i].second, s, m_.codomain(goal, value), pending, dest);
  }
  if (zero_arm) {
    b_->hole = {Hole::Slot::Arm, {}, id, static_cast<uint32_t>(literals.size())};
    if (zero_hit.valid()) {
      arm(zero, zero_hit, s, goal, adt, {}, pending, dest);
    } else {
      miss(t, s, goal, adt, whole, pending, dest);
    }
  }
  b_->hole = {Hole::Slot::Other, {}, id, 0};
  if (succ_hit.valid()) {
    succ_arm();
  } else {
    miss(t, s, goal, adt, whole, pending, dest);
  }
}

void Lowerer::match_bits(TermId t, Scope s, const Value* goal, const AdtValue* adt, Operand op, const Pending& whole, const PendingList& pending,
                         Dest& dest) {
  const bool is_float = core::DataId(adt->a) == reps_.f32_data;
  const flow::TypeId u32 = basic(flow::TypeKind::U32);
  auto bits = [&] { return is_float ? prim(flow::Prim::F32Bits, std::span(&op.var, 1), u32) : op.var; };
  if (book_.terms[t].kind == TermKind::Mat) {
    // U32{word}: the program looks at the bits.
    const core::Term term = book_.terms[t];
    const core::CtorId ctor(term.a);
    const Value* arm_goal = m_.whnf(m_.arm_type(ctor, adt, goal));
    const Operand word = word_of_bits(bits(), reps_.of(m_.domain(arm_goal)));
    projections_[word.var] = {op.var, op.rep, 0, 0};
    return arm(ctor, TermId(term.b), s, goal, adt, std::span(&word, 1), pending, dest);
  }
  std::vector<std::pair<uint32_t, TermId>> literals;
  std::unordered_set<uint32_t> listed;
  while (book_.terms[t].kind == TermKind::MatLit && !book_.unchecked.contains(t)) {
    const core::Term& term = book_.terms[t];
    const uint32_t value = book_.terms[TermId(term.a)].a;
    if (listed.insert(value).second) literals.emplace_back(value, TermId(term.b));
    t = TermId(term.c);
  }
  flow::Node node;
  node.kind = flow::NodeKind::Switch;
  node.subject = own(bits());
  for (const auto& [value, hit] : literals) node.arms.push_back({value, {}});
  const flow::NodeId id = emit(std::move(node));
  for (uint32_t i = 0; i < literals.size(); ++i) {
    b_->hole = {Hole::Slot::Arm, {}, id, i};
    const Value* value = m_.number(is_float ? Tag::F32 : Tag::U32, literals[i].first);
    lower(literals[i].second, s, m_.codomain(goal, value), pending, dest);
  }
  b_->hole = {Hole::Slot::Other, {}, id, 0};
  miss(t, s, goal, adt, whole, pending, dest);
}

void Lowerer::match_array(TermId t, Scope s, const Value* goal, const AdtValue* adt, Operand op, const Pending& whole, const PendingList& pending,
                          Dest& dest) {
  const std::vector<core::CtorId> ctors = book_.datatypes[reps_.array_data].ctors;   // ALeaf, ANode
  TermId hits[2];
  bool covered[2] = {Machine::is_removed(adt, 0), Machine::is_removed(adt, 1)};
  while (!(covered[0] && covered[1]) && book_.terms[t].kind == TermKind::Mat && !book_.unchecked.contains(t)) {
    const core::Term& term = book_.terms[t];
    const uint32_t index = book_.ctors[core::CtorId(term.a)].index;
    if (!covered[index]) hits[index] = TermId(term.b);
    covered[index] = true;
    t = TermId(term.c);
  }
  const flow::TypeId type = reps_.flow(op.rep);
  auto leaf = [&] {
    const RepId stored = reps_[op.rep].b;
    const Operand field = coerce({prim(flow::Prim::ArrayTake, std::span(&op.var, 1), reps_.flow(stored), "v"), stored}, reps_[op.rep].a);
    arm(ctors[0], hits[0], s, goal, adt, std::span(&field, 1), pending, dest);
  };
  auto split = [&] {
    const flow::VarId halves = prim(flow::Prim::ArraySplit, std::span(&op.var, 1), struct_type({type, type}), "halves");
    const Operand fields[] = {{expr(flow::ExprKind::Get, std::span(&halves, 1), type, 0, 0, "xs"), op.rep},
                              {expr(flow::ExprKind::Get, std::span(&halves, 1), type, 1, 0, "ys"), op.rep}};
    arm(ctors[1], hits[1], s, goal, adt, fields, pending, dest);
  };
  const flow::VarId is_leaf = prim(flow::Prim::ArrayIsLeaf, std::span(&op.var, 1), bool_type(), "leaf");
  flow::Node node;
  node.kind = flow::NodeKind::Case;
  node.subject = own(is_leaf);
  node.arms = {{1, {}}, {0, {}}};
  const flow::NodeId id = emit(std::move(node));
  for (uint32_t i = 0; i < 2; ++i) {
    b_->hole = {Hole::Slot::Arm, {}, id, i};
    if (hits[i].valid()) {
      i == 0 ? leaf() : split();
    } else if (covered[i]) {
      abort(2);
    } else {
      miss(t, s, goal, adt, whole, pending, dest);
    }
  }
}

}  // namespace bendc
