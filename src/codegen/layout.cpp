#include "codegen/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace bendc {

namespace {

// A datatype whose instances nest in ever larger arguments (`type P<-A: Type>: .. more: P<(A & A)>`) is cut off at this many; deeper ones are `any`.
constexpr uint32_t kMaxNesting = 6;
// Type expressions nested deeper than this are `any`: it bounds the recursion here and the size of keys.
constexpr uint32_t kMaxDepth = 400;

}  // namespace

RepTable::RepTable(core::Book& book, Interner& names, Machine& machine, flow::Module& module, ElementKinds boxed_elements)
    : book_(book), names_(names), m_(machine), module_(module), boxed_elements_(std::move(boxed_elements)) {
  for (size_t k = 0; k <= static_cast<size_t>(RepKind::Adt); ++k) {
    Rep rep;
    rep.kind = static_cast<RepKind>(k);
    basics_[k] = reps_.add(rep);
  }
  blank_ = names_.intern("_");
  any_type_ = opaque(m_.type());
  u32_data = base_data("U32");
  f32_data = base_data("F32");
  nat_data = base_data("Nat");
  string_data = base_data("String");
  char_data = base_data("Char");
  array_data = base_data("Array");
  op_data = base_data("IO.OP");
  list_data = base_data("List");
  sigma_data = base_data("Sigma");
  bool_data = base_data("Bool");
  cmp_data = base_data("Cmp");
  unit_data = base_data("Unit");
}

core::DataId RepTable::base_data(std::string_view name) {
  core::DataId id = book_.find_data(names_.intern(name));
  if (!id.valid() || !book_.module_is_stdlib[book_.datatypes[id].module]) return core::DataId();
  return id;
}

const Value* RepTable::opaque(const Value* type) { return m_.var(next_level_++, blank_, type); }

RepId RepTable::of(const Value* type) { return visit(type, 0).rep; }

RepId RepTable::fn(RepId param, RepId result) {
  const uint64_t key = (uint64_t{param.index} << 32) | result.index;
  auto it = fns_.find(key);
  if (it != fns_.end()) return it->second;
  Rep rep;
  rep.kind = RepKind::Fn;
  rep.a = param;
  rep.b = result;
  RepId id = reps_.add(rep);
  fns_.emplace(key, id);
  return id;
}

// Types are shared graphs, as trees they may be exponentially large: finished ones are remembered by their value.
RepTable::Found RepTable::visit(const Value* type, uint32_t depth) {
  if (auto it = cache_.find(type); it != cache_.end()) return {it->second};
  if (depth > kMaxDepth || m_.deep()) return {any()};
  const Value* head = m_.whnf(type);
  if (auto it = cache_.find(head); it != cache_.end()) {
    cache_.emplace(type, it->second);
    return {it->second};
  }
  const Found found = visit_head(head, depth);
  if (found.low == kClosed) {
    cache_.emplace(type, found.rep);
    cache_.emplace(head, found.rep);
  }
  return found;
}

RepTable::Found RepTable::visit_head(const Value* type, uint32_t depth) {
  switch (type->tag) {
    case Tag::Kind:
    case Tag::Quant: return {basic(type->tag == Tag::Quant ? RepKind::Quantity : RepKind::Type)};
    case Tag::Eql: return {basic(RepKind::Proof)};
    case Tag::All: {
      const Value* domain = m_.domain(type);
      const Value* codomain = m_.codomain(type, opaque(domain));
      if (m_.binder_quantity(type) == core::Quantity::None) return visit(codomain, depth + 1);
      Found param = visit(domain, depth + 1), result = visit(codomain, depth + 1);
      return {fn(param.rep, result.rep), std::min(param.low, result.low)};
    }
    case Tag::Adt: {
      const auto* adt = as<AdtValue>(type);
      const core::DataId data(adt->a);
      if (data == u32_data) return {basic(RepKind::U32)};
      if (data == f32_data) return {basic(RepKind::F32)};
      if (data == nat_data) return {basic(RepKind::Nat)};
      if (data == array_data) {
        Found element = visit(adt->args[0], depth + 1);
        auto it = arrays_.find(element.rep);
        if (it == arrays_.end()) {
          Rep rep;
          rep.kind = RepKind::Array;
          rep.a = element.rep;
          rep.b = boxed_elements_.contains({reps_[element.rep].kind, reps_[element.rep].data.index}) ? any() : element.rep;
          it = arrays_.emplace(element.rep, reps_.add(rep)).first;
        }
        return {it->second, element.low};
      }
      const core::Datatype& d = book_.datatypes[data];
      std::vector<StaticArg> args;
      const Env* env = m_.empty();
      for (uint32_t i = 0; i < adt->count && i < d.params.size(); ++i) {
        const Value* domain = m_.delay(d.params[i].type, env);
        // Every request of IO has one representation: the loop that runs effects knows no types.
        args.push_back(data == op_data ? unknown(domain) : canonical(domain, adt->args[i], depth + 1));
        env = m_.extend(env, args.back().value);
      }
      return visit_adt(data, std::move(args), depth);
    }
    case Tag::Thunk: case Tag::Forward: case Tag::Var: case Tag::App: case Tag::StuckMatch: case Tag::StuckRewrite: case Tag::Call:
    case Tag::Lam: case Tag::Mat: case Tag::MatLit: case Tag::Efq: case Tag::Qua: case Tag::Meet: case Tag::Ctr: case Tag::U32:
    case Tag::Nat: case Tag::F32: case Tag::Str: case Tag::Rfl: case Tag::Hole: case Tag::Error:
      return {any()};
  }
  return {any()};
}

RepTable::Found RepTable::visit_adt(core::DataId data, std::vector<StaticArg> args, uint32_t depth) {
  std::string key = std::to_string(data.index);
  for (const StaticArg& arg : args) key += "," + RepTable::key(arg);
  if (auto it = adts_.find(key); it != adts_.end()) {
    auto open = index_.find(it->second);
    return {it->second, open == index_.end() ? kClosed : open->second};
  }
  if (nesting_[data] >= kMaxNesting) return {any()};

  const core::Datatype& d = book_.datatypes[data];
  const Env* env = m_.empty();
  for (const StaticArg& arg : args) env = m_.extend(env, arg.value);
  Rep fresh;
  fresh.kind = RepKind::Adt;
  fresh.data = data;
  fresh.shareable = shareable(data, env);
  fresh.fields.resize(d.ctors.size());
  const RepId id = reps_.add(fresh);
  adts_.emplace(std::move(key), id);
  const uint32_t number = next_index_++;
  index_.emplace(id, number);
  stack_.push_back(id);
  ++nesting_[data];

  uint32_t low = number;
  bool self = false;
  for (uint32_t c = 0; c < d.ctors.size(); ++c) {
    const Env* field_env = env;
    for (const core::Telescope& field : book_.ctors[d.ctors[c]].fields) {
      const Value* type = m_.delay(field.type, field_env);
      if (field.quantity != core::Quantity::None) {
        Found found = visit(type, depth + 1);
        self |= found.low == number;
        low = std::min(low, found.low);
        reps_[id].fields[c].push_back(found.rep);
      }
      field_env = m_.extend(field_env, opaque(type));
    }
  }
  --nesting_[data];
  if (low < number) return {id, low};
  const bool cycle = self || stack_.back() != id;
  for (;;) {
    RepId member = stack_.back();
    stack_.pop_back();
    index_.erase(member);
    reps_[member].recursive = cycle;
    if (member == id) break;
  }
  return {id, kClosed};
}

bool RepTable::shareable(core::DataId data, const Env* env) {
  const core::Term& kind = book_.terms[book_.datatypes[data].kind];
  if (kind.kind != core::TermKind::Kind) return true;
  const Value* quantity = m_.whnf(m_.delay(core::TermId(kind.a), env));
  return quantity->tag != Tag::Qua || as<NumberValue>(quantity)->number == 2;
}

StaticArg RepTable::canonical(const Value* domain, const Value* arg) { return canonical(domain, arg, 0); }

StaticArg RepTable::canonical(const Value* domain, const Value* arg, uint32_t depth) {
  StaticArg out;
  domain = m_.whnf(domain);
  if (domain->tag == Tag::Quant) {
    const Value* q = m_.whnf(arg);
    out.kind = StaticArg::Kind::Quantity;
    if (q->tag == Tag::Qua) {
      out.quantity = static_cast<uint8_t>(as<NumberValue>(q)->number);
      out.value = q;
    } else {
      out.value = opaque(domain);
    }
    return out;
  }
  uint32_t arity = 0;
  const Value* kind = domain;
  const Value* type = arg;
  while (kind->tag == Tag::All && arity < 16) {
    const Value* x = opaque(m_.domain(kind));
    type = m_.apply(type, x);
    kind = m_.whnf(m_.codomain(kind, x));
    ++arity;
  }
  if (kind->tag != Tag::Kind) {
    out.value = opaque(domain);
    return out;
  }
  out.kind = arity == 0 ? StaticArg::Kind::Type : StaticArg::Kind::TypeFunction;
  out.arity = static_cast<uint8_t>(arity);
  out.rep = visit(type, depth).rep;
  const Value* shown = out.rep == any() ? any_type_ : type;
  out.value = arity == 0 ? shown : constant_function(arity, shown);
  return out;
}

StaticArg RepTable::unknown(const Value* domain) {
  const Value* type = m_.whnf(domain);
  const Value* arg = any_type_;
  uint32_t arity = 0;
  for (; type->tag == Tag::All && arity < 16; ++arity) type = m_.whnf(m_.codomain(type, opaque(m_.domain(type))));
  if (type->tag == Tag::Kind) return canonical(domain, arity == 0 ? arg : constant_function(arity, arg));
  return canonical(domain, opaque(domain));
}

std::string RepTable::key(const StaticArg& arg) {
  switch (arg.kind) {
    case StaticArg::Kind::Type: return fmt::format("t{}", arg.rep.index);
    case StaticArg::Kind::Quantity: return fmt::format("q{}", arg.quantity);
    case StaticArg::Kind::TypeFunction: return fmt::format("f{}:{}", arg.arity, arg.rep.index);
    case StaticArg::Kind::Opaque: return "?";
  }
  return "?";
}

// x1 => .. => xn => result
const Value* RepTable::constant_function(uint32_t arity, const Value* result) {
  while (constant_terms_.size() <= arity) {
    core::Term term;
    if (constant_terms_.empty()) {
      term.kind = core::TermKind::Var;
      term.a = 0;
    } else {
      term.kind = core::TermKind::Lam;
      term.name = blank_;
      term.a = constant_terms_.back().index;
    }
    constant_terms_.push_back(book_.add(term, Span{}));
  }
  return m_.eval(constant_terms_[arity], m_.extend(m_.empty(), result));
}

RepId RepTable::adt(core::DataId data) {
  const core::Datatype& d = book_.datatypes[data];
  std::vector<StaticArg> args;
  const Env* env = m_.empty();
  for (const core::Telescope& param : d.params) {
    args.push_back(unknown(m_.delay(param.type, env)));
    env = m_.extend(env, args.back().value);
  }
  return visit_adt(data, std::move(args), 0).rep;
}

bool RepTable::undecided(RepId root) const {
  std::vector<RepId> todo{root};
  std::unordered_set<RepId> seen;
  while (!todo.empty()) {
    const RepId id = todo.back();
    todo.pop_back();
    if (!seen.insert(id).second) continue;
    const Rep& rep = reps_[id];
    if (rep.kind == RepKind::Any) return true;
    if (rep.kind == RepKind::Adt && rep.data == op_data) continue;   // every request holds boxes
    if (rep.a.valid()) todo.push_back(rep.a);
    if (rep.b.valid()) todo.push_back(rep.b);
    for (const auto& fields : rep.fields) todo.insert(todo.end(), fields.begin(), fields.end());
  }
  return false;
}

RepId RepTable::uniform(RepId id) {
  if (reps_[id].uniform.valid()) return reps_[id].uniform;
  RepId out = id;
  switch (reps_[id].kind) {
    case RepKind::Fn: out = fn(any(), any()); break;
    case RepKind::Adt: out = adt(reps_[id].data); break;
    // An array keeps its element layout: its block is shared between handles and cannot be converted. Lowerer::coerce sees to it that both sides of
    // a box store the elements alike.
    case RepKind::Array:
    case RepKind::U32: case RepKind::F32: case RepKind::Nat: case RepKind::Quantity: case RepKind::Type: case RepKind::Proof: case RepKind::Any:
      break;
  }
  reps_[id].uniform = out;
  return out;
}

flow::TypeId RepTable::flow(RepId id) {
  if (reps_[id].flow.valid()) return reps_[id].flow;
  flow::Type type;
  switch (reps_[id].kind) {
    case RepKind::U32: type.kind = flow::TypeKind::U32; break;
    case RepKind::F32: type.kind = flow::TypeKind::F32; break;
    case RepKind::Nat: type.kind = flow::TypeKind::Nat; break;
    case RepKind::Quantity: type.kind = flow::TypeKind::Enum; type.count = 3; break;
    case RepKind::Type:
    case RepKind::Proof: type.kind = flow::TypeKind::Struct; break;
    case RepKind::Any: type.kind = flow::TypeKind::Any; break;
    case RepKind::Fn:
      type.kind = flow::TypeKind::Fn;
      type.parts.push_back(flow(reps_[id].a));
      type.parts.push_back(flow(reps_[id].b));
      break;
    case RepKind::Array:
      type.kind = flow::TypeKind::Array;
      type.parts.push_back(flow(reps_[id].b));
      break;
    case RepKind::Adt: {
      const bool boxed = reps_[id].recursive || reps_[id].data == op_data;
      if (!boxed) {
        const std::vector<std::vector<RepId>> fields = reps_[id].fields;
        std::vector<std::vector<flow::TypeId>> types(fields.size());
        bool enumeration = true;
        uint64_t words = 0;
        for (size_t c = 0; c < fields.size(); ++c) {
          uint64_t total = fields.size() > 1 ? 1 : 0;
          for (RepId field : fields[c]) {
            types[c].push_back(flow(field));
            total += flow::flat_words(module_, types[c].back());
          }
          words = std::max(words, total);
          enumeration &= fields[c].empty();
        }
        if (words <= flow::kMaxFlatWords) {
          Shape shape;
          if (fields.size() <= 1 && enumeration) {
            shape = Shape::Unit;
            type.kind = flow::TypeKind::Struct;
          } else if (enumeration) {
            shape = Shape::Enum;
            type.kind = flow::TypeKind::Enum;
            type.count = static_cast<uint32_t>(fields.size());
          } else if (fields.size() == 1 && fields[0].size() == 1) {
            reps_[id].shape = Shape::Newtype;
            reps_[id].flow = types[0][0];
            return types[0][0];
          } else if (fields.size() == 1) {
            shape = Shape::Struct;
            type.kind = flow::TypeKind::Struct;
            type.parts = types[0];
          } else {
            shape = Shape::Sum;
            type.kind = flow::TypeKind::Sum;
            type.variants = std::move(types);
          }
          reps_[id].shape = shape;
          break;
        }
      }
      type.kind = flow::TypeKind::Ref;
      reps_[id].shape = Shape::Ref;
      type.data = make_data(id);
      return reps_[id].flow;
    }
  }
  const flow::TypeId out = module_.intern(std::move(type));
  reps_[id].flow = out;
  return out;
}

flow::DataId RepTable::make_data(RepId id) {
  const core::DataId data = reps_[id].data;
  const core::Datatype& d = book_.datatypes[data];
  flow::Data fresh;
  const uint32_t number = data_counts_[data]++;
  fresh.name = core::display_name(names_.text(d.name));
  if (number != 0) fresh.name += fmt::format("~{}", number);
  fresh.shareable = reps_[id].shareable;
  const flow::DataId out = module_.datas.add(fresh);
  flow::Type ref;
  ref.kind = flow::TypeKind::Ref;
  ref.data = out;
  reps_[id].flow = module_.intern(ref);  // before the fields: they may mention it
  if (data == string_data) module_.string_data = out;
  if (data == op_data) module_.io_op_data = out;

  std::vector<flow::CtorLayout> ctors;
  const std::vector<std::vector<RepId>> fields = reps_[id].fields;
  for (size_t c = 0; c < fields.size(); ++c) {
    flow::CtorLayout ctor;
    ctor.name = core::display_name(names_.text(book_.ctors[d.ctors[c]].name));
    for (RepId field : fields[c]) ctor.fields.push_back(flow(field));
    if (ctor.fields.empty()) ctor.repr = flow::CtorRepr::Nullary;
    if (ctor.fields.size() == 1) {
      const flow::TypeKind kind = module_.types[ctor.fields[0]].kind;
      if (kind == flow::TypeKind::U32 || kind == flow::TypeKind::F32 || kind == flow::TypeKind::Enum) ctor.repr = flow::CtorRepr::Packed;
    }
    ctors.push_back(std::move(ctor));
  }
  if (data == op_data) {
    flow::CtorLayout request;
    request.name = "Request";
    request.fields.push_back(flow(any()));
    ctors.push_back(std::move(request));
  }
  module_.datas[out].ctors = std::move(ctors);
  return out;
}

}  // namespace bendc
