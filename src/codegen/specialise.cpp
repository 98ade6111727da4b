// Instances: a def compiles once for every combination of representations of its erased arguments. Calls with other combinations make
// new instances until a def has kMaxInstances, or until kMaxChain of its instances have called for one another (polymorphic recursion: their types
// grow, and code with them: pairs of pairs took 380,000 lines of LLVM's IR for a def of two lines). From then on its type arguments are taken as
// unknown (`any`), which every call can reach by converting values.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/lowerer.h"
#include "codegen/prim_types.h"

namespace bendc {

using core::Quantity;
using core::TermId;
using core::TermKind;

namespace {

constexpr uint32_t kMaxInstances = 64;
constexpr uint32_t kMaxChain = 4;
constexpr uint32_t kChainReach = 256;   // callers looked at; longer cycles of defs end by kMaxInstances

}  // namespace

std::optional<flow::Prim> Lowerer::prim_of(core::DefId def) const {
  auto it = prims_.find(def);
  if (it == prims_.end()) return std::nullopt;
  return it->second;
}

// A def takes its parameters and, beyond them, those of the lambdas that its body starts with: `def adder(k) -> U32 -> U32: x => ..` is called
// with two arguments at once where both are there. A foreign def takes its continuation too: its type is an IO.
uint32_t Lowerer::arity_of(core::DefId id) {
  if (auto it = arities_.find(id); it != arities_.end()) return it->second;
  const core::Def& def = book_.defs[id];
  uint32_t arity = def.arity;
  if (def.foreign) {
    arity += 2;
  } else if (def.body.valid()) {
    uint32_t lambdas = 0;
    TermId t = def.body;
    while (book_.terms[t].kind == TermKind::Lam) {
      ++lambdas;
      t = TermId(book_.terms[t].a);
    }
    const bool tree = book_.terms[t].kind == TermKind::Mat || book_.terms[t].kind == TermKind::MatLit || book_.terms[t].kind == TermKind::Efq;
    arity = std::max(arity, lambdas + (tree ? 1 : 0));
  } else if (prim_of(id).has_value()) {
    arity = 0;
    const Value* type = m_.whnf(m_.all_of_def(id));
    for (; type->tag == Tag::All; ++arity) type = m_.whnf(m_.codomain(type, reps_.opaque(m_.domain(type))));
  }
  arities_.emplace(id, arity);
  return arity;
}

bool Lowerer::grows(core::DefId id) const {
  uint32_t chain = 0;
  for (uint32_t at = lowering_, steps = 0; at != UINT32_MAX && steps < kChainReach; at = callables_[at].asked_by, ++steps)
    if (callables_[at].def == id && ++chain == kMaxChain) return true;
  return false;
}

uint32_t Lowerer::instance(core::DefId id, std::vector<StaticArg> statics) {
  const core::Def& def = book_.defs[id];
  const uint32_t arity = arity_of(id);
  auto key_of = [&] {
    std::string key = std::to_string(id.index);
    for (const StaticArg& arg : statics) key += "," + RepTable::key(arg);
    return key;
  };
  // A foreign def has one form: the runtime's answers carry boxed values where the type is a parameter.
  std::string key = key_of();
  if (auto it = instances_.find(key); it != instances_.end() && !def.foreign) return it->second;
  const bool uniform = def.foreign || instance_counts_[id] >= kMaxInstances || grows(id);

  Callable callable;
  callable.def = id;
  callable.asked_by = lowering_;
  std::vector<const Value*> values;
  std::vector<Name> param_names;
  const Value* type = m_.all_of_def(id);
  uint32_t next = 0;
  for (uint32_t i = 0; i < arity; ++i) {
    type = m_.whnf(type);
    if (type->tag != Tag::All) internal(fmt::format("`{}` has fewer parameters than its arity", name_of(def.name)));
    const Value* domain = m_.domain(type);
    if (m_.binder_quantity(type) == Quantity::None) {
      StaticArg arg = next < statics.size() ? statics[next] : reps_.unknown(domain);
      if (uniform && arg.kind != StaticArg::Kind::Quantity) arg = reps_.unknown(domain);
      if (next < statics.size()) statics[next] = arg;
      ++next;
      values.push_back(arg.value);
    } else {
      callable.params.push_back(reps_.of(domain));
      param_names.push_back(m_.binder_name(type));
      values.push_back(nullptr);
    }
    type = m_.codomain(type, values.back() != nullptr ? values.back() : reps_.opaque(domain));
  }
  if (uniform) {
    key = key_of();
    if (auto it = instances_.find(key); it != instances_.end()) return it->second;
  }
  callable.result = reps_.of(type);
  ++instance_counts_[id];
  callable.func = new_func(name_of(def.name), def.span);
  set_signature(callable.func, callable.params, callable.result);
  for (size_t i = 0; i < param_names.size(); ++i)
    if (param_names[i].valid() && names_.text(param_names[i]) != "_") out_.vars[out_.funcs[callable.func].params[i]].name = names_.text(param_names[i]);
  const uint32_t index = static_cast<uint32_t>(callables_.size());
  callables_.push_back(callable);
  instances_.emplace(std::move(key), index);
  work_.push_back({id, index, std::move(values)});
  return index;
}

void Lowerer::lower_instance_bodies() {
  while (!work_.empty()) {
    const Work work = std::move(work_.front());
    work_.pop_front();
    const Callable callable = callables_[work.callable];
    const core::Def def = book_.defs[work.def];
    lowering_ = work.callable;
    span_ = def.span;
    Builder builder;
    open(builder, callable.func, nullptr);
    std::vector<Operand> params;
    for (size_t i = 0; i < callable.params.size(); ++i) params.push_back({out_.funcs[callable.func].params[i], callable.params[i]});
    if (const std::optional<flow::Prim> native = prim_of(work.def); native.has_value()) {
      ret(coerce(run_prim(*native, params, callable.result), callable.result).var);
    } else if (def.foreign) {
      lower_foreign_body(work.def, callable, params);
    } else {
      PendingList pending;
      size_t next = 0;
      for (const Value* value : work.statics) {
        if (value != nullptr) {
          pending.push_back({false, {}, value});
        } else {
          pending.push_back({true, params[next++], nullptr});
        }
      }
      // The types of live parameters may mention the ones before them.
      const Value* type = m_.all_of_def(work.def);
      for (Pending& arg : pending) {
        type = m_.whnf(type);
        if (type->tag != Tag::All) break;
        if (arg.live) arg.value = reps_.opaque(m_.domain(type));
        type = m_.codomain(type, arg.value);
      }
      std::reverse(pending.begin(), pending.end());
      Dest dest;
      dest.kind = Dest::Kind::Return;
      dest.rep = callable.result;
      lower(def.body, empty_scope(), m_.all_of_def(work.def), std::move(pending), dest);
    }
    close(builder);
  }
  lowering_ = UINT32_MAX;
}

}  // namespace bendc
