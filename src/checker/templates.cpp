// Template instances (language.md 4.4): a live call with closed `~` arguments becomes a call of a def of its own, keyed by the arguments.
// A `~` argument that is neither a type nor a bare name becomes a small def as well, so that it can be applied and mentioned many times.
// Example: `map(~U32, ~U32, ~(x => x + 1), xs)` mints `map~0.f : U32 -> U32` and `map~0(xs) : List<U32>`.
#include <fmt/format.h>

#include <utility>

#include "checker/typecheck.h"

namespace bendc {

using core::DefId;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

namespace {

constexpr uint32_t kNesting = 64;
constexpr size_t kKeyBytes = 32768;
// Of a program, in all: 64 levels that each ask for two others are no end either. A second of checking.
constexpr size_t kInstances = 100'000;
// A local of the caller met in a `~` argument; checked in the empty context it is out of scope, and reported by name (C10).
constexpr uint32_t kLocal = 0x80000000u;

void put(std::string& out, uint32_t word) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(word >> (8 * i)));
}

}  // namespace

// The argument's syntax as bytes, levels counted from the argument itself. False: longer than a key may be.
bool Checker::key_of(TermId id, uint32_t outer, std::string& out) {
  if (out.size() > kKeyBytes || m_.deep()) return false;
  const Term t = term(id);
  out.push_back(static_cast<char>(t.kind));
  auto items = [&](uint32_t offset, uint32_t count) {
    put(out, count);
    for (uint32_t i = 0; i < count; ++i) {
      if (!key_of(item(offset, i), outer, out)) return false;
    }
    return true;
  };
  switch (t.kind) {
    case TermKind::Var:
      put(out, t.a >= outer ? t.a - outer : kLocal | t.a);
      return true;
    case TermKind::Ref: case TermKind::Qua: case TermKind::U32: case TermKind::F32:
      put(out, t.a);
      return true;
    case TermKind::Nat:
      put(out, t.a);
      put(out, t.b);
      return true;
    case TermKind::Str: {
      const std::u32string& text = book_.strings[t.a];
      put(out, static_cast<uint32_t>(text.size()));
      for (const char32_t c : text) put(out, c);
      return out.size() <= kKeyBytes;
    }
    case TermKind::Let:
      put(out, t.b);
      for (uint32_t i = 0; i < t.b; ++i) {
        const core::LetRow row = book_.let_rows[t.a + i];
        out.push_back(static_cast<char>(row.quantity));
        if (!key_of(row.value, outer, out)) return false;
      }
      return key_of(TermId(t.c), outer, out);
    case TermKind::Kind: case TermKind::Lam:
      out.push_back(static_cast<char>(t.quantity));
      return key_of(TermId(t.a), outer, out);
    case TermKind::All:
      out.push_back(static_cast<char>(t.quantity));
      return key_of(TermId(t.a), outer, out) && key_of(TermId(t.b), outer, out);
    case TermKind::Meet: case TermKind::Ann:
      return key_of(TermId(t.a), outer, out) && key_of(TermId(t.b), outer, out);
    case TermKind::App:
      return key_of(TermId(t.a), outer, out) && items(t.b, t.c);
    case TermKind::Adt: case TermKind::Ctr:
      put(out, t.a);
      return items(t.b, t.c);
    case TermKind::Mat:
      put(out, t.a);
      return key_of(TermId(t.b), outer, out) && key_of(TermId(t.c), outer, out);
    case TermKind::MatLit: case TermKind::Eql: case TermKind::Rwt:
      return key_of(TermId(t.a), outer, out) && key_of(TermId(t.b), outer, out) && key_of(TermId(t.c), outer, out);
    case TermKind::Hole:
      put(out, t.name.index);
      return true;
    case TermKind::Quant: case TermKind::Efq: case TermKind::Rfl: case TermKind::Error:
      return true;
  }
  return true;
}

TermId Checker::copy(TermId id, const Copy& how, uint32_t place) {
  if (m_.deep()) return book_.add(Term{}, span(id));
  Term t = term(id);
  const Span where = span(id);
  auto items = [&](uint32_t& offset, uint32_t count) {
    std::vector<TermId> ids(count);
    for (uint32_t i = 0; i < count; ++i) ids[i] = copy(item(offset, i), how, place);
    offset = book_.lists.add(ids).offset;
  };
  switch (t.kind) {
    case TermKind::Var:
      if (t.a >= how.outer) {
        t.a = t.a - how.outer + how.shift;
        break;
      }
      if (how.replace != nullptr && t.a < how.replace->size()) {
        const TermId by = (*how.replace)[t.a];
        return copy(by, Copy{0, place, nullptr}, place);
      }
      t.a |= kLocal;
      break;
    case TermKind::Ref: case TermKind::Qua: case TermKind::U32: case TermKind::F32: case TermKind::Nat: case TermKind::Str: case TermKind::Hole:
    case TermKind::Quant: case TermKind::Efq: case TermKind::Rfl: case TermKind::Error:
      break;
    case TermKind::Let: {
      std::vector<core::LetRow> rows(book_.let_rows.begin() + t.a, book_.let_rows.begin() + t.a + t.b);
      for (core::LetRow& row : rows) row.value = copy(row.value, how, place);
      t.c = copy(TermId(t.c), how, place + t.b).index;
      t.a = static_cast<uint32_t>(book_.let_rows.size());
      book_.let_rows.insert(book_.let_rows.end(), rows.begin(), rows.end());
      break;
    }
    case TermKind::Kind:
      t.a = copy(TermId(t.a), how, place).index;
      break;
    case TermKind::Lam:
      t.a = copy(TermId(t.a), how, place + 1).index;
      break;
    case TermKind::All:
      t.a = copy(TermId(t.a), how, place).index;
      t.b = copy(TermId(t.b), how, place + 1).index;
      break;
    case TermKind::Meet: case TermKind::Ann:
      t.a = copy(TermId(t.a), how, place).index;
      t.b = copy(TermId(t.b), how, place).index;
      break;
    case TermKind::App:
      t.a = copy(TermId(t.a), how, place).index;
      items(t.b, t.c);
      break;
    case TermKind::Adt: case TermKind::Ctr:
      items(t.b, t.c);
      break;
    case TermKind::Mat:
      t.b = copy(TermId(t.b), how, place).index;
      t.c = copy(TermId(t.c), how, place).index;
      break;
    case TermKind::MatLit: case TermKind::Eql: case TermKind::Rwt:
      t.a = copy(TermId(t.a), how, place).index;
      t.b = copy(TermId(t.b), how, place).index;
      t.c = copy(TermId(t.c), how, place).index;
      break;
  }
  const TermId made = book_.add(t, where);
  if (t.kind == TermKind::Mat || t.kind == TermKind::MatLit || t.kind == TermKind::Efq) {
    const Span scrutinee = book_.scrutinee_span(id);
    if (scrutinee.offset != where.offset || scrutinee.length != where.length) book_.match_sites.push_back({made, scrutinee});
  }
  return made;
}

bool Checker::instantiate(TermId ref, TermId call) {
  const DefId tmpl(term(ref).a);
  const Term t = term(call);
  const uint32_t count = book_.defs[tmpl].templates;
  if (state_[tmpl.index] == State::Broken || !book_.defs[tmpl].body.valid()) return true;  // reported there; its type still serves
  std::string key;
  put(key, tmpl.index);
  for (uint32_t i = 0; i < count; ++i) {
    if (key_of(item(t.b, i), depth(), key)) continue;
    if (halted(call)) return false;
    Diagnostic& d = report(Code::C11, span(item(t.b, i)), fmt::format("a `~` argument of `{}` grows without end", def_text(tmpl)));
    d.notes.push_back(fmt::format("the text of a template's `~` arguments is limited to {} bytes", kKeyBytes));
    return false;
  }
  DefId instance;
  if (const auto found = instances_.find(key); found != instances_.end()) {
    instance = found->second;
    for (size_t i = 0; i + 1 < minting_.size(); ++i) {
      if (minting_[i] != instance || minting_.back() == instance) continue;
      Diagnostic& d = report(Code::C9, span(call), fmt::format("`{}` calls back an instance that is still being checked", def_text(tmpl)));
      d.notes.push_back("a call that comes back through another instance shows no decrease");
      return false;
    }
  } else {
    if (frame_.level >= kNesting) {
      Diagnostic& d = report(Code::C11, span(call), fmt::format("the instances of `{}` do not come to an end", def_text(tmpl)));
      d.labels.push_back({book_.defs[tmpl].name_span, "the template"});
      d.notes.push_back(fmt::format("each instance asks for another one; {} levels are the limit", kNesting));
      d.fix = "pass what changes from call to call as an ordinary argument";
      return false;
    }
    if (instances_.size() >= kInstances) {
      if (halted(call) || std::exchange(too_many_instances_, true)) return false;
      Diagnostic& d = report(Code::L1, span(call), fmt::format("the program needs more than {} instances of templates", kInstances));
      d.labels.push_back({book_.defs[tmpl].name_span, "the template whose instance is one too many"});
      d.notes.push_back("an instance whose text asks for several new ones doubles their number with each level");
      d.fix = "pass what changes from call to call as an ordinary argument";
      return false;
    }
    instance = mint(tmpl, call, ref, std::move(key));
  }
  if (instance.valid()) book_.instance_calls[call] = instance;
  return true;
}

// The closed term that stands for parameter `index` in the instance: the argument itself (types, names) or a def made of it.
TermId Checker::check_template_argument(DefId tmpl, DefId instance, TermId arg, TermId type, uint32_t index) {
  const Value* goal = m_.delay(type, m_.empty());
  const Value* head = m_.whnf(goal);
  const bool is_type = head->tag == Tag::Kind || head->tag == Tag::Quant;
  check(arg, m_.empty(), goal, !is_type);
  if (is_type || term(arg).kind == TermKind::Ref) return arg;

  core::Def def;
  const core::Def& from = book_.defs[tmpl];
  TermId at = from.type;
  for (uint32_t i = 0; i < index; ++i) at = TermId(term(at).b);
  def.name = names_.intern(fmt::format("{}.{}", names_.text(book_.defs[instance].name), names_.text(term(at).name)));
  def.module = from.module;
  def.type = type;
  def.body = arg;
  TermId arrow = type;
  for (TermId body = arg; term(body).kind == TermKind::Lam && term(arrow).kind == TermKind::All; body = TermId(term(body).a)) {
    ++def.arity;
    arrow = TermId(term(arrow).b);
  }
  def.span = def.name_span = span(arg);
  def.instance_of = tmpl;
  def.order = from.order;
  const DefId id = add_def(std::move(def));
  state_[id.index] = State::Done;
  m_.allow(id);
  Term name;
  name.kind = TermKind::Ref;
  name.a = id.index;
  return book_.add(name, span(arg));
}

DefId Checker::mint(DefId tmpl, TermId call, TermId ref, std::string key) {
  (void)ref;
  const uint32_t count = book_.defs[tmpl].templates;
  const uint32_t outer = depth();
  core::Def made = book_.defs[tmpl];
  made.name = names_.intern(fmt::format("{}~{}", names_.text(made.name), instances_.size()));
  made.body = TermId{};
  made.arity -= count;
  made.templates = 0;
  made.kind = core::DefKind::Def;
  made.instance_of = tmpl;
  if (made.param_spans.size() >= count) made.param_spans.erase(made.param_spans.begin(), made.param_spans.begin() + count);
  const DefId id = add_def(std::move(made));
  instances_.emplace(std::move(key), id);

  // The instance is checked in a context of its own.
  std::vector<Binding> bindings;
  Usage usage;
  bindings.swap(bindings_);
  std::swap(usage, usage_);
  const Frame caller = frame_;
  const uint32_t before = reported_;
  minting_.push_back(id);

  frame_.instance = id;
  frame_.generic = false;
  frame_.constants = 0;
  frame_.columns = 0;
  frame_.path = nullptr;
  frame_.level = caller.level + 1;

  std::vector<TermId> replace;
  TermId type = book_.defs[tmpl].type;
  TermId body = book_.defs[tmpl].body;
  bool sound = true;
  for (uint32_t i = 0; i < count && sound; ++i) {
    const Term all = term(type);
    const TermId domain = copy(TermId(all.a), Copy{i, 0, &replace}, 0);
    const TermId arg = copy(item(term(call).b, i), Copy{outer, 0, nullptr}, 0);
    frame_.unsafe = caller.unsafe;
    frame_.def = caller.def;
    replace.push_back(check_template_argument(tmpl, id, arg, domain, i));
    sound = reported_ == before && m_.halt() == Halt::None && term(body).kind == TermKind::Lam;
    type = TermId(all.b);
    if (sound) body = TermId(term(body).a);
  }
  if (sound) {
    const TermId own_type = copy(type, Copy{count, 0, &replace}, 0);
    const TermId own_body = copy(body, Copy{count, 0, &replace}, 0);
    book_.defs[id].type = own_type;
    book_.defs[id].body = own_body;
    frame_.def = tmpl;
    frame_.unsafe = book_.defs[tmpl].unsafe;
    check(own_body, m_.empty(), m_.delay(own_type, m_.empty()), true, true);
    sound = reported_ == before && m_.halt() == Halt::None;
  }
  state_[id.index] = sound ? State::Done : State::Broken;
  if (sound) {
    m_.allow(id);
  } else {
    m_.poison(id);
  }

  minting_.pop_back();
  frame_ = caller;
  bindings_.swap(bindings);
  std::swap(usage_, usage);
  return sound ? id : DefId{};
}

}  // namespace bendc
