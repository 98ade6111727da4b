// Text -> Flow. Grammar (one construct a line in practice, but free form; `;` starts a comment to the end of the line):
//   module = { data | string | effect | "entry" ("io"|"value") func | "string_data" D | "io_op_data" D | "owned" | fn }
//   data   = "data" Dn "text" ["affine"] "{" [ repr "text" "(" types ")" { ";" .. } ] "}"       repr = nullary | packed | node
//   fn     = "fn" @name "(" { ["borrow"] %x ":" type "," } ")" "->" type "{" body "}"
//   body   = { statement } terminator           (as flow_print.cpp writes them)
// Functions and data may be used before they are defined.
#include <fmt/format.h>

#include <unordered_map>

#include "codegen/flow_text.h"

namespace bendc::flow {

namespace {

constexpr uint32_t kMaxNesting = 2000;   // bodies inside bodies; real passes stay below a few hundred

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    for (uint32_t i = 0; i <= static_cast<uint32_t>(Prim::ShowString); ++i) prims_[std::string(prim_text(static_cast<Prim>(i)))] = static_cast<Prim>(i);
  }

  ParsedFlow run() {
    declare();
    pos_ = 0;
    while (error_.empty() && !at_end()) item();
    ParsedFlow result;
    result.error = error_;
    result.module = std::move(m_);
    return result;
  }

 private:
  // --- characters and words ---
  void skip() {
    while (pos_ < text_.size()) {
      char c = text_[pos_];
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') ++pos_;
      else if (c == ';' && comment_at(pos_)) while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
      else break;
    }
  }
  // `;` is a separator inside data declarations and a comment elsewhere.
  bool comment_at(size_t) const { return !in_data_; }
  bool at_end() { skip(); return pos_ >= text_.size(); }
  void fail(const std::string& what) {
    if (!error_.empty()) return;
    uint32_t line = 1;
    for (size_t i = 0; i < pos_ && i < text_.size(); ++i) line += text_[i] == '\n';
    error_ = fmt::format("line {}: {}", line, what);
  }
  static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '~' || c == '#' || c == '!';
  }
  bool peek(std::string_view token) {
    skip();
    if (text_.substr(pos_, token.size()) != token) return false;
    if (word_char(token[0]) && pos_ + token.size() < text_.size() && word_char(text_[pos_ + token.size()])) return false;
    return true;
  }
  bool take(std::string_view token) {
    if (!peek(token)) return false;
    pos_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(fmt::format("expected `{}`", token));
  }
  std::string word() {
    skip();
    size_t start = pos_;
    while (pos_ < text_.size() && word_char(text_[pos_])) ++pos_;
    if (start == pos_) fail("expected a word");
    return std::string(text_.substr(start, pos_ - start));
  }
  std::string quoted() {
    expect("\"");
    std::string out;
    while (error_.empty()) {
      if (pos_ >= text_.size()) { fail("unterminated text"); break; }
      char c = text_[pos_++];
      if (c == '"') break;
      if (c == '\\' && pos_ < text_.size()) { c = text_[pos_++]; if (c == 'n') c = '\n'; }
      out += c;
    }
    return out;
  }
  uint64_t number() {
    skip();
    size_t start = pos_;
    uint64_t value = 0;
    while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') value = value * 10 + static_cast<uint64_t>(text_[pos_++] - '0');
    if (start == pos_) fail("expected a number");
    return value;
  }
  uint64_t id_number(char prefix) {
    skip();
    if (pos_ >= text_.size() || text_[pos_] != prefix) { fail(fmt::format("expected `{}` and a number", prefix)); return 0; }
    ++pos_;
    return number();
  }
  std::string func_name() {
    skip();
    if (pos_ >= text_.size() || text_[pos_] != '@') { fail("expected a function name"); return ""; }
    ++pos_;
    if (pos_ < text_.size() && text_[pos_] == '"') return quoted();
    return word();
  }

  // --- first pass: names of functions and data ---
  void declare() {
    while (!at_end() && error_.empty()) {
      size_t before = pos_;
      if (peek("fn") && is_item_start()) {
        pos_ += 2;
        skip();
        if (pos_ < text_.size() && text_[pos_] == '@') {
          std::string name = func_name();
          if (funcs_.count(name)) fail(fmt::format("function `@{}` twice", name));
          Func func;
          func.name = name;
          funcs_[name] = m_.funcs.add(std::move(func));
          continue;
        }
      }
      pos_ = before;
      // skip one token
      if (text_[pos_] == '"') { (void)quoted(); continue; }
      if (word_char(text_[pos_])) (void)word();
      else ++pos_;
    }
  }
  bool is_item_start() const {
    size_t i = pos_;
    while (i > 0 && (text_[i - 1] == ' ' || text_[i - 1] == '\t')) --i;
    return i == 0 || text_[i - 1] == '\n';
  }

  FuncId func_ref() {
    std::string name = func_name();
    auto it = funcs_.find(name);
    if (it == funcs_.end()) { fail(fmt::format("unknown function `@{}`", name)); return FuncId(0); }
    return it->second;
  }
  DataId data_ref() {
    uint64_t n = id_number('D');
    if (n > 100000) { fail("data number too large"); return DataId(0); }
    while (m_.datas.size() <= n) m_.datas.add(Data{});
    return DataId(static_cast<uint32_t>(n));
  }

  // --- types ---
  std::vector<TypeId> types_until(std::string_view close1, std::string_view close2) {
    std::vector<TypeId> out;
    while (error_.empty() && !peek(close1) && !peek(close2)) {
      out.push_back(type());
      if (!take(",")) break;
    }
    return out;
  }
  TypeId type() {
    if (++depth_ > kMaxNesting) { fail("types nested too deep"); return TypeId(0); }
    Type t;
    if (take("u32")) t.kind = TypeKind::U32;
    else if (take("f32")) t.kind = TypeKind::F32;
    else if (take("nat")) t.kind = TypeKind::Nat;
    else if (take("any")) t.kind = TypeKind::Any;
    else if (take("token")) t.kind = TypeKind::Token;
    else if (take("enum")) {
      t.kind = TypeKind::Enum;
      expect("(");
      t.count = static_cast<uint32_t>(number());
      expect(")");
    } else if (take("struct")) {
      t.kind = TypeKind::Struct;
      expect("{");
      t.parts = types_until("}", "}");
      expect("}");
    } else if (take("sum")) {
      t.kind = TypeKind::Sum;
      expect("{");
      do t.variants.push_back(types_until("|", "}"));
      while (error_.empty() && take("|"));
      expect("}");
    } else if (take("ref")) {
      t.kind = TypeKind::Ref;
      t.data = data_ref();
    } else if (take("array")) {
      t.kind = TypeKind::Array;
      t.parts = {type()};
    } else if (take("fn")) {
      t.kind = TypeKind::Fn;
      expect("(");
      TypeId param = type();
      expect(")");
      expect("->");
      t.parts = {param, type()};
    } else fail("expected a type");
    --depth_;
    if (!error_.empty()) return m_.intern(Type{});
    return m_.intern(std::move(t));
  }

  // --- items ---
  void item() {
    if (take("data")) {
      DataId id = data_ref();
      Data data;
      data.name = quoted();
      in_data_ = true;
      data.shareable = !take("affine");
      expect("{");
      while (error_.empty() && !peek("}")) {
        CtorLayout ctor;
        if (take("nullary")) ctor.repr = CtorRepr::Nullary;
        else if (take("packed")) ctor.repr = CtorRepr::Packed;
        else expect("node");
        ctor.name = quoted();
        expect("(");
        ctor.fields = types_until(")", ")");
        expect(")");
        data.ctors.push_back(std::move(ctor));
        if (!take(";")) break;
      }
      expect("}");
      in_data_ = false;
      if (error_.empty()) m_.datas[id] = std::move(data);
    } else if (take("string")) {
      uint64_t n = id_number('S');
      if (n != m_.strings.size()) fail("strings must be numbered in order");
      expect("[");
      std::u32string text;
      while (error_.empty() && !peek("]")) text += static_cast<char32_t>(number());
      expect("]");
      m_.strings.push_back(std::move(text));
    } else if (take("effect")) {
      uint64_t n = id_number('E');
      if (n != m_.effects.size()) fail("effects must be numbered in order");
      Effect effect;
      effect.name = quoted();
      expect("(");
      effect.args = types_until(")", ")");
      expect(")");
      expect("->");
      effect.answer = type();
      if (take("c")) effect.c_path = quoted();
      m_.effects.add(std::move(effect));
    } else if (take("string_data")) m_.string_data = data_ref();
    else if (take("io_op_data")) m_.io_op_data = data_ref();
    else if (take("owned")) m_.owned = true;
    else if (take("entry")) {
      m_.main_kind = take("io") ? MainKind::Io : MainKind::Value;
      if (m_.main_kind == MainKind::Value) expect("value");
      m_.entry = func_ref();
    } else if (take("fn")) func();
    else fail("expected an item (data, string, effect, entry, fn)");
  }

  void func() {
    vars_.clear();
    joins_.clear();
    FuncId id = func_ref();
    std::vector<VarId> params;
    std::vector<bool> borrowed;
    bool any_borrow = false;
    expect("(");
    while (error_.empty() && !peek(")")) {
      bool borrow = take("borrow");
      any_borrow |= borrow;
      borrowed.push_back(borrow);
      params.push_back(binder());
      if (!take(",")) break;
    }
    expect(")");
    expect("->");
    TypeId result = type();
    NodeId body_id = block();
    if (!error_.empty()) return;
    Func& f = m_.funcs[id];
    f.params = std::move(params);
    if (any_borrow) f.borrowed = std::move(borrowed);
    f.result = result;
    f.body = body_id;
  }

  // --- variables ---
  std::string var_name() {
    skip();
    if (pos_ >= text_.size() || text_[pos_] != '%') { fail("expected a variable"); return ""; }
    ++pos_;
    return word();
  }
  VarId binder() {
    std::string name = var_name();
    expect(":");
    TypeId t = type();
    if (!error_.empty()) return VarId(0);
    VarId id = m_.vars.add(Var{t, name});
    vars_[name] = id;
    return id;
  }
  VarId use() {
    std::string name = var_name();
    auto it = vars_.find(name);
    if (it == vars_.end()) { fail(fmt::format("unknown variable `%{}`", name)); return VarId(0); }
    return it->second;
  }
  Slice uses() {
    std::vector<VarId> out;
    expect("(");
    while (error_.empty() && !peek(")")) {
      out.push_back(use());
      if (!take(",")) break;
    }
    expect(")");
    return m_.var_lists.add(out);
  }
  Slice binders() {
    std::vector<VarId> out;
    expect("(");
    while (error_.empty() && !peek(")")) {
      const bool borrow = take("borrow");
      out.push_back(binder());
      if (borrow && error_.empty()) m_.vars[out.back()].borrowed = true;
      if (!take(",")) break;
    }
    expect(")");
    return m_.var_lists.add(out);
  }

  // --- bodies ---
  NodeId block() {
    if (++depth_ > kMaxNesting) { fail("bodies nested too deep"); return NodeId(0); }
    expect("{");
    NodeId first, last;
    bool done = false;
    while (error_.empty() && !done) {
      Node n = statement(done);
      NodeId id = m_.nodes.add(std::move(n));
      if (last.valid()) m_.nodes[last].next = id;
      else first = id;
      last = id;
    }
    expect("}");
    --depth_;
    return first;
  }

  Node statement(bool& terminator) {
    Node n;
    if (take("let")) {
      n.kind = NodeKind::Let;
      const bool borrow = take("borrow");
      std::string name = var_name();
      expect(":");
      TypeId t = type();
      expect("=");
      n.expr = expr();
      if (error_.empty()) {
        n.var = m_.vars.add(Var{t, name, borrow});
        vars_[name] = n.var;
      }
    } else if (take("open")) {
      n.kind = NodeKind::Open;
      n.subject = use();
      n.imm = number();
      n.vars = binders();
      if (take("token")) {
        std::string name = var_name();
        n.var = m_.vars.add(Var{m_.intern(Type{TypeKind::Token}), name});
        vars_[name] = n.var;
      }
    } else if (take("dup")) {
      n.kind = NodeKind::Dup;
      n.subject = use();
    } else if (take("drop")) {
      n.kind = NodeKind::Drop;
      n.subject = use();
    } else if (peek("join") || peek("loop")) {
      n.kind = NodeKind::Join;
      n.loop = take("loop");
      if (!n.loop) expect("join");
      uint64_t label = id_number('j');
      n.join = m_.new_join();
      n.vars = binders();
      joins_[label] = n.join;
      n.body = block();
    } else if (take("fork")) {
      n.kind = NodeKind::Fork;
      expect("{");
      std::vector<std::pair<std::string, TypeId>> results;
      while (error_.empty() && !peek("}")) {
        std::string name = var_name();
        expect(":");
        TypeId t = type();
        expect("=");
        CallSite call;
        call.bang = take("call!");
        if (!call.bang) expect("call");
        call.func = func_ref();
        call.args = uses();
        results.emplace_back(name, t);
        n.calls.push_back(call);
      }
      expect("}");
      std::vector<VarId> ids;
      for (auto& [name, t] : results) {
        VarId v = m_.vars.add(Var{t, name});
        vars_[name] = v;
        ids.push_back(v);
      }
      n.vars = m_.var_lists.add(ids);
    } else if (peek("case") || peek("switch")) {
      terminator = true;
      n.kind = take("case") ? NodeKind::Case : (take("switch"), NodeKind::Switch);
      n.subject = use();
      expect("{");
      while (error_.empty() && !peek("}")) {
        auto saved = vars_;   // arms do not see each other's variables
        if (take("else")) {
          expect("=>");
          n.other = block();
        } else {
          Arm arm;
          arm.value = number();
          expect("=>");
          arm.body = block();
          n.arms.push_back(arm);
        }
        vars_ = std::move(saved);
      }
      expect("}");
    } else if (take("ret")) {
      terminator = true;
      n.kind = NodeKind::Ret;
      n.subject = use();
    } else if (take("tail")) {
      terminator = true;
      n.kind = NodeKind::Tail;
      n.func = func_ref();
      n.args = uses();
    } else if (take("jump")) {
      terminator = true;
      n.kind = NodeKind::Jump;
      uint64_t label = id_number('j');
      auto it = joins_.find(label);
      if (it == joins_.end()) fail(fmt::format("unknown join point `j{}`", label));
      else n.join = it->second;
      n.args = uses();
    } else if (take("abort")) {
      terminator = true;
      n.kind = NodeKind::Abort;
      n.imm = number();
    } else fail("expected a statement");
    return n;
  }

  Expr expr() {
    Expr e;
    skip();
    if (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') {
      e.kind = ExprKind::Const;
      e.imm = number();
      return e;
    }
    std::string w = word();
    auto with = [&](ExprKind kind, int numbers) {
      e.kind = kind;
      if (numbers > 0) e.imm = number();
      if (numbers > 1) e.imm2 = number();
    };
    if (w == "str") {
      e.kind = ExprKind::Str;
      e.imm = id_number('S');
      return e;
    }
    if (w == "struct") with(ExprKind::Struct, 0);
    else if (w == "get") with(ExprKind::Get, 1);
    else if (w == "variant") with(ExprKind::Variant, 1);
    else if (w == "variant_get") with(ExprKind::VariantGet, 2);
    else if (w == "con") with(ExprKind::Con, 1);
    else if (w == "con_get") with(ExprKind::ConGet, 2);
    else if (w == "call" || w == "call!") { e.kind = ExprKind::Call; e.bang = w == "call!"; e.func = func_ref(); }
    else if (w == "apply") e.kind = ExprKind::Apply;
    else if (w == "closure") { e.kind = ExprKind::Closure; e.func = func_ref(); }
    else if (w == "request") { e.kind = ExprKind::Request; e.imm = id_number('E'); }
    else if (w == "box") e.kind = ExprKind::Box;
    else if (w == "unbox") e.kind = ExprKind::Unbox;
    else {
      auto it = prims_.find(w);
      if (it == prims_.end()) { fail(fmt::format("unknown operation `{}`", w)); return e; }
      e.kind = ExprKind::Prim;
      e.prim = it->second;
    }
    e.args = uses();
    if (e.kind == ExprKind::Con && take("reuse")) e.reuse = use();
    if (e.kind == ExprKind::Prim && take("in_place")) e.in_place = true;
    if (e.kind == ExprKind::Prim && take("in_range")) e.in_range = true;
    return e;
  }

  std::string_view text_;
  size_t pos_ = 0;
  uint32_t depth_ = 0;
  bool in_data_ = false;
  std::string error_;
  Module m_;
  std::unordered_map<std::string, Prim> prims_;
  std::unordered_map<std::string, FuncId> funcs_;
  std::unordered_map<std::string, VarId> vars_;
  std::unordered_map<uint64_t, JoinId> joins_;
};

}  // namespace

ParsedFlow parse_module(std::string_view text) { return Parser(text).run(); }

}  // namespace bendc::flow
