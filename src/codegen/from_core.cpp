// Entry of the lowering, main, and the emission of Flow nodes. See lowerer.h for the other parts.
#include "codegen/from_core.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "codegen/lowerer.h"
#include "codegen/prim_types.h"

namespace bendc {

namespace {

// Evaluation steps for all types of a program together: a type that does not stop is reported instead of hanging the compiler.
constexpr uint64_t kTypeFuel = 400'000'000;
// Generated functions; the programs of the test suite stay below 2,000.
constexpr uint32_t kMaxFunctions = 200'000;

}  // namespace

LowerResult lower(core::Book& book, const SourceMap& sources, Interner& names, size_t stack) {
  ElementKinds boxed;
  for (;;) {
    Lowerer lowerer(book, sources, names, stack, boxed);
    LowerResult result = lowerer.run();
    const ElementKinds more = lowerer.arrays_to_box();
    if (more.empty()) return result;
    boxed.insert(more.begin(), more.end());
  }
}

Lowerer::Lowerer(core::Book& book, const SourceMap& sources, Interner& names, size_t stack, const ElementKinds& boxed)
    : book_(book), sources_(sources), names_(names), m_(book, names, MachineOptions{.fuel = kTypeFuel, .stack = stack}), reps_(book, names, m_, out_, boxed) {
  for (size_t i = 0;; ++i) {
    const auto prim = static_cast<flow::Prim>(i);
    const std::string_view base = flow::prim_base(prim);
    if (!base.empty()) {
      core::DefId def = book_.find_def(names_.intern(base));
      if (def.valid() && book_.module_is_stdlib[book_.defs[def].module]) prims_.emplace(def, prim);
    }
    if (prim == flow::Prim::ShowString) break;
  }
}

LowerResult Lowerer::run() {
  try {
    lower_main();
    lower_instance_bodies();
    stop_at_limit();
  } catch (const LimitReached&) {
    report_limit();
  }
  LowerResult result;
  result.module = std::move(out_);
  result.diagnostics = std::move(diags_);
  result.needs_normalise = needs_normalise_;
  return result;
}

void Lowerer::internal(std::string_view what) const {
  if (m_.halt() != Halt::None) throw LimitReached{};   // a type whose evaluation was given up has any form
  std::fputs(fmt::format("bendc: internal error in lower: {}\n", what).c_str(), stderr);
  std::exit(70);
}

void Lowerer::fail(Code code, std::string message, std::string fix) {
  Diagnostic& d = diags_.add(code, span_, std::move(message));
  d.fix = std::move(fix);
}

void Lowerer::stop_at_limit() {
  if (m_.halt() != Halt::None || m_.deep() || out_.funcs.size() > kMaxFunctions) throw LimitReached{};
}

void Lowerer::report_limit() {
  switch (m_.halt()) {
    case Halt::Fuel: return fail(Code::L1, "the types of this program take too many steps to compute", "state them in a simpler form");
    case Halt::Memory: return fail(Code::L1, "the types of this program take too much memory to compute", "state them in a simpler form");
    case Halt::Stack: return fail(Code::L1, "a term is nested too deeply to compile", "split it into several definitions");
    case Halt::NatOverflow: return fail(Code::L1, "a Nat in a type passes 2^48-1", "state the type in a simpler form");
    case Halt::None: return fail(Code::L1, fmt::format("the program needs more than {} specialised functions", kMaxFunctions));
  }
}

// --- Main -------------------------------------------------------------------------------------------------------------------------

// IO(A) is `@-R: Type -> (A -> IO.OP<R>) -> IO.OP<R>`.
bool Lowerer::is_io(const Value* type, const Value** answer) {
  auto is_op = [&](const Value* v) {
    v = m_.whnf(v);
    return v->tag == Tag::Adt && core::DataId(v->a) == reps_.op_data;
  };
  type = m_.whnf(type);
  if (type->tag != Tag::All || m_.binder_quantity(type) != core::Quantity::None) return false;
  type = m_.whnf(m_.codomain(type, reps_.any_type()));
  if (type->tag != Tag::All || m_.binder_quantity(type) == core::Quantity::None) return false;
  const Value* k = m_.whnf(m_.domain(type));
  if (!is_op(m_.codomain(type, reps_.opaque(k))) || k->tag != Tag::All || m_.binder_quantity(k) == core::Quantity::None) return false;
  const Value* a = m_.domain(k);
  if (!is_op(m_.codomain(k, reps_.opaque(a)))) return false;
  if (answer != nullptr) *answer = a;
  return true;
}

void Lowerer::lower_main() {
  if (!book_.main.valid()) {
    diags_.add(Code::B5, Span{}, "the file has no `main`").fix = "declare `def main() -> IO(Unit):` or a main of a plain type";
    return;
  }
  const core::Def& main = book_.defs[book_.main];
  span_ = main.name_span.valid() ? main.name_span : main.span;
  if (!book_.entry_uses_base) return fail(Code::B5, "a file without `import Base` cannot be compiled", "add `import Base` as its first line");
  if (main.foreign) return fail(Code::B5, "`main` is foreign", "call the foreign definition from a `main` written in Bend");
  if (!main.body.valid()) return fail(Code::B5, "`main` has no body", "give the law a proof, or declare `main` as a def");

  const Value* type = m_.all_of_def(book_.main);
  const Value* answer = nullptr;
  if (is_io(type, &answer)) {
    const RepId op = reps_.adt(reps_.op_data);
    const flow::TypeId op_type = reps_.flow(op);
    const RepId answer_rep = reps_.of(answer);
    // The continuation of the whole program: x => Emit{x}
    const RepId params[] = {answer_rep};
    const flow::FuncId last = new_func("main.end", main.span);
    set_signature(last, params, op);
    Builder builder;
    open(builder, last, nullptr);
    const Operand boxed = coerce({out_.funcs[last].params[0], answer_rep}, reps_.any());
    ret(build(op, 0, std::span(&boxed, 1)).var);
    close(builder);

    const flow::FuncId entry = new_func("main.entry", main.span);
    set_signature(entry, {}, op);
    open(builder, entry, nullptr);
    std::vector<Argument> args;
    Typed value;
    call_def(book_.main, false, args, nullptr, &value);
    const RepId k = reps_.fn(answer_rep, op);
    const Operand action = coerce(value.op, reps_.fn(k, op));
    flow::Expr closure;
    closure.kind = flow::ExprKind::Closure;
    closure.func = last;
    const flow::VarId end = let(closure, reps_.flow(k));
    const flow::VarId operands[] = {action.var, end};
    ret(expr(flow::ExprKind::Apply, operands, op_type));
    close(builder);
    out_.entry = entry;
    out_.main_kind = flow::MainKind::Io;
    return;
  }
  const RepId rep = reps_.of(type);
  if (!showable(rep)) {
    needs_normalise_ = true;
    return;
  }
  const flow::FuncId entry = new_func("main.entry", main.span);
  const RepId unit_rep = reps_.basic(RepKind::Proof);
  set_signature(entry, {}, unit_rep);
  Builder builder;
  open(builder, entry, nullptr);
  std::vector<Argument> args;
  Typed value;
  call_def(book_.main, false, args, nullptr, &value);
  show(coerce(value.op, rep));
  ret(unit(RepKind::Proof).var);
  close(builder);
  out_.entry = entry;
  out_.main_kind = flow::MainKind::Value;
}

// --- Functions --------------------------------------------------------------------------------------------------------------------

flow::FuncId Lowerer::new_func(std::string name, Span span) {
  // Instances of the checker's templates are called f~k too, so a number may be taken.
  flow::Func func;
  func.name = name;
  for (uint32_t& count = name_counts_[name]; !func_names_.insert(func.name).second;) func.name = fmt::format("{}~{}", name, ++count);
  func.span = span;
  return out_.funcs.add(std::move(func));
}

void Lowerer::set_signature(flow::FuncId func, std::span<const RepId> params, RepId result) {
  std::vector<flow::VarId> vars;
  for (RepId rep : params) {
    flow::Var var;
    var.type = reps_.flow(rep);
    var.name = "x";
    vars.push_back(out_.vars.add(var));
    var_owner_.resize(out_.vars.size(), 0);
    var_uses_.resize(out_.vars.size(), 0);
  }
  const flow::TypeId type = reps_.flow(result);
  out_.funcs[func].params = std::move(vars);
  out_.funcs[func].result = type;
}

void Lowerer::open(Builder& builder, flow::FuncId func, Builder* outer) {
  builder = Builder{};
  builder.func = func;
  builder.id = ++builders_;
  builder.outer = outer;   // none for functions made on the way (conversions, printers): they capture nothing
  builder.hole = {Hole::Slot::FuncBody, func, {}, 0};
  for (flow::VarId param : out_.funcs[func].params) var_owner_[param.index] = builder.id;
  saved_.push_back(b_);
  b_ = &builder;
}

void Lowerer::close(Builder&) {
  b_ = saved_.back();
  saved_.pop_back();
}

flow::VarId Lowerer::new_var(flow::TypeId type, std::string name) {
  flow::Var var;
  var.type = type;
  var.name = name.empty() || name == "_" ? "t" : std::move(name);
  const flow::VarId id = out_.vars.add(std::move(var));
  var_owner_.resize(out_.vars.size(), 0);
  var_uses_.resize(out_.vars.size(), 0);
  var_owner_[id.index] = b_->id;
  return id;
}

flow::VarId Lowerer::own(flow::VarId var) {
  ++var_uses_[var.index];
  if (var_owner_[var.index] == b_->id) return var;
  if (auto it = b_->captured.find(var); it != b_->captured.end()) return it->second;
  if (b_->outer == nullptr) internal(fmt::format("`{}` captures `{}`", out_.funcs[b_->func].name, out_.vars[var].name));
  const flow::VarId mine = new_var(out_.vars[var].type, out_.vars[var].name);
  b_->captures.emplace_back(var, mine);
  b_->captured.emplace(var, mine);
  return mine;
}

Slice Lowerer::own_list(std::span<const flow::VarId> vars) {
  std::vector<flow::VarId> out;
  for (flow::VarId var : vars) out.push_back(own(var));
  return out_.var_lists.add(out);
}

// --- Nodes ------------------------------------------------------------------------------------------------------------------------

void Lowerer::fill(const Hole& hole, flow::NodeId node) {
  switch (hole.slot) {
    case Hole::Slot::None: break;   // unreachable code
    case Hole::Slot::FuncBody: out_.funcs[hole.func].body = node; break;
    case Hole::Slot::Next: out_.nodes[hole.node].next = node; break;
    case Hole::Slot::Body: out_.nodes[hole.node].body = node; break;
    case Hole::Slot::Other: out_.nodes[hole.node].other = node; break;
    case Hole::Slot::Arm: out_.nodes[hole.node].arms[hole.arm].body = node; break;
  }
}

flow::NodeId Lowerer::emit(flow::Node node) {
  node.span = span_;
  const flow::NodeId id = out_.nodes.add(std::move(node));
  fill(b_->hole, id);
  if (b_->hole.slot != Hole::Slot::None) b_->hole = {Hole::Slot::Next, {}, id, 0};
  return id;
}

flow::VarId Lowerer::let(flow::Expr expr, flow::TypeId type, std::string name) {
  flow::Node node;
  node.kind = flow::NodeKind::Let;
  node.var = new_var(type, std::move(name));
  node.expr = expr;
  const flow::VarId var = node.var;
  emit(std::move(node));
  return var;
}

flow::VarId Lowerer::expr(flow::ExprKind kind, std::span<const flow::VarId> args, flow::TypeId type, uint64_t imm, uint64_t imm2, std::string name) {
  flow::Expr e;
  e.kind = kind;
  e.imm = imm;
  e.imm2 = imm2;
  e.args = own_list(args);
  return let(e, type, std::move(name));
}

flow::VarId Lowerer::constant(uint64_t bits, flow::TypeId type) { return expr(flow::ExprKind::Const, {}, type, bits, 0, "c"); }

flow::VarId Lowerer::prim(flow::Prim p, std::span<const flow::VarId> args, flow::TypeId type, std::string name) {
  flow::Expr e;
  e.kind = flow::ExprKind::Prim;
  e.prim = p;
  e.args = own_list(args);
  return let(e, type, std::move(name));
}

flow::VarId Lowerer::call(flow::FuncId func, std::span<const flow::VarId> args, flow::TypeId type, bool bang) {
  flow::Expr e;
  e.kind = flow::ExprKind::Call;
  e.func = func;
  e.bang = bang;
  e.args = own_list(args);
  return let(e, type);
}

uint64_t Lowerer::string_index(const std::u32string& text) {
  auto [it, fresh] = strings_.emplace(text, out_.strings.size());
  if (fresh) out_.strings.push_back(text);
  return it->second;
}

void Lowerer::ret(flow::VarId var) {
  flow::Node node;
  node.kind = flow::NodeKind::Ret;
  node.subject = own(var);
  emit(std::move(node));
  b_->hole = {};
}

void Lowerer::abort(uint64_t code) {
  flow::Node node;
  node.kind = flow::NodeKind::Abort;
  node.imm = code;
  emit(std::move(node));
  b_->hole = {};
}

Operand Lowerer::unreachable(RepId rep) {
  abort(2);
  return {new_var(reps_.flow(rep), "never"), rep};
}

void Lowerer::finish(Dest& dest, Operand op) {
  op = coerce(op, dest.rep);
  switch (dest.kind) {
    case Dest::Kind::Return: ret(op.var); break;
    case Dest::Kind::Value: dest.result = op; break;
    case Dest::Kind::Jump: {
      flow::Node node;
      node.kind = flow::NodeKind::Jump;
      node.join = dest.join;
      node.args = own_list(std::span(&op.var, 1));
      emit(std::move(node));
      b_->hole = {};
      break;
    }
  }
}

// --- Types and scopes -------------------------------------------------------------------------------------------------------------

flow::TypeId Lowerer::basic(flow::TypeKind kind) {
  flow::Type type;
  type.kind = kind;
  return out_.intern(std::move(type));
}

flow::TypeId Lowerer::bool_type() {
  flow::Type type;
  type.kind = flow::TypeKind::Enum;
  type.count = 2;
  return out_.intern(std::move(type));
}

flow::TypeId Lowerer::unit_type() { return basic(flow::TypeKind::Struct); }

flow::TypeId Lowerer::struct_type(std::vector<flow::TypeId> parts) {
  flow::Type type;
  type.kind = flow::TypeKind::Struct;
  type.parts = std::move(parts);
  return out_.intern(std::move(type));
}

Operand Lowerer::unit(RepKind kind) { return {expr(flow::ExprKind::Struct, {}, unit_type()), reps_.basic(kind)}; }

Scope Lowerer::bind_live(Scope s, Operand op, const Value* value, const Value* type) {
  frames_.push_back({s.frame, s.env->length, true, op, type});
  return {m_.extend(s.env, value), &frames_.back()};
}

Scope Lowerer::bind_erased(Scope s, const Value* value, const Value* type) {
  frames_.push_back({s.frame, s.env->length, false, {}, type});
  return {m_.extend(s.env, value), &frames_.back()};
}

const Frame* Lowerer::lookup(Scope s, uint32_t level) const {
  const Frame* frame = s.frame;
  while (frame != nullptr && frame->level > level) frame = frame->up;
  if (frame == nullptr || frame->level != level) internal(fmt::format("no binder at level {}", level));
  return frame;
}

}  // namespace bendc
