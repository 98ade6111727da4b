// Random pattern rows: running the case tree on random values must give what trying the rows top to bottom gives.
// Types: N = Nat, B = Bool, L = List of N, U = U32. A program with inner matches may be refused (F1, F2, C15); then it is skipped.
#include <doctest/doctest.h>

#include <random>

#include "elaborate_fixture.h"

using bendc::test::Elaborated;
namespace core = bendc::core;

namespace {

// A value or a pattern. Patterns: name "" is `_`, "x.." a variable; numbers in `number` when `literal`.
struct Tree {
  std::string name;         // constructor, variable or ""
  std::vector<Tree> fields;
  bool variable = false, literal = false;
  uint32_t number = 0;      // of a Nat or U32
  char type = 'N';
};

using Bindings = std::vector<std::pair<std::string, Tree>>;

struct Body;
struct Row {
  std::vector<Tree> patterns;
  std::vector<Body> body;   // one
};
struct Body {
  uint32_t answer = 0;
  std::vector<std::string> uses;       // leaf: (answer, uses..)
  std::vector<std::string> scrutinees; // match
  std::vector<Row> rows;
};

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  Tree value(char type, uint32_t depth) {
    Tree v{.type = type};
    if (type == 'N') {
      v.literal = true;
      v.number = pick(8) == 0 ? 298 + pick(5) : pick(5);
    } else if (type == 'U') {
      v.literal = true;
      v.number = pick(4);
    } else if (type == 'B') {
      v.name = pick(2) == 0 ? "True" : "False";
    } else if (depth == 0 || pick(3) == 0) {
      v.name = "Nil";
    } else {
      v.name = "Con";
      v.fields = {value('N', 0), value('L', depth - 1)};
    }
    return v;
  }

  Tree pattern(char type, uint32_t depth, std::vector<std::pair<std::string, char>>& variables) {
    Tree p{.type = type};
    if (pick(5) < 2) {
      p.variable = true;
      if (pick(4) != 0) {
        p.name = "x" + std::to_string(next_++);
        variables.emplace_back(p.name, type);
      }
      return p;
    }
    if (type == 'N') {
      if (depth > 0 && pick(2) == 0) {
        p.name = "Succ";
        p.number = 1 + pick(2);
        p.fields = {pattern('N', depth - 1, variables)};
      } else {
        p.literal = true;
        p.number = pick(8) == 0 ? 298 + pick(5) : pick(4);
      }
    } else if (type == 'U') {
      p.literal = true;
      p.number = pick(4);
    } else if (type == 'B') {
      p.name = pick(2) == 0 ? "True" : "False";
    } else if (depth == 0 || pick(3) == 0) {
      p.name = "Nil";
    } else {
      p.name = "Con";
      p.fields = {pattern('N', 1, variables), pattern('L', depth - 1, variables)};
    }
    return p;
  }

  Body body(std::vector<std::pair<std::string, char>> scope, uint32_t depth) {
    Body b;
    if (depth > 0 && !scope.empty() && pick(2) == 0) {
      std::vector<char> types;
      uint32_t count = 1 + pick(2);
      for (uint32_t i = 0; i < count; ++i) {
        auto& v = scope[scope.size() - 1 - pick(static_cast<uint32_t>(std::min<size_t>(scope.size(), 4)))];
        b.scrutinees.push_back(v.first);
        types.push_back(v.second);
      }
      rows(b, types, scope, depth - 1);
      return b;
    }
    b.answer = next_++;
    for (auto& v : scope) b.uses.push_back(v.first);
    return b;
  }

  void rows(Body& b, const std::vector<char>& types, const std::vector<std::pair<std::string, char>>& scope, uint32_t depth) {
    uint32_t count = 1 + pick(4);
    for (uint32_t r = 0; r <= count; ++r) {
      Row row;
      auto inner = scope;
      for (char t : types) {
        if (r == count) row.patterns.push_back(Tree{.variable = true, .type = t});   // a last row for everything
        else row.patterns.push_back(pattern(t, 2, inner));
      }
      row.body.push_back(body(inner, depth));
      b.rows.push_back(std::move(row));
    }
  }

 private:
  std::mt19937 random_;
  uint32_t next_ = 0;
};

std::string pattern_text(const Tree& p) {
  if (p.variable) return p.name.empty() ? "_" : p.name;
  if (p.literal) return std::to_string(p.number) + (p.type == 'N' ? "n" : "");
  if (p.name == "Succ") return std::to_string(p.number) + "n+" + pattern_text(p.fields[0]);
  if (p.name == "Con") return "Con{" + pattern_text(p.fields[0]) + ", " + pattern_text(p.fields[1]) + "}";
  return p.name + "{}";
}

std::string body_text(const Body& b, size_t indent) {
  std::string pad(indent, ' ');
  if (b.rows.empty()) {
    std::string out = pad + "(" + std::to_string(b.answer) + "n";
    for (auto& u : b.uses) out += ", " + u;
    return out + ", 0n)\n";
  }
  std::string out = pad + "match ";
  for (auto& s : b.scrutinees) out += s + ", ";
  out += ":\n";
  for (auto& r : b.rows) {
    out += pad + "  case ";
    for (auto& p : r.patterns) out += pattern_text(p) + ", ";
    out += ":\n" + body_text(r.body[0], indent + 4);
  }
  return out;
}

bool matches(const Tree& p, const Tree& v, Bindings& bindings) {
  if (p.variable) {
    if (!p.name.empty()) bindings.emplace_back(p.name, v);
    return true;
  }
  if (p.literal) return p.number == v.number;
  if (p.name == "Succ") {
    if (v.number < p.number) return false;
    Tree rest = v;
    rest.number -= p.number;
    return matches(p.fields[0], rest, bindings);
  }
  if (p.name != v.name) return false;
  for (size_t i = 0; i < p.fields.size(); ++i) {
    if (!matches(p.fields[i], v.fields[i], bindings)) return false;
  }
  return true;
}

std::string value_text(const Tree& v) {
  if (v.literal) return std::to_string(v.number);
  std::string out = v.name;
  for (auto& f : v.fields) out += "(" + value_text(f) + ")";
  return out;
}

const Tree& lookup(const Bindings& scope, const std::string& name) {
  for (size_t i = scope.size(); i-- > 0;) {
    if (scope[i].first == name) return scope[i].second;
  }
  FAIL("unbound " << name);
  return scope[0].second;
}

std::string expected(const Body& b, const Bindings& scope) {
  if (b.rows.empty()) {
    std::string out = std::to_string(b.answer);
    for (auto& u : b.uses) out += " " + value_text(lookup(scope, u));
    return out;
  }
  for (auto& r : b.rows) {
    Bindings inner = scope;
    bool all = true;
    for (size_t i = 0; i < r.patterns.size() && all; ++i) all = matches(r.patterns[i], lookup(scope, b.scrutinees[i]), inner);
    if (all) return expected(r.body[0], inner);
  }
  return "none";
}

// Runs a case tree.
class Machine {
 public:
  Machine(Elaborated& e) : e_(e) {}

  std::string run(core::TermId id, std::vector<Tree> args) {
    std::reverse(args.begin(), args.end());
    std::vector<Tree> env;
    for (;;) {
      const core::Term& t = e_.result.book.terms[id];
      if (t.kind == core::TermKind::Lam) {
        env.push_back(args.back());
        args.pop_back();
        id = core::TermId(t.a);
      } else if (t.kind == core::TermKind::Mat) {
        Tree v = args.back();
        std::string ctor(e_.names.text(e_.result.book.ctors[core::CtorId(t.a)].name));
        bool nat = v.literal && v.type == 'N';
        if (nat ? (ctor == "Zero" ? v.number == 0 : v.number > 0) : v.name == ctor) {
          args.pop_back();
          if (nat && v.number > 0) {
            --v.number;
            args.push_back(v);
          } else {
            for (size_t i = v.fields.size(); i-- > 0;) args.push_back(v.fields[i]);
          }
          id = core::TermId(t.b);
        } else {
          id = core::TermId(t.c);
        }
      } else if (t.kind == core::TermKind::MatLit) {
        bool hit = e_.result.book.terms[core::TermId(t.a)].a == args.back().number;
        if (hit) args.pop_back();
        id = core::TermId(hit ? t.b : t.c);
      } else if (t.kind == core::TermKind::Efq) {
        return "none";
      } else {
        break;
      }
    }
    if (!args.empty()) return "arguments left";
    std::string out;
    for (;;) {  // the answer tuple
      const core::Term& t = e_.result.book.terms[id];
      if (t.kind != core::TermKind::Ctr) break;
      auto fields = e_.result.book.list(t.b, t.c);
      if (fields.size() != 2 || name(t) != "Tuple") break;
      out += (out.empty() ? "" : " ") + value_text(build(fields[0], env));
      id = fields[1];
    }
    return out;
  }

 private:
  std::string name(const core::Term& t) { return std::string(e_.names.text(e_.result.book.ctors[core::CtorId(t.a)].name)); }

  Tree build(core::TermId id, const std::vector<Tree>& env) {
    const core::Term& t = e_.result.book.terms[id];
    if (t.kind == core::TermKind::Var) return env.at(t.a);
    if (t.kind == core::TermKind::Nat || t.kind == core::TermKind::U32) return {.literal = true, .number = t.a};
    REQUIRE(t.kind == core::TermKind::Ctr);
    auto fields = e_.result.book.list(t.b, t.c);
    if (name(t) == "Zero") return {.literal = true, .number = 0};
    if (name(t) == "Succ") {
      Tree v = build(fields[0], env);
      ++v.number;
      return v;
    }
    Tree v{.name = name(t)};
    for (core::TermId f : fields) v.fields.push_back(build(f, env));
    return v;
  }

  Elaborated& e_;
};

}  // namespace

TEST_CASE("case tree: random rows agree with trying them in order") {
  int accepted = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    Generator g(seed);
    const std::string types = "NLBU";
    std::vector<char> params;
    std::vector<std::pair<std::string, char>> scope;
    std::string head = "def f(";
    uint32_t count = 1 + g.pick(3);
    Body body;
    for (uint32_t i = 0; i < count; ++i) {
      params.push_back(types[g.pick(4)]);
      std::string name = "p" + std::to_string(i);
      scope.emplace_back(name, params.back());
      head += name + ": Nat, ";
      body.scrutinees.push_back(name);
    }
    g.rows(body, params, scope, seed % 3);
    std::string text = head + ") -> Nat:\n" + body_text(body, 2);
    Elaborated e(text);
    if (!e.errors.empty()) {
      for (const auto& d : e.result.diagnostics.all()) {
        bool refusal = d.code == bendc::Code::F1 || d.code == bendc::Code::F2 || d.code == bendc::Code::C15;
        CHECK_MESSAGE(refusal, text << e.errors);
      }
      continue;
    }
    ++accepted;
    Machine machine(e);
    for (int trial = 0; trial < 30; ++trial) {
      Bindings values;
      std::vector<Tree> args;
      for (uint32_t i = 0; i < count; ++i) {
        args.push_back(g.value(params[i], 3));
        values.emplace_back(scope[i].first, args.back());
      }
      std::string want = expected(body, values), got = machine.run(e.def("f").body, args);
      if (want != got) {
        std::string shown;
        for (const Tree& a : args) shown += value_text(a) + " ";
        FAIL_CHECK(text << "on " << shown << "want " << want << ", got " << got << "\n" << e.body("f"));
        break;
      }
    }
  }
  CHECK(accepted > 150);
}
