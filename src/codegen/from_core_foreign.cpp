// Foreign defs: requests to the runtime, and which function answers them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "codegen/lowerer.h"
#include "frontend/module_path.h"

namespace bendc {

using core::Quantity;

namespace {

constexpr std::string_view kRuntimeEffects[] = {
#define BENDC_EFFECT(name) #name,
#include "runtime/effects.def"
#undef BENDC_EFFECT
};

}  // namespace

// A foreign def `f(args) -> IO(A)` is a function of its arguments and the continuation that answers a request. An IO among the arguments
// (IO.spawn) goes to the runtime as a suspended computation: fn(struct{}) -> IO.OP.
void Lowerer::lower_foreign_body(core::DefId id, const Callable& callable, std::span<const Operand> params) {
  const core::Def& def = book_.defs[id];
  const RepId op = reps_.adt(reps_.op_data);
  const flow::TypeId op_type = reps_.flow(op);
  const RepId k_rep = callable.params.back();
  if (reps_[k_rep].kind != RepKind::Fn || !reps_.same(callable.result, op)) internal("a foreign def that is no IO");

  std::vector<flow::VarId> operands;
  std::vector<flow::TypeId> types;
  const RepId thunk = reps_.fn(reps_.basic(RepKind::Proof), op);
  for (size_t i = 0; i + 1 < params.size(); ++i) {
    const Rep rep = reps_[params[i].rep];
    const bool action = rep.kind == RepKind::Fn && reps_[rep.a].kind == RepKind::Fn && reps_.same(rep.b, op) && reps_.same(reps_[rep.a].b, op);
    if (!action) {
      operands.push_back(params[i].var);
      types.push_back(out_.vars[params[i].var].type);
      continue;
    }
    // _ => action(x => Emit{x})
    const RepId answer = reps_[rep.a].a;
    const RepId end_params[] = {answer};
    const flow::FuncId end = new_func(name_of(def.name) + ".end", def.span);
    set_signature(end, end_params, op);
    Builder builder;
    open(builder, end, nullptr);
    const Operand boxed = coerce({out_.funcs[end].params[0], answer}, reps_.any());
    ret(build(op, 0, std::span(&boxed, 1)).var);
    close(builder);
    const RepId start_params[] = {params[i].rep, reps_.basic(RepKind::Proof)};
    const flow::FuncId start = new_func(name_of(def.name) + ".start", def.span);
    set_signature(start, start_params, op);
    open(builder, start, nullptr);
    flow::Expr closure;
    closure.kind = flow::ExprKind::Closure;
    closure.func = end;
    const flow::VarId applied[] = {out_.funcs[start].params[0], let(closure, reps_.flow(rep.a))};
    ret(expr(flow::ExprKind::Apply, applied, op_type));
    close(builder);
    closure.func = start;
    closure.args = own_list(std::span(&params[i].var, 1));
    operands.push_back(let(closure, reps_.flow(thunk)));
    types.push_back(reps_.flow(thunk));
  }
  operands.push_back(params.back().var);

  auto it = effects_.find(id);
  if (it == effects_.end()) {
    flow::Effect effect;
    effect.args = types;
    effect.answer = reps_.flow(reps_[k_rep].a);
    name_effect(id, effect);
    it = effects_.emplace(id, out_.effects.add(std::move(effect))).first;
  }
  ret(expr(flow::ExprKind::Request, operands, op_type, it->second.index));
}

// What carries an effect out. `native:x.c` in the library: the runtime's effect x. `./x.c`: the function BEND_EFFECT(name) of that file,
// named after the def in lower case with `_` for `.`. Two files may use one name, so the symbol has the file's number in front: bend_eff_x0_name.
void Lowerer::name_effect(core::DefId id, flow::Effect& effect) {
  const core::Def& def = book_.defs[id];
  const std::string shown = std::string(name_of(def.name));
  std::vector<std::string_view> paths;
  for (const std::string& path : def.foreign_paths)
    if (path.ends_with(".c")) paths.push_back(path);
  if (paths.empty()) {
    fail(Code::B5, fmt::format("`{}` has no C implementation, and JavaScript cannot be part of a native program", shown), "add a line `import \"./file.c\"` to its body");
    return;
  }
  if (paths.size() > 1) {
    fail(Code::B5, fmt::format("`{}` names the C files `{}` and `{}`, and an effect is one function", shown, paths[0], paths[1]), "keep one of the lines");
    return;
  }
  const std::string path(paths[0]);
  if (path.starts_with(kNativeScheme)) {
    effect.name = path.substr(kNativeScheme.size(), path.size() - kNativeScheme.size() - 2);
    if (std::find(std::begin(kRuntimeEffects), std::end(kRuntimeEffects), effect.name) != std::end(kRuntimeEffects) || refused_effect_) return;
    // The library declares it and the runtime lacks it: windows and sound. One report: whoever opens a window uses all of them.
    refused_effect_ = true;
    const core::Def& main = book_.defs[book_.main];
    Diagnostic& d = diags_.add(Code::B5, main.name_span.valid() ? main.name_span : main.span, fmt::format("`main` reaches `{}`, an effect that native programs do not have", shown));
    d.notes.push_back(fmt::format("windows and sound are not supported: the runtime has no effect `{}`", effect.name));
    d.fix = "run an app over recorded events with `App.play`, which needs no window";
    return;
  }
  const std::string_view full = names_.text(def.name);
  std::string symbol(full.substr(full.rfind(':') + 1));
  for (char& c : symbol) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '_';
  // The file is found from the one that declares the effect.
  effect.c_path = def.span.valid() ? join_path(directory_of(sources_[def.span.file].path), path) : path;
  const size_t number = custom_files_.emplace(effect.c_path, custom_files_.size()).first->second;
  effect.name = fmt::format("x{}_{}", number, symbol);
}

}  // namespace bendc
