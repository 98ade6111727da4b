// Core terms as text, in the surface style of language.md section 11: literals, lists and tuples are sugared back, a variable that an inner
// binder of its name hides shows its level (`x^2`). A form puts what it consists of on a work list, in order, so that printing needs no stack
// however deep a value nests.
#include <fmt/format.h>

#include "checker/core.h"
#include "support/text.h"

namespace bendc::core {

namespace {

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
    term_at(id, min);
    run();
  }

  void telescope(const std::vector<Telescope>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ", ";
      out += mark(items[i].quantity);
      out += name(items[i].name);
      out += ": ";
      print(items[i].type, kLoose);
      scope_.push_back(items[i].name);
    }
  }
  void leave_scope(size_t count) { scope_.resize(scope_.size() - count); }
  void indent(uint32_t by) { indent_ = by; }

 private:
  // One thing to print. `forms_` holds what the form being read consists of so far; run() takes from the back of `work_`.
  struct Action {
    enum class What : uint8_t { Text, Term, Bind, Leave, Newline, Indent } what = What::Text;
    uint8_t min = kLoose;      // Term
    TermId term;               // Term
    Name name;                 // Bind
    int32_t count = 0;         // Leave: binders; Indent: steps
    std::string text;          // Text
  };

  void run() {
    flush();
    while (!work_.empty()) {
      Action a = std::move(work_.back());
      work_.pop_back();
      switch (a.what) {
        case Action::What::Text: out += a.text; break;
        case Action::What::Bind: scope_.push_back(a.name); break;
        case Action::What::Leave: leave_scope(static_cast<size_t>(a.count)); break;
        case Action::What::Indent: indent_ = static_cast<uint32_t>(static_cast<int32_t>(indent_) + a.count); break;
        case Action::What::Newline:
          out += lines_ ? '\n' : ' ';
          if (lines_) out.append(2 * indent_, ' ');
          break;
        case Action::What::Term: {
          if (!a.term.valid()) {
            out += '?';
            break;
          }
          const Term& t = book_.terms[a.term];
          bool parens = level(t) < a.min;
          if (parens) out += '(';
          form(t);
          if (parens) text(")");
          flush();
          break;
        }
      }
    }
  }
  void flush() {
    while (!forms_.empty()) {
      work_.push_back(std::move(forms_.back()));
      forms_.pop_back();
    }
  }
  void text(std::string_view s) {
    if (forms_.empty()) out += s;   // nothing is waiting before it
    else if (forms_.back().what == Action::What::Text) forms_.back().text += s;
    else forms_.push_back({.text = std::string(s)});
  }
  void term_at(TermId id, uint8_t min) { forms_.push_back({.what = Action::What::Term, .min = min, .term = id}); }
  void bind(Name n) { forms_.push_back({.what = Action::What::Bind, .name = n}); }
  void leave(size_t count) { forms_.push_back({.what = Action::What::Leave, .count = static_cast<int32_t>(count)}); }
  void newline() { forms_.push_back({.what = Action::What::Newline}); }
  void indent_by(int32_t steps) { forms_.push_back({.what = Action::What::Indent, .count = steps}); }

  std::string_view name(Name n) const { return n.valid() ? names_.text(n) : std::string_view("_"); }
  std::string shown(Name key) const { return display_name(name(key)); }
  const Term& term(TermId id) const { return book_.terms[id]; }
  std::span<const TermId> fields(const Term& t) const { return book_.list(t.b, t.c); }
  bool is_ctor(TermId id, CtorId ctor) const { return id.valid() && term(id).kind == TermKind::Ctr && ctor.valid() && term(id).a == ctor.index; }
  bool is_ref(TermId id, std::string_view key) const { return term(id).kind == TermKind::Ref && name(book_.defs[DefId(term(id).a)].name) == key; }

  static std::string_view mark(Quantity q) { return q == Quantity::None ? "-" : q == Quantity::Many ? "+" : ""; }

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
        text(shown(book_.defs[DefId(t.a)].name));
        if ((t.flags & kBang) != 0) text("!");
        break;
      case TermKind::Let: let(t); break;
      case TermKind::Kind: kind(t); break;
      case TermKind::Quant: text("Quant"); break;
      case TermKind::Qua: text(fmt::format("&{}", t.a)); break;
      case TermKind::Meet:
        term_at(TermId(t.a), kCons + 1);
        text(" <&> ");
        term_at(TermId(t.b), kCons);
        break;
      case TermKind::All: function_type(t); break;
      case TermKind::Lam: lambda(t); break;
      case TermKind::App: call(t); break;
      case TermKind::Adt:
        text(shown(book_.datatypes[DataId(t.a)].name));
        if (t.c > 0) {
          text("<");
          std::span<const TermId> args = fields(t);
          for (size_t i = 0; i < args.size(); ++i) {
            if (i > 0) text(", ");
            term_at(args[i], i == 0 ? kCons : kLoose);
          }
          text(">");
        }
        for (const TermId removed : book_.list(t.b + t.c, t.extra)) {
          text(" - ");
          text(shown(book_.ctors[CtorId(book_.terms[removed].a)].name));
          text("{}");
        }
        break;
      case TermKind::Ctr: constructor(t); break;
      case TermKind::U32: number(t.a); break;
      case TermKind::Nat:
        number(uint64_t(t.a) | (t.b == TermId::kNone ? 0 : uint64_t(t.b) << 32));
        text("n");
        break;
      case TermKind::F32: f32(t.a); break;
      case TermKind::Str:
        text("\"");
        for (char32_t c : book_.strings[t.a]) character(c, '"');
        text("\"");
        break;
      case TermKind::Mat:
      case TermKind::MatLit:
      case TermKind::Efq: match(t); break;
      case TermKind::Eql:
        text("{");
        term_at(TermId(t.a), kLoose);
        text(" == ");
        term_at(TermId(t.b), kLoose);
        text(" : ");
        term_at(TermId(t.c), kLoose);
        text("}");
        break;
      case TermKind::Rfl: text("{==}"); break;
      case TermKind::Rwt: rewrite(t); break;
      case TermKind::Hole:
        text("?");
        text(name(t.name));
        break;
      case TermKind::Ann:
        text("{");
        term_at(TermId(t.a), kLoose);
        text(" : ");
        term_at(TermId(t.b), kLoose);
        text("}");
        break;
      case TermKind::Error: text("<error>"); break;
    }
  }

  void variable(const Term& t) {
    Name n = t.a < scope_.size() ? scope_[t.a] : t.name;
    text(name(n));
    for (size_t i = t.a + 1; i < scope_.size(); ++i) {
      if (!scope_[i].valid() || name(scope_[i]) != name(n)) continue;
      text(fmt::format("^{}", t.a));
      return;
    }
  }

  void kind(const Term& t) {
    const Term& q = term(TermId(t.a));
    if (q.kind == TermKind::Qua && q.a == 1) text("Type");
    else if (q.kind == TermKind::Qua && q.a == 2) text("Data");
    else {
      text("Kind(");
      term_at(TermId(t.a), kLoose);
      text(")");
    }
  }

  void function_type(const Term& first) {
    const Term* t = &first;
    size_t bound = 0;
    for (;;) {
      text("@");
      text(mark(t->quantity));
      text(name(t->name));
      text(":");
      term_at(TermId(t->a), kPair);
      text(" -> ");
      bind(t->name);
      ++bound;
      TermId next(t->b);
      if (!next.valid() || term(next).kind != TermKind::All) {
        term_at(next, kLoose);
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
      text(mark(t->quantity == Quantity::Many ? Quantity::Many : Quantity::Lone));
      text(name(t->name));
      text(" => ");
      bind(t->name);
      ++bound;
      TermId next(t->a);
      if (!next.valid() || term(next).kind != TermKind::Lam) {
        term_at(next, kLoose);
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
        if (i > 0) text(" ");
        text(mark(row.quantity));
        text(name(row.name));
      }
      text(" =");
      for (uint32_t i = 0; i < t->b; ++i) {
        text(" ");
        term_at(book_.let_rows[t->a + i].value, t->b > 1 ? kTight : kLoose);
      }
      text(";");
      newline();
      for (uint32_t i = 0; i < t->b; ++i) bind(book_.let_rows[t->a + i].name);
      bound += t->b;
      TermId next(t->c);
      if (!next.valid() || term(next).kind != TermKind::Let) {
        term_at(next, kLoose);
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
        term_at(args[0], kPair + 1);
        text(pair ? " & " : " | ");
        term_at(args[1], kPair);
        return;
      }
      if (is_ref(head, "Exists") && term(args[1]).kind == TermKind::Lam) {
        const Term& body = term(args[1]);
        text("&");
        text(name(body.name));
        text(":");
        term_at(args[0], kPair);
        text(" -> ");
        bind(body.name);
        term_at(TermId(body.a), kLoose);
        leave(1);
        return;
      }
    }
    term_at(head, kTight);
    text("(");
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) text(", ");
      if (i < t.extra) text("~");
      term_at(args[i], kLoose);
    }
    text(")");
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
      text("n");
      return;
    }
    number(count);
    text("n+");
    term_at(at, kCons);
  }

  void list(const Term& t) {
    bool closed = list_is_closed(t);
    if (closed) text("[");
    const Term* at = &t;
    for (bool more = true; more;) {
      term_at(fields(*at)[0], closed ? kLoose : kCons + 1);
      TermId tail = fields(*at)[1];
      more = is_ctor(tail, con_);
      if (more) {
        text(closed ? ", " : " <> ");
        at = &term(tail);
      } else if (!closed) {
        text(" <> ");
        term_at(tail, kCons);
      }
    }
    if (closed) text("]");
  }

  void tuple(const Term& t) {
    text("(");
    const Term* at = &t;
    for (;;) {
      term_at(fields(*at)[0], kLoose);
      text(", ");
      TermId rest = fields(*at)[1];
      if (!is_ctor(rest, tuple_) || term(rest).c != 2) {
        term_at(rest, kLoose);
        break;
      }
      at = &term(rest);
    }
    text(")");
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
    std::u32string chars;
    const Term* at = &t;
    for (;;) {
      uint32_t code = 0;
      if (!char_code(fields(*at)[0], code)) return false;
      chars.push_back(code);
      TermId tail = fields(*at)[1];
      if (is_ctor(tail, snil_)) break;
      if (term(tail).kind == TermKind::Str) {
        chars += book_.strings[term(tail).a];
        break;
      }
      if (!is_ctor(tail, scon_)) return false;
      at = &term(tail);
    }
    text("\"");
    for (char32_t c : chars) character(c, '"');
    text("\"");
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
    if (ctor == zero_ && t.c == 0) { text("0n"); return; }
    if (ctor == succ_ && t.c == 1) return nat(t);
    if (ctor == nil_ && t.c == 0) { text("[]"); return; }
    if (ctor == con_ && t.c == 2) return list(t);
    if (ctor == tuple_ && t.c == 2) return tuple(t);
    if (ctor == snil_ && t.c == 0) { text("\"\""); return; }
    if (ctor == scon_ && t.c == 2 && string(t)) return;
    if (ctor == u32_ && word(t, value)) return number(value);
    if (ctor == f32_ && word(t, value)) return f32(value);
    if (ctor == chr_ && t.c == 1) {
      const Term& code = term(fields(t)[0]);
      bool known = code.kind == TermKind::U32;
      if (known) value = code.a;
      else known = code.kind == TermKind::Ctr && CtorId(code.a) == u32_ && word(code, value);
      if (known) {
        text("\'");
        character(value, '\'');
        text("\'");
        return;
      }
    }
    if (ctor == leaf_ || ctor == node_) {
      std::vector<TermId> found;
      TermId self = self_id(t);
      if (self.valid() && slots(self, found)) {
        text("[");
        for (size_t i = 0; i < found.size(); ++i) {
          if (i > 0) text(", ");
          term_at(found[i], kLoose);
        }
        text("]");
        return;
      }
    }
    text(shown(book_.ctors[ctor].name));
    text("{");
    std::span<const TermId> items = fields(t);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text(", ");
      term_at(items[i], kLoose);
    }
    text("}");
  }

  TermId self_id(const Term& t) const { return TermId(static_cast<uint32_t>(&t - &*book_.terms.begin())); }

  void number(uint64_t value) {
    char buffer[24];
    text({buffer, text::u64_show(value, buffer)});
  }

  void f32(uint32_t bits) {
    char buffer[text::kF32Chars];
    float value;
    static_assert(sizeof value == sizeof bits);
    __builtin_memcpy(&value, &bits, sizeof value);
    text({buffer, text::f32_show_point(value, buffer)});
  }

  void character(char32_t c, char quote) {
    char buffer[16];
    text({buffer, text::escape_show(c, quote, buffer)});
  }

  // Matches and proofs ----------------------------------------------------------------------------------------------------------------

  void match(const Term& first) {
    text("\\{");
    indent_by(1);
    const Term* t = &first;
    bool any = false;
    while (t->kind == TermKind::Mat || t->kind == TermKind::MatLit) {
      if (any) text(";");
      if (any || lines_) newline();
      any = true;
      if (t->kind == TermKind::Mat) text(shown(book_.ctors[CtorId(t->a)].name));
      else term_at(TermId(t->a), kTight);
      text(": ");
      term_at(TermId(t->b), kLoose);
      t = &term(TermId(t->c));
    }
    if (t->kind != TermKind::Efq) {
      if (any) text(";");
      newline();
      term_at(self_id(*t), kLoose);
    }
    indent_by(-1);
    text("}");
  }

  void rewrite(const Term& t) {
    text("%");
    TermId motive(t.b);
    bool plain = term(motive).kind == TermKind::Lam && term(TermId(term(motive).a)).kind == TermKind::Lam;
    if (!plain) {
      term_at(TermId(t.a), kTight);
      text(" : ");
      term_at(motive, kLoose);
    } else {
      const Term& outer = term(motive);
      const Term& inner = term(TermId(outer.a));
      std::string_view h = name(inner.name);
      if (h != "_") {
        text(h);
        text("@");
      }
      term_at(TermId(t.a), kTight);
      text(" : ");
      // The evidence's own `_` would hide the endpoint's.
      bind(outer.name);
      bind(h == "_" ? Name() : inner.name);
      term_at(TermId(inner.a), kLoose);
      leave(2);
    }
    text(";");
    newline();
    term_at(TermId(t.c), kLoose);
  }

  const Book& book_;
  const Interner& names_;
  std::vector<Name> scope_;
  bool lines_;
  uint32_t indent_ = 1;
  std::vector<Action> forms_, work_;
  CtorId zero_, succ_, nil_, con_, tuple_, chr_, snil_, scon_, u32_, f32_, wnil_, wcon_, true_, false_, leaf_, node_;
};

void print_data(const Book& book, const Interner& names, const Datatype& d, std::string& out) {
  Printer p(book, names, {}, false);
  p.out += "type " + display_name(names.text(d.name));
  if (!d.params.empty()) {
    p.out += '<';
    p.telescope(d.params);
    p.out += '>';
  }
  p.out += " is ";
  p.print(d.kind, kLoose);
  p.out += ":\n";
  for (CtorId c : d.ctors) {
    const Ctor& ctor = book.ctors[c];
    p.out += "  " + display_name(names.text(ctor.name)) + "{";
    p.telescope(ctor.fields);
    p.leave_scope(ctor.fields.size());
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
