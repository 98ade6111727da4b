// Core terms as text, in the surface style of language.md section 11: literals, lists and tuples are sugared back, a variable that an inner
// binder of its name hides shows its level (`x^2`). Right-nested chains are loops; other nesting stops at kMaxDepth with `..`.
#include <fmt/format.h>

#include "checker/core.h"
#include "support/text.h"

namespace bendc::core {

namespace {

constexpr uint32_t kMaxDepth = 2000;

// Binding strength of the form printed, as in the operator table (language.md 2.1).
enum Level : uint8_t { kLoose = 0, kPair = 1, kCons = 5, kTight = 12 };

class Printer {
 public:
  Printer(const Book& book, const Interner& names, std::vector<Name> scope, bool lines) : book_(book), names_(names), scope_(std::move(scope)), lines_(lines) {
    // The base constructors are told by their bare keys.
    for (const auto& [key, id] : book.ctor_by_name) {
      std::string_view text = names.text(key);
      if (text == "Zero") zero_ = id;
      else if (text == "Succ") succ_ = id;
      else if (text == "Nil") nil_ = id;
      else if (text == "Con") con_ = id;
      else if (text == "Tuple") tuple_ = id;
      else if (text == "Chr") chr_ = id;
      else if (text == "SNil") snil_ = id;
      else if (text == "SCon") scon_ = id;
      else if (text == "U32") u32_ = id;
      else if (text == "F32") f32_ = id;
      else if (text == "WNil") wnil_ = id;
      else if (text == "WCon") wcon_ = id;
      else if (text == "True") true_ = id;
      else if (text == "False") false_ = id;
      else if (text == "ALeaf") leaf_ = id;
      else if (text == "ANode") node_ = id;
    }
  }

  std::string out;

  void print(TermId id, uint8_t min) {
    if (!id.valid()) {
      out += "?";
      return;
    }
    if (depth_ >= kMaxDepth) {
      out += "..";
      return;
    }
    ++depth_;
    const Term& t = book_.terms[id];
    bool parens = level(t) < min;
    if (parens) out += '(';
    form(t);
    if (parens) out += ')';
    --depth_;
  }

  void telescope(const std::vector<Telescope>& items, size_t base) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ", ";
      mark(items[i].quantity);
      out += name(items[i].name);
      out += ": ";
      print(items[i].type, kLoose);
      scope_.push_back(items[i].name);
    }
    (void)base;
  }
  void leave(size_t count) { scope_.resize(scope_.size() - count); }
  void indent(uint32_t by) { indent_ = by; }

 private:
  std::string_view name(Name n) const { return n.valid() ? names_.text(n) : std::string_view("_"); }
  std::string shown(Name key) const { return display_name(name(key)); }
  const Term& term(TermId id) const { return book_.terms[id]; }
  std::span<const TermId> fields(const Term& t) const { return book_.list(t.b, t.c); }
  bool is_ctor(TermId id, CtorId ctor) const { return id.valid() && term(id).kind == TermKind::Ctr && ctor.valid() && term(id).a == ctor.index; }
  bool is_ref(TermId id, std::string_view key) const { return term(id).kind == TermKind::Ref && name(book_.defs[DefId(term(id).a)].name) == key; }

  void mark(Quantity q) {
    if (q == Quantity::None) out += '-';
    if (q == Quantity::Many) out += '+';
  }

  uint8_t level(const Term& t) const {
    switch (t.kind) {
      case TermKind::Lam: case TermKind::All: case TermKind::Let: case TermKind::Rwt: return kLoose;
      case TermKind::Meet: return kCons;
      case TermKind::App:
        if (t.c == 2 && t.extra == 0) {
          if (is_ref(TermId(t.a), "Pair") || is_ref(TermId(t.a), "Or")) return kPair;
          if (is_ref(TermId(t.a), "Exists") && term(fields(t)[1]).kind == TermKind::Lam) return kLoose;
        }
        return kTight;
      case TermKind::Ctr:
        // An open list is a chain of `<>`; `1n+x` takes the rest of its line.
        if (CtorId(t.a) == con_ && t.c == 2) return list_is_closed(t) ? kTight : kCons;
        if (CtorId(t.a) == succ_ && t.c == 1) return nat_is_closed(t) ? kTight : kLoose;
        return kTight;
      case TermKind::Var: case TermKind::Ref: case TermKind::Kind: case TermKind::Quant: case TermKind::Qua: case TermKind::Adt:
      case TermKind::U32: case TermKind::Nat: case TermKind::F32: case TermKind::Str: case TermKind::Mat: case TermKind::MatLit:
      case TermKind::Efq: case TermKind::Eql: case TermKind::Rfl: case TermKind::Hole: case TermKind::Ann: case TermKind::Error: return kTight;
    }
    return kTight;
  }

  void form(const Term& t) {
    switch (t.kind) {
      case TermKind::Var: variable(t); break;
      case TermKind::Ref:
        out += shown(book_.defs[DefId(t.a)].name);
        if ((t.flags & kBang) != 0) out += '!';
        break;
      case TermKind::Let: let(t); break;
      case TermKind::Kind: kind(t); break;
      case TermKind::Quant: out += "Quant"; break;
      case TermKind::Qua: out += fmt::format("&{}", t.a); break;
      case TermKind::Meet:
        print(TermId(t.a), kCons + 1);
        out += " <&> ";
        print(TermId(t.b), kCons);
        break;
      case TermKind::All: function_type(t); break;
      case TermKind::Lam: lambda(t); break;
      case TermKind::App: call(t); break;
      case TermKind::Adt:
        out += shown(book_.datatypes[DataId(t.a)].name);
        if (t.c > 0) {
          out += '<';
          std::span<const TermId> args = fields(t);
          for (size_t i = 0; i < args.size(); ++i) {
            if (i > 0) out += ", ";
            print(args[i], i == 0 ? kCons : kLoose);
          }
          out += '>';
        }
        break;
      case TermKind::Ctr: constructor(t); break;
      case TermKind::U32: number(t.a); break;
      case TermKind::Nat:
        number(uint64_t(t.a) | (t.b == TermId::kNone ? 0 : uint64_t(t.b) << 32));
        out += 'n';
        break;
      case TermKind::F32: f32(t.a); break;
      case TermKind::Str:
        out += '"';
        for (char32_t c : book_.strings[t.a]) character(c, '"');
        out += '"';
        break;
      case TermKind::Mat:
      case TermKind::MatLit:
      case TermKind::Efq: match(t); break;
      case TermKind::Eql:
        out += '{';
        print(TermId(t.a), kLoose);
        out += " == ";
        print(TermId(t.b), kLoose);
        out += " : ";
        print(TermId(t.c), kLoose);
        out += '}';
        break;
      case TermKind::Rfl: out += "{==}"; break;
      case TermKind::Rwt: rewrite(t); break;
      case TermKind::Hole:
        out += '?';
        out += name(t.name);
        break;
      case TermKind::Ann:
        out += '{';
        print(TermId(t.a), kLoose);
        out += " : ";
        print(TermId(t.b), kLoose);
        out += '}';
        break;
      case TermKind::Error: out += "<error>"; break;
    }
  }

  void variable(const Term& t) {
    Name n = t.a < scope_.size() ? scope_[t.a] : t.name;
    out += name(n);
    for (size_t i = t.a + 1; i < scope_.size(); ++i) {
      if (!scope_[i].valid() || name(scope_[i]) != name(n)) continue;
      out += fmt::format("^{}", t.a);
      return;
    }
  }

  void kind(const Term& t) {
    const Term& q = term(TermId(t.a));
    if (q.kind == TermKind::Qua && q.a == 1) out += "Type";
    else if (q.kind == TermKind::Qua && q.a == 2) out += "Data";
    else {
      out += "Kind(";
      print(TermId(t.a), kLoose);
      out += ')';
    }
  }

  void function_type(const Term& first) {
    const Term* t = &first;
    size_t bound = 0;
    for (;;) {
      out += '@';
      mark(t->quantity);
      out += name(t->name);
      out += ':';
      print(TermId(t->a), kPair);
      out += " -> ";
      scope_.push_back(t->name);
      ++bound;
      TermId next(t->b);
      if (!next.valid() || term(next).kind != TermKind::All) {
        print(next, kLoose);
        break;
      }
      t = &term(next);
    }
    leave(bound);
  }

  void lambda(const Term& first) {
    const Term* t = &first;
    size_t bound = 0;
    for (;;) {
      mark(t->quantity == Quantity::Many ? Quantity::Many : Quantity::Lone);
      out += name(t->name);
      out += " => ";
      scope_.push_back(t->name);
      ++bound;
      TermId next(t->a);
      if (!next.valid() || term(next).kind != TermKind::Lam) {
        print(next, kLoose);
        break;
      }
      t = &term(next);
    }
    leave(bound);
  }

  void let(const Term& first) {
    const Term* t = &first;
    size_t bound = 0;
    for (;;) {
      for (uint32_t i = 0; i < t->b; ++i) {
        const LetRow& row = book_.let_rows[t->a + i];
        if (i > 0) out += ' ';
        mark(row.quantity);
        out += name(row.name);
      }
      out += " =";
      for (uint32_t i = 0; i < t->b; ++i) {
        out += ' ';
        print(book_.let_rows[t->a + i].value, t->b > 1 ? kTight : kLoose);
      }
      out += ";";
      newline();
      for (uint32_t i = 0; i < t->b; ++i) scope_.push_back(book_.let_rows[t->a + i].name);
      bound += t->b;
      TermId next(t->c);
      if (!next.valid() || term(next).kind != TermKind::Let) {
        print(next, kLoose);
        break;
      }
      t = &term(next);
    }
    leave(bound);
  }

  void call(const Term& t) {
    std::span<const TermId> args = fields(t);
    TermId head(t.a);
    if (args.size() == 2 && t.extra == 0) {
      bool pair = is_ref(head, "Pair");
      if (pair || is_ref(head, "Or")) {
        print(args[0], kPair + 1);
        out += pair ? " & " : " | ";
        print(args[1], kPair);
        return;
      }
      if (is_ref(head, "Exists") && term(args[1]).kind == TermKind::Lam) {
        const Term& body = term(args[1]);
        out += '&';
        out += name(body.name);
        out += ':';
        print(args[0], kPair);
        out += " -> ";
        scope_.push_back(body.name);
        print(TermId(body.a), kLoose);
        leave(1);
        return;
      }
    }
    print(head, kTight);
    out += '(';
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) out += ", ";
      if (i < t.extra) out += '~';
      print(args[i], kLoose);
    }
    out += ')';
  }

  // Constructors and the literals they spell ----------------------------------------------------------------------------------------------

  bool list_is_closed(const Term& t) const {
    const Term* at = &t;
    for (;;) {
      TermId tail = fields(*at)[1];
      if (is_ctor(tail, nil_)) return true;
      if (!is_ctor(tail, con_)) return false;
      at = &term(tail);
    }
  }

  bool nat_is_closed(const Term& t) const {
    TermId at = fields(t)[0];
    while (is_ctor(at, succ_)) at = fields(term(at))[0];
    return is_ctor(at, zero_) || term(at).kind == TermKind::Nat;
  }

  void nat(const Term& t) {
    uint64_t count = 1;
    TermId at = fields(t)[0];
    for (; is_ctor(at, succ_); at = fields(term(at))[0]) ++count;
    const Term& rest = term(at);
    if (rest.kind == TermKind::Nat || is_ctor(at, zero_)) {
      if (rest.kind == TermKind::Nat) count += uint64_t(rest.a) | (rest.b == TermId::kNone ? 0 : uint64_t(rest.b) << 32);
      number(count);
      out += 'n';
      return;
    }
    number(count);
    out += "n+";
    print(at, kCons);
  }

  void list(const Term& t) {
    bool closed = list_is_closed(t);
    if (closed) out += '[';
    const Term* at = &t;
    for (bool more = true; more;) {
      print(fields(*at)[0], closed ? kLoose : kCons + 1);
      TermId tail = fields(*at)[1];
      more = is_ctor(tail, con_);
      if (more) {
        out += closed ? ", " : " <> ";
        at = &term(tail);
      } else if (!closed) {
        out += " <> ";
        print(tail, kCons);
      }
    }
    if (closed) out += ']';
  }

  void tuple(const Term& t) {
    out += '(';
    const Term* at = &t;
    for (;;) {
      print(fields(*at)[0], kLoose);
      out += ", ";
      TermId rest = fields(*at)[1];
      if (!is_ctor(rest, tuple_) || term(rest).c != 2) {
        print(rest, kLoose);
        break;
      }
      at = &term(rest);
    }
    out += ')';
  }

  // The code of a closed Chr, or false.
  bool char_code(TermId id, uint32_t& code) const {
    if (!is_ctor(id, chr_) || term(id).c != 1) return false;
    const Term& field = term(fields(term(id))[0]);
    if (field.kind == TermKind::U32) {
      code = field.a;
      return true;
    }
    return field.kind == TermKind::Ctr && CtorId(field.a) == u32_ && word(field, code);
  }

  bool string(const Term& t) {
    std::u32string text;
    const Term* at = &t;
    for (;;) {
      uint32_t code = 0;
      if (!char_code(fields(*at)[0], code)) return false;
      text.push_back(code);
      TermId tail = fields(*at)[1];
      if (is_ctor(tail, snil_)) break;
      if (term(tail).kind == TermKind::Str) {
        text += book_.strings[term(tail).a];
        break;
      }
      if (!is_ctor(tail, scon_)) return false;
      at = &term(tail);
    }
    out += '"';
    for (char32_t c : text) character(c, '"');
    out += '"';
    return true;
  }

  // U32{..} or F32{..} over 32 known bits.
  bool word(const Term& t, uint32_t& value) const {
    if (t.c != 1) return false;
    value = 0;
    TermId at = fields(t)[0];
    for (uint32_t bit = 0; bit < 32; ++bit) {
      if (!is_ctor(at, wcon_) || term(at).c != 2) return false;
      TermId head = fields(term(at))[0];
      if (is_ctor(head, true_)) value |= 1u << bit;
      else if (!is_ctor(head, false_)) return false;
      at = fields(term(at))[1];
    }
    return is_ctor(at, wnil_);
  }

  // The slots of an array tree, left to right, or false.
  bool slots(TermId root, std::vector<TermId>& found) const {
    std::vector<TermId> stack{root};
    while (!stack.empty()) {
      TermId id = stack.back();
      stack.pop_back();
      if (is_ctor(id, leaf_) && term(id).c == 1) {
        found.push_back(fields(term(id))[0]);
      } else if (is_ctor(id, node_) && term(id).c == 2) {
        stack.push_back(fields(term(id))[1]);
        stack.push_back(fields(term(id))[0]);
      } else {
        return false;
      }
    }
    return true;
  }

  void constructor(const Term& t) {
    CtorId ctor(t.a);
    uint32_t value = 0;
    if (ctor == zero_ && t.c == 0) { out += "0n"; return; }
    if (ctor == succ_ && t.c == 1) return nat(t);
    if (ctor == nil_ && t.c == 0) { out += "[]"; return; }
    if (ctor == con_ && t.c == 2) return list(t);
    if (ctor == tuple_ && t.c == 2) return tuple(t);
    if (ctor == snil_ && t.c == 0) { out += "\"\""; return; }
    if (ctor == scon_ && t.c == 2 && string(t)) return;
    if (ctor == u32_ && word(t, value)) return number(value);
    if (ctor == f32_ && word(t, value)) return f32(value);
    if (ctor == chr_ && t.c == 1) {
      const Term& code = term(fields(t)[0]);
      bool known = code.kind == TermKind::U32;
      if (known) value = code.a;
      else known = code.kind == TermKind::Ctr && CtorId(code.a) == u32_ && word(code, value);
      if (known) {
        out += '\'';
        character(value, '\'');
        out += '\'';
        return;
      }
    }
    if (ctor == leaf_ || ctor == node_) {
      std::vector<TermId> found;
      TermId self = self_id(t);
      if (self.valid() && slots(self, found)) {
        out += '[';
        for (size_t i = 0; i < found.size(); ++i) {
          if (i > 0) out += ", ";
          print(found[i], kLoose);
        }
        out += ']';
        return;
      }
    }
    out += shown(book_.ctors[ctor].name);
    out += '{';
    std::span<const TermId> items = fields(t);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ", ";
      print(items[i], kLoose);
    }
    out += '}';
  }

  TermId self_id(const Term& t) const { return TermId(static_cast<uint32_t>(&t - &*book_.terms.begin())); }

  void number(uint64_t value) {
    char buffer[24];
    out.append(buffer, text::u64_show(value, buffer));
  }

  void f32(uint32_t bits) {
    char buffer[text::kF32Chars];
    float value;
    static_assert(sizeof value == sizeof bits);
    __builtin_memcpy(&value, &bits, sizeof value);
    out.append(buffer, text::f32_show_point(value, buffer));
  }

  void character(char32_t c, char quote) {
    char buffer[16];
    out.append(buffer, text::escape_show(c, quote, buffer));
  }

  // Matches and proofs ----------------------------------------------------------------------------------------------------------------

  void newline() {
    if (!lines_) {
      out += ' ';
      return;
    }
    out += '\n';
    out.append(2 * indent_, ' ');
  }

  void match(const Term& first) {
    out += "\\{";
    ++indent_;
    const Term* t = &first;
    bool any = false;
    while (t->kind == TermKind::Mat || t->kind == TermKind::MatLit) {
      if (any) out += ';';
      if (any || lines_) newline();
      any = true;
      if (t->kind == TermKind::Mat) out += shown(book_.ctors[CtorId(t->a)].name);
      else print(TermId(t->a), kTight);
      out += ": ";
      print(TermId(t->b), kLoose);
      t = &term(TermId(t->c));
    }
    if (t->kind != TermKind::Efq) {
      if (any) out += ';';
      newline();
      print(self_id(*t), kLoose);
    }
    --indent_;
    out += '}';
  }

  void rewrite(const Term& t) {
    out += '%';
    TermId motive(t.b);
    bool plain = term(motive).kind == TermKind::Lam && term(TermId(term(motive).a)).kind == TermKind::Lam;
    if (!plain) {
      print(TermId(t.a), kTight);
      out += " : ";
      print(motive, kLoose);
    } else {
      const Term& outer = term(motive);
      const Term& inner = term(TermId(outer.a));
      std::string_view h = name(inner.name);
      if (h != "_") {
        out += h;
        out += '@';
      }
      print(TermId(t.a), kTight);
      out += " : ";
      // The evidence's own `_` would hide the endpoint's.
      scope_.push_back(outer.name);
      scope_.push_back(h == "_" ? Name() : inner.name);
      print(TermId(inner.a), kLoose);
      leave(2);
    }
    out += ';';
    newline();
    print(TermId(t.c), kLoose);
  }

  const Book& book_;
  const Interner& names_;
  std::vector<Name> scope_;
  bool lines_;
  uint32_t depth_ = 0, indent_ = 1;
  CtorId zero_, succ_, nil_, con_, tuple_, chr_, snil_, scon_, u32_, f32_, wnil_, wcon_, true_, false_, leaf_, node_;
};

void print_data(const Book& book, const Interner& names, const Datatype& d, std::string& out) {
  Printer p(book, names, {}, false);
  p.out += "type " + display_name(names.text(d.name));
  if (!d.params.empty()) {
    p.out += '<';
    p.telescope(d.params, 0);
    p.out += '>';
  }
  p.out += " is ";
  p.print(d.kind, kLoose);
  p.out += ":\n";
  for (CtorId c : d.ctors) {
    const Ctor& ctor = book.ctors[c];
    p.out += "  " + display_name(names.text(ctor.name)) + "{";
    p.telescope(ctor.fields, d.params.size());
    p.leave(ctor.fields.size());
    p.out += "}\n";
  }
  out += p.out;
}

void print_def(const Book& book, const Interner& names, const Def& d, std::string& out) {
  Printer p(book, names, {}, true);
  if (d.unsafe) p.out += "@unsafe ";
  p.out += d.kind == DefKind::Law ? "law " : "def ";
  p.out += display_name(names.text(d.name)) + " : ";
  p.print(d.type, kLoose);
  p.out += "\n";
  if (d.body.valid()) {
    p.out += "  = ";
    p.indent(2);
    p.print(d.body, kLoose);
    p.out += "\n";
  }
  for (const std::string& path : d.foreign_paths) p.out += fmt::format("  import \"{}\"\n", path);
  out += p.out;
}

}  // namespace

std::string print_term(const Book& book, const Interner& interner, TermId term, std::vector<Name> scope) {
  Printer p(book, interner, std::move(scope), false);
  p.print(term, kLoose);
  return std::move(p.out);
}

// The program's own declarations, in checking order; the library's are left out.
std::string print_book(const Book& book, const Interner& interner) {
  std::string out;
  auto own = [&](uint32_t module) { return module >= book.module_is_stdlib.size() || !book.module_is_stdlib[module]; };
  for (const Event& e : book.events) {
    size_t before = out.size();
    switch (e.kind) {
      case EventKind::CheckData:
        if (own(book.datatypes[DataId(e.id)].module)) print_data(book, interner, book.datatypes[DataId(e.id)], out);
        break;
      case EventKind::CheckLawType:
        // A filled law is printed at its fill.
        if (own(book.defs[DefId(e.id)].module) && !book.defs[DefId(e.id)].body.valid()) print_def(book, interner, book.defs[DefId(e.id)], out);
        break;
      case EventKind::CheckDef:
        if (own(book.defs[DefId(e.id)].module)) print_def(book, interner, book.defs[DefId(e.id)], out);
        break;
    }
    if (out.size() > before) out += '\n';
  }
  return out;
}

}  // namespace bendc::core
