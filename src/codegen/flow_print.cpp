// Flow -> text. See flow_text.h for the format's purpose and flow_parse.cpp for its grammar.
#include <fmt/format.h>

#include <unordered_map>

#include "codegen/flow_text.h"

namespace bendc::flow {

namespace {

bool simple_name(std::string_view name) {
  if (name.empty()) return false;
  for (char c : name)
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' && c != '.' && c != '~' && c != '#')
      return false;
  return true;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') { out += "\\n"; continue; }
    out += c;
  }
  return out + "\"";
}

class Printer {
 public:
  explicit Printer(const Module& module) : m_(module) {
    std::unordered_map<std::string, uint32_t> seen;
    for (const Func& func : m_.funcs) {
      uint32_t& count = seen[func.name];
      std::string name = count == 0 ? func.name : fmt::format("{}#{}", func.name, count);
      ++count;
      func_names_.push_back(simple_name(name) ? "@" + name : "@" + quote(name));
    }
  }

  std::string type(TypeId id) const {
    if (!id.valid()) return "?";
    const Type& t = m_.types[id];
    switch (t.kind) {
      case TypeKind::U32: return "u32";
      case TypeKind::F32: return "f32";
      case TypeKind::Nat: return "nat";
      case TypeKind::Enum: return fmt::format("enum({})", t.count);
      case TypeKind::Struct: return "struct{" + types(t.parts) + "}";
      case TypeKind::Sum: {
        std::string out = "sum{";
        for (size_t i = 0; i < t.variants.size(); ++i) out += (i ? " | " : "") + types(t.variants[i]);
        return out + "}";
      }
      case TypeKind::Ref: return fmt::format("ref D{}", t.data.index);
      case TypeKind::Array: return "array " + type(t.parts[0]);
      case TypeKind::Fn: return fmt::format("fn({}) -> {}", type(t.parts[0]), type(t.parts[1]));
      case TypeKind::Any: return "any";
      case TypeKind::Token: return "token";
    }
    return "?";
  }

  std::string module() {
    for (uint32_t i = 0; i < m_.datas.size(); ++i) {
      const Data& data = m_.datas[DataId(i)];
      out_ += fmt::format("data D{} {}{} {{", i, quote(data.name), data.shareable ? "" : " affine");
      for (size_t c = 0; c < data.ctors.size(); ++c) {
        const CtorLayout& ctor = data.ctors[c];
        const char* repr = ctor.repr == CtorRepr::Nullary ? "nullary" : ctor.repr == CtorRepr::Packed ? "packed" : "node";
        out_ += fmt::format("{} {} {}({})", c ? ";" : "", repr, quote(ctor.name), types(ctor.fields));
      }
      out_ += " }\n";
    }
    for (uint32_t i = 0; i < m_.strings.size(); ++i) {
      out_ += fmt::format("string S{} [", i);
      for (char32_t c : m_.strings[i]) out_ += fmt::format(" {}", static_cast<uint32_t>(c));
      out_ += " ]\n";
    }
    for (uint32_t i = 0; i < m_.effects.size(); ++i) {
      const Effect& effect = m_.effects[EffectId(i)];
      out_ += fmt::format("effect E{} {}({}) -> {}", i, quote(effect.name), types(effect.args), type(effect.answer));
      if (!effect.c_path.empty()) out_ += " c " + quote(effect.c_path);
      out_ += "\n";
    }
    if (m_.string_data.valid()) out_ += fmt::format("string_data D{}\n", m_.string_data.index);
    if (m_.io_op_data.valid()) out_ += fmt::format("io_op_data D{}\n", m_.io_op_data.index);
    if (m_.main_kind != MainKind::None)
      out_ += fmt::format("entry {} {}\n", m_.main_kind == MainKind::Io ? "io" : "value", func_names_[m_.entry.index]);
    if (m_.owned) out_ += "owned\n";
    for (uint32_t i = 0; i < m_.funcs.size(); ++i) func(FuncId(i));
    return std::move(out_);
  }

  std::string one(FuncId id) {
    func(id);
    return std::move(out_);
  }

 private:
  std::string types(const std::vector<TypeId>& list) const {
    std::string out;
    for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + type(list[i]);
    return out;
  }

  // A name for a variable, unique in the current function.
  std::string var(VarId id) {
    if (!id.valid()) return "%?";
    auto it = var_names_.find(id.index);
    if (it != var_names_.end()) return it->second;
    std::string base;
    for (char c : m_.vars[id].name)
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') base += c;
      else base += '_';
    if (base.empty()) base = "t";
    uint32_t& count = used_[base];
    std::string name = count == 0 ? "%" + base : fmt::format("%{}.{}", base, count);
    ++count;
    var_names_.emplace(id.index, name);
    return name;
  }
  std::string typed(VarId id) { return var(id) + ": " + (id.valid() ? type(m_.vars[id].type) : "?"); }
  std::string vars(Slice s) {
    std::string out;
    for (VarId v : m_.list(s)) out += (out.empty() ? "" : ", ") + var(v);
    return out;
  }
  std::string typed_vars(Slice s) {
    std::string out;
    for (VarId v : m_.list(s)) out += std::string(out.empty() ? "" : ", ") + (m_.vars[v].borrowed ? "borrow " : "") + typed(v);
    return out;
  }

  void func(FuncId id) {
    var_names_.clear();
    used_.clear();
    const Func& f = m_.funcs[id];
    out_ += "fn " + func_names_[id.index] + "(";
    for (size_t i = 0; i < f.params.size(); ++i)
      out_ += fmt::format("{}{}{}", i ? ", " : "", i < f.borrowed.size() && f.borrowed[i] ? "borrow " : "", typed(f.params[i]));
    out_ += ") -> " + type(f.result) + " {\n";
    body(f.body, 1);
    out_ += "}\n";
  }

  void line(int depth, const std::string& text) {
    out_.append(static_cast<size_t>(depth) * 2, ' ');
    out_ += text;
    out_ += '\n';
  }

  std::string expr(const Expr& e, VarId bound) {
    std::string args = vars(e.args);
    switch (e.kind) {
      case ExprKind::Const: return fmt::format("{}", e.imm);
      case ExprKind::Str: return fmt::format("str S{}", e.imm);
      case ExprKind::Prim: return fmt::format("{}({}){}{}", prim_text(e.prim), args, e.in_place ? " in_place" : "", e.in_range ? " in_range" : "");
      case ExprKind::Struct: return "struct(" + args + ")";
      case ExprKind::Get: return fmt::format("get {}({})", e.imm, args);
      case ExprKind::Variant: return fmt::format("variant {}({})", e.imm, args);
      case ExprKind::VariantGet: return fmt::format("variant_get {} {}({})", e.imm, e.imm2, args);
      case ExprKind::Con: return fmt::format("con {}({}){}", e.imm, args, e.reuse.valid() ? " reuse " + var(e.reuse) : "");
      case ExprKind::ConGet: return fmt::format("con_get {} {}({})", e.imm, e.imm2, args);
      case ExprKind::Call: return fmt::format("call{} {}({})", e.bang ? "!" : "", func_names_[e.func.index], args);
      case ExprKind::Apply: return "apply(" + args + ")";
      case ExprKind::Closure: return fmt::format("closure {}({})", func_names_[e.func.index], args);
      case ExprKind::Request: return fmt::format("request E{}({})", e.imm, args);
      case ExprKind::Box: return "box(" + args + ")";
      case ExprKind::Unbox: return "unbox(" + args + ")";
    }
    (void)bound;
    return "?";
  }

  void arms(const Node& n, int depth, const char* word) {
    line(depth, fmt::format("{} {} {{", word, var(n.subject)));
    for (const Arm& arm : n.arms) {
      line(depth + 1, fmt::format("{} => {{", arm.value));
      body(arm.body, depth + 2);
      line(depth + 1, "}");
    }
    if (n.other.valid()) {
      line(depth + 1, "else => {");
      body(n.other, depth + 2);
      line(depth + 1, "}");
    }
    line(depth, "}");
  }

  void body(NodeId id, int depth) {
    while (true) {
      if (!id.valid()) return line(depth, "?");
      const Node& n = m_.nodes[id];
      switch (n.kind) {
        case NodeKind::Let:
          line(depth, fmt::format("let {}{} = {}", m_.vars[n.var].borrowed ? "borrow " : "", typed(n.var), expr(n.expr, n.var)));
          break;
        case NodeKind::Open:
          line(depth, fmt::format("open {} {}({}){}", var(n.subject), n.imm, typed_vars(n.vars), n.var.valid() ? " token " + var(n.var) : ""));
          break;
        case NodeKind::Dup: line(depth, "dup " + var(n.subject)); break;
        case NodeKind::Drop: line(depth, "drop " + var(n.subject)); break;
        case NodeKind::Join:
          line(depth, fmt::format("{} j{}({}) {{", n.loop ? "loop" : "join", n.join.index, typed_vars(n.vars)));
          body(n.body, depth + 1);
          line(depth, "}");
          break;
        case NodeKind::Fork: {
          line(depth, "fork {");
          auto results = m_.list(n.vars);
          for (size_t i = 0; i < n.calls.size(); ++i)
            line(depth + 1, fmt::format("{} = call{} {}({})", typed(results[i]), n.calls[i].bang ? "!" : "", func_names_[n.calls[i].func.index], vars(n.calls[i].args)));
          line(depth, "}");
          break;
        }
        case NodeKind::Case: return arms(n, depth, "case");
        case NodeKind::Switch: return arms(n, depth, "switch");
        case NodeKind::Ret: return line(depth, "ret " + var(n.subject));
        case NodeKind::Tail: return line(depth, fmt::format("tail {}({})", func_names_[n.func.index], vars(n.args)));
        case NodeKind::Jump: return line(depth, fmt::format("jump j{}({})", n.join.index, vars(n.args)));
        case NodeKind::Abort: return line(depth, fmt::format("abort {}", n.imm));
      }
      id = n.next;
    }
  }

  const Module& m_;
  std::string out_;
  std::vector<std::string> func_names_;
  std::unordered_map<uint32_t, std::string> var_names_;
  std::unordered_map<std::string, uint32_t> used_;
};

}  // namespace

std::string print_module(const Module& module) { return Printer(module).module(); }
std::string print_func(const Module& module, FuncId func) { return Printer(module).one(func); }
std::string print_type(const Module& module, TypeId type) { return Printer(module).type(type); }

}  // namespace bendc::flow
