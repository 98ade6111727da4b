// bendc-generate: random well-typed programs for comparing compiled code with the checker's evaluator.
//   bendc-generate SEED COUNT    one file with COUNT independent programs (a few types and defs each) whose main is the tuple of their results
// The programs stop by construction: recursion is structural, with one call an arm, on numbers below 6 and lists of at most 4 elements, so the
// evaluator finishes soon. Every binder is `+` at a copyable type, so affinity never stands in the way; functions are used once.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Random {
  uint64_t state;
  uint32_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<uint32_t>(state >> 16);
  }
  uint32_t below(uint32_t n) { return next() % n; }
  bool chance(uint32_t percent) { return below(100) < percent; }
};

struct Data;
struct Type {
  enum Kind { U32, Nat, Bool, Text, F32, List, Maybe, Pair, User } kind = U32;
  std::vector<std::shared_ptr<Type>> parts;
  const Data* data = nullptr;
};
using TypePtr = std::shared_ptr<Type>;

struct Ctor {
  std::string name;
  std::vector<TypePtr> fields;   // a null field is the datatype itself
};
struct Data {
  std::string name;
  std::vector<Ctor> ctors;       // the first has no recursive field
};

struct Def {
  std::string name;
  std::vector<TypePtr> params;
  TypePtr result;
  bool recursive = false;        // on its first parameter
};

struct Local {
  std::string name;
  TypePtr type;
};

std::string show(const TypePtr& t) {
  switch (t->kind) {
    case Type::U32: return "U32";
    case Type::Nat: return "Nat";
    case Type::Bool: return "Bool";
    case Type::Text: return "String";
    case Type::F32: return "F32";
    case Type::List: return "List<&2, " + show(t->parts[0]) + ">";
    case Type::Maybe: return "Maybe<&2, " + show(t->parts[0]) + ">";
    case Type::Pair: return "Sigma<&2, &2, " + show(t->parts[0]) + ", _ => " + show(t->parts[1]) + ">";
    case Type::User: return t->data->name;
  }
  return "";
}

bool same(const TypePtr& a, const TypePtr& b) { return show(a) == show(b); }

TypePtr make(Type::Kind kind, std::vector<TypePtr> parts = {}) {
  auto t = std::make_shared<Type>();
  t->kind = kind;
  t->parts = std::move(parts);
  return t;
}

class Program {
 public:
  Program(Random& random, std::string prefix) : r_(random), prefix_(std::move(prefix)) {}

  std::string run() {
    for (uint32_t i = r_.below(3); i > 0; --i) add_data();
    for (uint32_t i = 2 + r_.below(5); i > 0; --i) add_def();
    // Every def is called at least once.
    for (const Def& def : defs_) {
      locals_.clear();
      value_ += call(def, 3) + ", ";
      type_ += show(def.result) + " & ";
    }
    return out_;
  }
  // Both end in a separator.
  [[nodiscard]] const std::string& main_type() const { return type_; }
  [[nodiscard]] const std::string& main_value() const { return value_; }

 private:
  TypePtr type(int depth) {
    switch (r_.below(depth > 0 ? 10 : 5)) {
      case 0: case 1: return make(Type::U32);
      case 2: return make(Type::Nat);
      case 3: return make(Type::Bool);
      case 4: return r_.chance(50) ? make(Type::Text) : make(r_.chance(30) ? Type::F32 : Type::U32);
      case 5: return make(Type::List, {type(depth - 1)});
      case 6: return make(Type::Maybe, {type(depth - 1)});
      case 7: return make(Type::Pair, {type(depth - 1), type(depth - 1)});
      default:
        if (datas_.empty()) return make(Type::List, {type(depth - 1)});
        TypePtr t = make(Type::User);
        t->data = datas_[r_.below(static_cast<uint32_t>(datas_.size()))].get();
        return t;
    }
  }

  void add_data() {
    auto data = std::make_unique<Data>();
    data->name = prefix_ + "T" + std::to_string(datas_.size());
    const uint32_t ctors = r_.chance(10) ? 9 + r_.below(3) : 1 + r_.below(4);
    for (uint32_t c = 0; c < ctors; ++c) {
      Ctor ctor;
      ctor.name = prefix_ + "K" + std::to_string(datas_.size()) + "x" + std::to_string(c);
      for (uint32_t f = r_.below(4); f > 0; --f) ctor.fields.push_back(c > 0 && r_.chance(30) ? nullptr : type(1));
      data->ctors.push_back(std::move(ctor));
    }
    out_ += "type " + data->name + " is Data:\n";
    for (const Ctor& ctor : data->ctors) {
      out_ += "  " + ctor.name + "{";
      for (size_t f = 0; f < ctor.fields.size(); ++f)
        out_ += (f > 0 ? ", " : "") + std::string(r_.chance(20) ? "+" : "") + "f" + std::to_string(f) + ": " + (ctor.fields[f] ? show(ctor.fields[f]) : data->name);
      out_ += "}\n";
    }
    out_ += "\n";
    datas_.push_back(std::move(data));
  }

  std::string fresh() { return "v" + std::to_string(counter_++); }

  std::string variable(const TypePtr& t) {
    std::vector<const Local*> fits;
    for (const Local& l : locals_)
      if (same(l.type, t)) fits.push_back(&l);
    return fits.empty() ? "" : fits[r_.below(static_cast<uint32_t>(fits.size()))]->name;
  }

  std::string literal(const TypePtr& t, int depth) {
    switch (t->kind) {
      case Type::U32: return std::to_string(r_.chance(80) ? r_.below(10) : r_.next());
      case Type::Nat: return std::to_string(r_.chance(90) ? r_.below(8) : r_.below(1000)) + "n";
      case Type::Bool: return r_.chance(50) ? "True{}" : "False{}";
      case Type::F32: return std::to_string(r_.below(20)) + "." + std::to_string(r_.below(4) * 25);
      case Type::Text: {
        std::string s = "\"";
        for (uint32_t i = r_.below(4); i > 0; --i) s += static_cast<char>('a' + r_.below(4));
        return s + "\"";
      }
      case Type::List: {
        std::string s = "[";
        for (uint32_t i = r_.below(4), n = i; i > 0; --i) s += (i < n ? ", " : "") + expr(t->parts[0], depth - 1);
        return s + "]";
      }
      case Type::Maybe: return r_.chance(30) ? "None{}" : "Some{" + expr(t->parts[0], depth - 1) + "}";
      case Type::Pair: return "(" + expr(t->parts[0], depth - 1) + ", " + expr(t->parts[1], depth - 1) + ")";
      case Type::User: {
        const Data& data = *t->data;
        const Ctor& ctor = data.ctors[depth > 0 ? r_.below(static_cast<uint32_t>(data.ctors.size())) : 0];
        std::string s = ctor.name + "{";
        for (size_t f = 0; f < ctor.fields.size(); ++f) s += (f > 0 ? ", " : "") + expr(ctor.fields[f] ? ctor.fields[f] : t, depth - 1);
        return s + "}";
      }
    }
    return "";
  }

  // An argument for the first parameter of a recursive def: small.
  std::string small(const TypePtr& t, int depth) {
    const std::string e = expr(t, depth);
    if (t->kind == Type::Nat) return "Nat.mod(" + e + ", 6n)";
    if (t->kind == Type::List) return "List.take(&2, " + show(t->parts[0]) + ", " + e + ", 4n)";
    return e;
  }

  std::string call(const Def& def, int depth) {
    std::string s = def.name + "(";
    for (size_t i = 0; i < def.params.size(); ++i)
      s += (i > 0 ? ", " : "") + (i == 0 && def.recursive ? small(def.params[i], depth - 1) : expr(def.params[i], depth - 1));
    return s + ")";
  }

  const Def* some_def(const TypePtr& t) {
    std::vector<const Def*> fits;
    for (const Def& d : defs_)
      if (same(d.result, t)) fits.push_back(&d);
    return fits.empty() ? nullptr : fits[r_.below(static_cast<uint32_t>(fits.size()))];
  }

  std::string expr(const TypePtr& t, int depth) {
    if (r_.chance(depth <= 0 ? 70 : 35))
      if (std::string v = variable(t); !v.empty()) return v;
    if (depth <= 0) return literal(t, 0);
    if (r_.chance(25))
      if (const Def* def = some_def(t); def != nullptr) return call(*def, depth);
    if (self_ != nullptr && self_calls_ > 0 && same(self_->result, t) && r_.chance(60)) {
      --self_calls_;
      std::string s = self_->name + "(" + smaller_;
      for (size_t i = 1; i < self_->params.size(); ++i) s += ", " + expr(self_->params[i], depth - 1);
      return s + ")";
    }
    auto u32 = make(Type::U32), nat = make(Type::Nat), boolean = make(Type::Bool), text = make(Type::Text), f32 = make(Type::F32);
    switch (r_.below(12)) {
      case 0: {   // through a function
        const TypePtr a = type(1);
        const std::string x = fresh();
        locals_.push_back({x, a});
        const uint32_t calls = self_calls_;
        self_calls_ = 0;
        const std::string body = expr(t, depth - 1);
        self_calls_ = calls;
        locals_.pop_back();
        const std::string lambda = "(+" + x + " => " + body + ")", arg = expr(a, depth - 1);
        switch (r_.below(3)) {
          case 0: return "{" + lambda + " : " + show(a) + " -> " + show(t) + "}(" + arg + ")";
          case 1: return "ap(" + show(a) + ", " + show(t) + ", " + lambda + ", " + arg + ")";
          default: return "twist(" + show(a) + ", " + show(t) + ", " + lambda + ")(" + arg + ")";
        }
      }
      case 1: return "Bool.pick(" + show(t) + ", " + expr(boolean, depth - 1) + ", " + expr(t, depth - 1) + ", " + expr(t, depth - 1) + ")";
      case 2: return "Maybe.default(&2, " + show(t) + ", " + expr(make(Type::Maybe, {t}), depth - 1) + ", " + expr(t, depth - 1) + ")";
      case 3: {   // through an array
        const std::string s = show(t);
        return "Pair.snd(Array<" + s + ">, " + s + ", Array.get(" + s + ", Array.set(" + s + ", Array.new(" + s + ", " + std::to_string(r_.below(3)) + "n, " + expr(t, depth - 1) +
               "), " + expr(u32, depth - 1) + ", " + expr(t, depth - 1) + "), " + expr(u32, depth - 1) + "))";
      }
      case 4: {   // through a generic pair
        const TypePtr b = type(1);
        return "left(" + show(t) + ", " + show(b) + ", flip(" + show(b) + ", " + show(t) + ", (" + expr(b, depth - 1) + ", " + expr(t, depth - 1) + ")))";
      }
      default: break;
    }
    switch (t->kind) {
      case Type::U32: {
        static const char* const kOps[] = {"add", "sub", "mul", "div", "mod", "and", "or", "xor", "min", "max"};
        switch (r_.below(5)) {
          case 0: return "U32.from_nat(" + expr(nat, depth - 1) + ")";
          case 1: return "U32." + std::string(r_.chance(50) ? "shln" : "shrn") + "(" + expr(u32, depth - 1) + ", " + expr(nat, depth - 1) + ")";
          case 2: return "Bool.to_u32(" + expr(boolean, depth - 1) + ")";
          default: return "U32." + std::string(kOps[r_.below(10)]) + "(" + expr(u32, depth - 1) + ", " + expr(u32, depth - 1) + ")";
        }
      }
      case Type::Nat: {
        static const char* const kOps[] = {"add", "sub", "div", "mod", "min", "max"};
        switch (r_.below(4)) {
          case 0: return "(1n+" + expr(nat, depth - 1) + ")";
          case 1: return "String.length(" + expr(text, depth - 1) + ")";
          case 2: {
            const TypePtr a = type(1);
            return "List.length(&2, " + show(a) + ", " + expr(make(Type::List, {a}), depth - 1) + ")";
          }
          default: return "Nat." + std::string(kOps[r_.below(6)]) + "(" + expr(nat, depth - 1) + ", " + expr(nat, depth - 1) + ")";
        }
      }
      case Type::Bool:
        switch (r_.below(4)) {
          case 0: return "U32.is_" + std::string(r_.chance(50) ? "lt" : "eq") + "(" + expr(u32, depth - 1) + ", " + expr(u32, depth - 1) + ")";
          case 1: return "Nat.is_" + std::string(r_.chance(50) ? "le" : "eq") + "(" + expr(nat, depth - 1) + ", " + expr(nat, depth - 1) + ")";
          case 2: return "Bool.and(" + expr(boolean, depth - 1) + ", " + expr(boolean, depth - 1) + ")";
          default: return "String.eq(" + expr(text, depth - 1) + ", " + expr(text, depth - 1) + ")";
        }
      case Type::F32: return "Bool.pick(F32, " + expr(boolean, depth - 1) + ", " + expr(f32, depth - 1) + ", " + expr(f32, depth - 1) + ")";
      case Type::Text:
        switch (r_.below(3)) {
          case 0: return "U32.show(" + expr(u32, depth - 1) + ")";
          case 1: return "String.take(" + expr(text, depth - 1) + ", 5n)";
          default: return "String.append(" + expr(text, depth - 1) + ", " + expr(text, depth - 1) + ")";
        }
      case Type::List: {
        const std::string a = show(t->parts[0]);
        switch (r_.below(4)) {
          case 0: return "List.append(&2, " + a + ", " + expr(t, depth - 1) + ", " + expr(t, depth - 1) + ")";
          case 1: return "List.reverse(&2, " + a + ", " + expr(t, depth - 1) + ")";
          case 2: {   // a template with a closed lambda
            const TypePtr b = type(1);
            const std::string x = fresh();
            std::vector<Local> locals{{x, b}};
            locals.swap(locals_);
            const uint32_t calls = self_calls_;
            self_calls_ = 0;
            const std::string body = expr(t->parts[0], depth - 1);
            self_calls_ = calls;
            locals.swap(locals_);
            return "each(~" + show(b) + ", ~" + a + ", ~(+" + x + " => " + body + "), " + expr(make(Type::List, {b}), depth - 1) + ")";
          }
          default: break;
        }
        break;
      }
      case Type::Maybe: case Type::Pair: case Type::User: break;
    }
    return literal(t, depth);
  }

  // Lets, then a result.
  void body(const std::string& indent, const TypePtr& result, int depth) {
    const size_t mark = locals_.size();
    for (uint32_t i = r_.below(3); i > 0; --i) {
      if (defs_.size() >= 2 && r_.chance(35)) {   // a fork
        const Def &f = defs_[r_.below(static_cast<uint32_t>(defs_.size()))], &g = defs_[r_.below(static_cast<uint32_t>(defs_.size()))];
        const std::string x = fresh(), y = fresh(), left = call(f, depth - 1), right = call(g, depth - 1);
        out_ += indent + "+" + x + " +" + y + " = " + left + " " + right + "\n";
        locals_.push_back({x, f.result});
        locals_.push_back({y, g.result});
        continue;
      }
      const TypePtr t = type(2);
      const std::string x = fresh(), e = expr(t, depth);
      out_ += indent + "+" + x + " : " + show(t) + " = " + e + "\n";
      locals_.push_back({x, t});
    }
    out_ += indent + expr(result, depth) + "\n";
    locals_.resize(mark);
  }

  void arm(const std::string& pattern, std::vector<Local> fields, const TypePtr& result, const std::string& rest) {
    const size_t mark = locals_.size();
    locals_.insert(locals_.end(), fields.begin(), fields.end());
    smaller_ = rest;
    self_calls_ = rest.empty() ? 0 : 1;
    out_ += "    case " + pattern + ":\n";
    body("      ", result, 3);
    self_calls_ = 0;
    locals_.resize(mark);
  }

  void add_def() {
    Def def;
    def.name = prefix_ + "f" + std::to_string(defs_.size());
    for (uint32_t i = r_.below(4); i > 0; --i) def.params.push_back(type(2));
    def.result = type(2);
    const bool split = !def.params.empty() && r_.chance(75);
    const Type::Kind kind = def.params.empty() ? Type::U32 : def.params[0]->kind;
    def.recursive = split && (kind == Type::Nat || kind == Type::List) && r_.chance(70);
    out_ += "def " + def.name + "(";
    locals_.clear();
    for (size_t i = 0; i < def.params.size(); ++i) {
      const std::string x = fresh();
      out_ += (i > 0 ? ", +" : "+") + x + ": " + show(def.params[i]);
      locals_.push_back({x, def.params[i]});
    }
    out_ += ") -> " + show(def.result) + ":\n";
    if (!split) {
      body("  ", def.result, 3);
    } else {
      const Local subject = locals_[0];
      locals_.erase(locals_.begin());
      if (def.recursive) self_ = &def;
      out_ += "  match " + subject.name + ":\n";
      match(subject.type, def.result, def.recursive);
      self_ = nullptr;
    }
    out_ += "\n";
    defs_.push_back(std::move(def));
  }

  void match(const TypePtr& t, const TypePtr& result, bool recursive) {
    switch (t->kind) {
      case Type::U32:
        for (uint32_t i = 1 + r_.below(3), n = 0; i > 0; --i) arm(std::to_string(n += r_.below(3) + (i > 0 ? 1 : 0)), {}, result, "");
        return last_arm(t, result);
      case Type::F32: case Type::Text:
        arm(t->kind == Type::F32 ? "1.25" : "\"ab\"", {}, result, "");
        return last_arm(t, result);
      case Type::Bool:
        arm("True{}", {}, result, "");
        if (r_.chance(30)) return last_arm(t, result);
        return arm("False{}", {}, result, "");
      case Type::Nat: {
        const std::string p = fresh();
        if (r_.chance(25)) arm("3n", {}, result, "");
        arm("0n", {}, result, "");
        return arm("1n++" + p, {{p, t}}, result, recursive ? p : "");
      }
      case Type::List: {
        const std::string h = fresh(), rest = fresh();
        if (r_.chance(25)) {
          const std::string a = fresh(), b = fresh();
          arm("[+" + a + ", +" + b + "]", {{a, t->parts[0]}, {b, t->parts[0]}}, result, "");
        }
        arm("[]", {}, result, "");
        return arm("+" + h + " <> +" + rest, {{h, t->parts[0]}, {rest, t}}, result, recursive ? rest : "");
      }
      case Type::Maybe: {
        const std::string x = fresh();
        arm("Some{+" + x + "}", {{x, t->parts[0]}}, result, "");
        if (r_.chance(30)) return last_arm(t, result);
        return arm("None{}", {}, result, "");
      }
      case Type::Pair: {
        const std::string x = fresh(), y = fresh();
        return arm("(+" + x + ", +" + y + ")", {{x, t->parts[0]}, {y, t->parts[1]}}, result, "");
      }
      case Type::User: {
        const auto& ctors = t->data->ctors;
        const size_t shown = ctors.size() > 1 && r_.chance(40) ? ctors.size() - 1 : ctors.size();
        for (size_t c = 0; c < shown; ++c) {
          std::vector<Local> fields;
          std::string pattern = ctors[c].name + "{";
          for (size_t f = 0; f < ctors[c].fields.size(); ++f) {
            const std::string x = fresh();
            pattern += (f > 0 ? ", +" : "+") + x;
            fields.push_back({x, ctors[c].fields[f] ? ctors[c].fields[f] : t});
          }
          arm(pattern + "}", fields, result, "");
        }
        if (shown < ctors.size()) last_arm(t, result);
        return;
      }
    }
  }

  void last_arm(const TypePtr& t, const TypePtr& result) {
    const std::string x = fresh();
    arm("+" + x, {{x, t}}, result, "");
  }

  Random& r_;
  std::string prefix_, out_, smaller_, type_, value_;
  std::vector<std::unique_ptr<Data>> datas_;
  std::vector<Def> defs_;
  std::vector<Local> locals_;
  const Def* self_ = nullptr;
  uint32_t self_calls_ = 0, counter_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Random random{std::strtoull(argv[1], nullptr, 10) * 0x9E3779B97F4A7C15ull + 0x1234567};
  for (int i = 0; i < 8; ++i) (void)random.next();
  const int count = std::atoi(argv[2]);
  std::string out =
      "import Base\n\n"
      "def ap(-A: Type, -B: Type, f: A -> B, x: A) -> B:\n  f(x)\n\n"
      "def twist(-A: Type, -B: Type, f: A -> B) -> A -> B:\n  x => f(x)\n\n"
      "def flip(-A: Data, -B: Data, p: Sigma<&2, &2, A, _ => B>) -> Sigma<&2, &2, B, _ => A>:\n  (x, y) = p\n  (y, x)\n\n"
      "def left(-A: Data, -B: Data, p: Sigma<&2, &2, A, _ => B>) -> A:\n  (x, _) = p\n  x\n\n"
      "def each(~A: Data, ~B: Data, ~f: A -> B, xs: List<&2, A>) -> List<&2, B>:\n  match xs:\n    case []:\n      []\n    case h <> t:\n      f(h) <> each(~A, ~B, ~f, t)\n\n";
  std::string type = "Unit", value = "Unit{}";
  for (int i = count; i-- > 0;) {
    Program program(random, "p" + std::to_string(i) + "_");
    out += program.run();
    type = program.main_type() + type;
    value = program.main_value() + value;
  }
  out += "def main() -> " + type + ":\n  (" + value + ")\n";
  std::fputs(out.c_str(), stdout);
  return 0;
}
