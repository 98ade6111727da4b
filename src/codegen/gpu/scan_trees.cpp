// Method: both trees' steps, the first one's post and both leaves are run symbolically (symbolic_terms.h) with terms that mean the same in both trees: an
// argument that never changes is the term of its value at the root, one that follows a node's place is its form and that value. Then equal terms are equal
// numbers at equal places.
#include "codegen/gpu/scan_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/gpu/block_access.h"
#include "codegen/gpu/symbolic_terms.h"
#include "codegen/memory_layout.h"
#include "codegen/ownership.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

constexpr uint32_t kMostBetween = 256;   // nodes from a table to its second tree: programs with many arrays are not searched again for each
// Given terms, by `number`: an argument that follows the node's place (operands: value at the root, factor), the base, a node's two values, the table.
constexpr uint64_t kDepth = 1, kNumber = 2, kSpread = 3, kBase = 4, kLeft = 5, kRight = 6, kTableTerm = 7;

std::optional<uint32_t> identity_of(Prim op) {
  switch (op) {
    case Prim::U32Add: case Prim::U32Or: case Prim::U32Xor: return 0;
    case Prim::U32Mul: return 1;
    case Prim::U32And: return ~0u;
    default: return std::nullopt;
  }
}

bool pure_let(const Node& n) {
  switch (n.expr.kind) {
    case ExprKind::Const: case ExprKind::Struct: case ExprKind::Get: return true;
    case ExprKind::Prim: return n.expr.prim < Prim::ArrayNew && prim_is_pure(n.expr);
    default: return false;
  }
}

// The nodes from the table's making to its end.
struct Site {
  FuncId func;
  NodeId start;
  VarId table;
  NodeId first, second, drop;
  std::vector<NodeId> before, after;      // what stands between and stays, before both calls or after them
};

class Finder {
 public:
  Finder(Module& module, const std::vector<PerfectTree>& trees, const std::vector<bool>& reachable) : m_(module), layouts_(module), trees_(trees), reachable_(reachable) {}

  std::vector<ScanTree> run() {
    const uint32_t count = m_.funcs.size();
    for (uint32_t f = 0; f < count; ++f) {
      if (f >= reachable_.size() || !reachable_[f]) continue;
      std::vector<NodeId> tables;
      each_node(m_, m_.funcs[FuncId(f)].body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Prim && n.expr.prim == Prim::ArrayNew) tables.push_back(at);
      });
      for (NodeId at : tables) look(FuncId(f), at);
    }
    return std::move(out_);
  }

 private:
  std::string name(FuncId f) const { return "`" + m_.funcs[f].name.substr(0, m_.funcs[f].name.find_first_of("~@$")) + "`"; }

  const PerfectTree* tree_of(FuncId f, uint32_t& row) const {
    for (uint32_t i = 0; i < trees_.size(); ++i) {
      if (trees_[i].func != f || !trees_[i].why.empty()) continue;
      row = i;
      return &trees_[i];
    }
    return nullptr;
  }

  bool uses(const Node& n, VarId v) const {
    const auto args = m_.list(n.expr.args);
    return n.subject == v || (n.kind == NodeKind::Let && std::find(args.begin(), args.end(), v) != args.end());
  }

  void look(FuncId f, NodeId start) {
    Site site{f, start, m_.nodes[start].var, {}, {}, {}, {}, {}};
    ScanTree row;
    std::string why;
    NodeId at = m_.nodes[start].next;
    // Without both calls there is nothing to tell.
    uint32_t between = 0;
    for (NodeId next = at; next.valid() && !site.second.valid() && ++between <= kMostBetween; next = m_.nodes[next].next) {
      const Node& n = m_.nodes[next];
      if (n.kind != NodeKind::Let && n.kind != NodeKind::Drop && n.kind != NodeKind::Dup && n.kind != NodeKind::Open) break;
      if (n.kind != NodeKind::Let || n.expr.kind != ExprKind::Call || !uses(n, site.table)) continue;
      if (!site.first.valid() && tree_of(n.expr.func, row.first)) site.first = next;
      else if (site.first.valid() && tree_of(n.expr.func, row.second)) site.second = next;
      else break;
    }
    if (!site.second.valid()) return;
    row.why = part(site, at);
    if (row.why.empty()) row.why = Proof(*this, site, row).run();
    if (row.why.empty()) make(site, row);
    out_.push_back(std::move(row));
  }

  // What else stands between, or why the two calls cannot be taken out.
  std::string part(Site& site, NodeId at) {
    std::set<uint32_t> late{m_.nodes[site.first].var.index, m_.nodes[site.second].var.index};
    for (; at.valid(); at = m_.nodes[at].next) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Drop && n.subject == site.table) {
        site.drop = at;
        return "";
      }
      const auto args = m_.list(n.expr.args);
      const bool depends = std::any_of(args.begin(), args.end(), [&](VarId v) { return late.count(v.index) > 0; });
      if (at == site.first || at == site.second) {
        if (depends) return "the second tree needs the first one's value";
        continue;
      }
      if (uses(n, site.table)) return "the table between the trees is used in another way too";
      if (n.kind == NodeKind::Let && pure_let(n)) {
        (depends ? site.after : site.before).push_back(at);
        if (depends) late.insert(n.var.index);
        continue;
      }
      if (n.kind == NodeKind::Drop) {
        site.after.push_back(at);
        continue;
      }
      return "more than arithmetic stands between the trees";
    }
    return "the table between the trees lives on";
  }

  // ---- the proof ----

  class Proof {
   public:
    Proof(Finder& finder, const Site& site, ScanTree& row)
        : f_(finder), m_(finder.m_), t_(finder.m_), site_(site), row_(row), first_(finder.trees_[row.first]), second_(finder.trees_[row.second]) {}

    std::string run() {
      roots();
      if (m_.types[m_.vars[site_.table].type].parts[0] != m_.vars[m_.nodes[site_.first].var].type || m_.types[m_.funcs[first_.func].result].kind != TypeKind::U32)
        return fmt::format("{} gives more than a U32", f_.name(first_.func));
      const Type& none = m_.types[m_.funcs[second_.func].result];
      if (none.kind != TypeKind::Struct || !none.parts.empty() || !second_.gives_left) return fmt::format("{} gives a value", f_.name(second_.func));
      if (first_.grain != 0 || second_.grain != 0) return "a leaf is a subtree";
      std::string why = lent();
      if (why.empty()) why = tree_one();
      if (why.empty()) why = tree_two();
      if (why.empty()) why = blocks();
      return why;
    }

   private:
    struct Words {
      Terms::Words root, here;            // values at the root, and at a node: terms that are equal in both trees when they mean the same
      std::vector<std::optional<PathForm>> forms;
      StepWords child;
      size_t depth = 0;                   // word of the measure
    };

    std::span<const VarId> args(NodeId call) const { return m_.list(m_.nodes[call].expr.args); }

    // Terms of what the two calls get; constants by their bits.
    void roots() {
      each_node(m_, m_.funcs[site_.func].body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Const) t_.let(n);
      });
      table_ = t_.given(kTableTerm, {});
      t_.bind(site_.table, {table_});
    }

    std::string lent() {
      for (NodeId call : {site_.first, site_.second}) {
        const std::vector<bool>& marks = m_.funcs[m_.nodes[call].expr.func].borrowed;
        for (size_t i = 0; i < args(call).size(); ++i)
          if (is_counted(m_, m_.vars[args(call)[i]].type) && !(i < marks.size() && marks[i])) return fmt::format("{} keeps an array", f_.name(m_.nodes[call].expr.func));
      }
      return "";
    }

    bool words_of(NodeId call, const PerfectTree& tree, Words& out) {
      for (VarId arg : args(call)) {
        const Terms::Words part = t_.value(arg);
        out.root.insert(out.root.end(), part.begin(), part.end());
      }
      out.forms = word_forms(m_, tree.step, tree.measure);
      if (out.forms.size() != out.root.size()) return false;
      for (size_t k = 0; k < out.root.size(); ++k) {
        const std::optional<PathForm>& form = out.forms[k];
        uint32_t term = 0;
        if (!form) {
          term = t_.given(kBase, {static_cast<uint32_t>(k)});
        } else {
          switch (form->kind) {
            case PathForm::Kind::Copy:
              if (out.root[form->left] != out.root[k] || out.root[form->right] != out.root[k]) return false;
              term = out.root[k];
              break;
            case PathForm::Kind::Depth:
              term = t_.given(kDepth, {out.root[k]});
              out.depth = k;
              break;
            case PathForm::Kind::Number: term = t_.given(kNumber, {out.root[k]}); break;
            case PathForm::Kind::Spread: term = t_.given(kSpread, {out.root[k], form->factor}); break;
          }
        }
        out.here.push_back(term);
      }
      const std::vector<VarId>& params = m_.funcs[tree.step].params;
      t_.bind(std::span(params).first(params.size() - 1), out.here);
      const std::optional<StepWords> child = step_words(m_, t_, tree.step);
      if (!child) return false;
      out.child = *child;
      return true;
    }

    // Each node of the first tree keeps its left value in a slot of its own of the table.
    std::string tree_one() {
      const std::string& name = f_.name(first_.func);
      if (!words_of(site_.first, first_, one_) || std::any_of(one_.forms.begin(), one_.forms.end(), [](const auto& form) { return !form; }))
        return fmt::format("the arguments of {} have no closed form", name);
      const std::string other = fmt::format("what follows the fork of {} does more than keep its left value and put two values together", name);
      if (!first_.post_args) return other;
      const Func& post = m_.funcs[first_.post];
      const size_t own = m_.funcs[first_.func].params.size();
      const uint32_t left = t_.given(kLeft, {}), right = t_.given(kRight, {});
      t_.bind(std::span(post.params).first(own), one_.here);
      t_.bind(std::span(post.params).subspan(own), {left, right});
      bool kept = false;
      Terms::Words result;
      for (NodeId at = post.body; at.valid(); at = m_.nodes[at].next) {
        const Node& n = m_.nodes[at];
        if (n.kind == NodeKind::Ret) {
          result = t_.value(n.subject);
          break;
        }
        if (n.kind == NodeKind::Dup || n.kind == NodeKind::Drop) continue;
        if (n.kind != NodeKind::Let) return other;
        if (n.expr.kind == ExprKind::Prim && n.expr.prim == Prim::ArraySet && n.expr.in_place && !kept) {
          const auto set = m_.list(n.expr.args);
          if (t_.value(set[0])[0] != table_ || t_.value(set[2])[0] != left) return other;
          slot_ = t_.value(set[1])[0];
          kept = true;
        } else if (!pure_let(n)) {
          return other;
        }
        t_.let(n);
      }
      if (!kept || result.size() != 1 || t_[result[0]].kind != Term::Kind::Prim) return other;
      row_.op = t_[result[0]].prim;
      const std::optional<uint32_t> identity = identity_of(row_.op);
      if (!identity || result[0] != t_.prim(row_.op, {left, right})) return other;
      row_.identity = *identity;
      // The number of the right half's first leaf, in a table of as many slots as there are leaves.
      const uint32_t less = t_.prim(Prim::NatPred, {one_.here[one_.depth]});
      bool own_slot = false;
      for (size_t k = 0; k < one_.forms.size(); ++k) {
        const PathForm& form = *one_.forms[k];
        own_slot |= form.kind == PathForm::Kind::Number && slot_ == t_.prim(Prim::U32Shln, {one_.child.right[k], less});
        own_slot |= form.kind == PathForm::Kind::Spread && form.factor == 1 && slot_ == one_.child.right[k];
      }
      const uint32_t slots = t_.value(m_.list(m_.nodes[site_.start].expr.args)[0])[0];
      if (!own_slot || slots != one_.root[one_.depth]) return fmt::format("the table slot of a node of {} is not known to be its own", name);
      return "";
    }

    // Each node of the second tree hands its base to the left, and to the right with the table's value.
    std::string tree_two() {
      const std::string& name = f_.name(second_.func);
      if (!words_of(site_.second, second_, two_)) return fmt::format("the arguments of {} have no closed form", name);
      if (two_.root[two_.depth] != one_.root[one_.depth]) return "the two trees differ in depth";
      std::optional<size_t> base;
      for (size_t k = 0; k < two_.forms.size(); ++k) {
        PathForm stays;
        stays.left = stays.right = static_cast<uint32_t>(k);
        row_.second_paths.push_back(two_.forms[k].value_or(stays));
        if (two_.forms[k]) continue;
        if (base) return fmt::format("more than one argument of {} has no closed form", name);
        base = k;
      }
      if (!base) return fmt::format("no argument of {} grows by the table", name);
      row_.base = static_cast<uint32_t>(*base);
      const uint32_t above = two_.here[*base];
      const uint32_t read = t_.prim(Prim::ArrayGet, {table_, slot_});
      if (two_.child.left[*base] != above || two_.child.right[*base] != t_.prim(row_.op, {above, read}))
        return fmt::format("the argument of {} without a closed form is not the sum of what lies before, by the same table slots", name);
      return "";
    }

    // Leaves meet in nothing else.
    std::string blocks() {
      std::map<uint32_t, uint32_t> array_words;   // by term: word of the calls' arguments, those of the first call first
      for (const Words* words : {&one_, &two_})
        for (uint32_t term : words->here)
          if (term != table_) fixed_.insert(term);
      std::optional<uint32_t> first;
      std::set<uint32_t> arrays, touched;
      bool strict = true;
      uint32_t log2 = 0;
      for (int turn = 0; turn < 2; ++turn) {
        const PerfectTree& tree = turn == 0 ? first_ : second_;
        const Words& words = turn == 0 ? one_ : two_;
        t_.bind(m_.funcs[tree.leaf].params, words.here);
        BlockRules rules;
        rules.may_write = turn == 1;
        rules.is_number = [&](uint32_t id) { return t_[id].kind == Term::Kind::Given && t_[id].number == kNumber; };
        rules.is_fixed = [&](uint32_t id) { return std::find(words.root.begin(), words.root.end(), id) != words.root.end() && fixed_.count(id) > 0; };
        rules.is_array = [&](uint32_t id) { return id != table_ && std::find(words.here.begin(), words.here.end(), id) != words.here.end(); };
        const BlockAccess access = block_access(m_, t_, tree.leaf, rules);
        if (!access.why.empty()) return access.why;
        strict &= access.strict && access.first.has_value();
        touched.insert(access.touched.begin(), access.touched.end());
        if (!access.first || access.arrays.empty()) continue;
        if (first && *first != *access.first) return "the leaves of the two trees have different blocks";
        first = access.first;
        log2 = access.log2;
        arrays.insert(access.arrays.begin(), access.arrays.end());
      }
      if (!first) return "the trees touch no array";
      argument_words(arrays, log2);
      if (strict && touched.size() == 1) keep(*touched.begin(), t_[*first].operands[0]);
      return "";
    }

    // One array, whose block starts at leaf `number`'s.
    void keep(uint32_t array, uint32_t number) {
      uint32_t next = 0;
      const auto word = std::find(one_.here.begin(), one_.here.end(), number);
      for (VarId v : f_.arguments(site_)) {
        const Type& type = m_.types[m_.vars[v].type];
        if (type.kind == TypeKind::Array && t_.value(v)[0] == array && word != one_.here.end()) {
          const TypeLayout& slot = f_.layouts_.of(type.parts[0]);
          if (slot.size != 4 || slot.counted) continue;
          row_.kept = next;
          row_.number_word = static_cast<uint32_t>(word - one_.here.begin());
        }
        next += static_cast<uint32_t>(t_.value(v).size());
      }
    }

    // Which words of the new function's arguments both trees start from.
    void argument_words(const std::set<uint32_t>& arrays, uint32_t log2) {
      uint32_t next = 0;
      std::map<uint32_t, uint32_t> from;   // by variable
      for (VarId v : f_.arguments(site_)) {
        from[v.index] = next;
        const Terms::Words words = t_.value(v);
        for (size_t i = 0; i < words.size(); ++i) {
          if (arrays.count(words[i])) row_.arrays.push_back(next + static_cast<uint32_t>(i));
          if (words[i] == log2 && t_[log2].kind != Term::Kind::Const) row_.log2_word = next + static_cast<uint32_t>(i);
        }
        next += static_cast<uint32_t>(words.size());
      }
      if (row_.log2_word == ScanTree::kTable) row_.log2 = static_cast<uint32_t>(std::min<uint64_t>(t_[log2].number, 64));
      for (bool second : {false, true}) {
        std::vector<uint32_t>& words = second ? row_.second_words : row_.first_words;
        for (VarId arg : args(second ? site_.second : site_.first)) {
          const size_t count = t_.value(arg).size();
          for (uint32_t i = 0; i < count; ++i) words.push_back(arg == site_.table ? ScanTree::kTable : from.at(arg.index) + i);
        }
      }
    }

    Finder& f_;
    const Module& m_;
    Terms t_;
    const Site& site_;
    ScanTree& row_;
    const PerfectTree &first_, &second_;
    Words one_, two_;
    uint32_t table_ = 0, slot_ = 0;
    std::set<uint32_t> fixed_;
  };

  // What the three lets need from outside, each once.
  std::vector<VarId> arguments(const Site& site) const {
    std::vector<VarId> out;
    for (NodeId at : {site.start, site.first, site.second})
      for (VarId v : m_.list(m_.nodes[at].expr.args))
        if (v != site.table && std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    return out;
  }

  // ---- the function ----

  void make(const Site& site, ScanTree& row) {
    const Node table = m_.nodes[site.start], first = m_.nodes[site.first], second = m_.nodes[site.second], drop = m_.nodes[site.drop];
    const std::vector<VarId> outside = arguments(site);
    BodyCopier copier(m_);
    Func g;
    g.name = m_.funcs[first.expr.func].name + "@scan";
    g.result = m_.funcs[first.expr.func].result;
    g.span = first.span;
    for (VarId v : outside) {
      Var copy = m_.vars[v];
      copy.borrowed = false;
      const VarId param = m_.vars.add(std::move(copy));
      copier.map_var(v, param);
      g.params.push_back(param);
      g.borrowed.push_back(is_counted(m_, m_.vars[param].type));
    }
    if (std::none_of(g.borrowed.begin(), g.borrowed.end(), [](bool b) { return b; })) g.borrowed.clear();
    // The body as it stood, without what stays outside.
    Node ret;
    ret.kind = NodeKind::Ret;
    ret.subject = first.var;
    ret.span = first.span;
    std::vector<Node> chain{table, first, second, drop};
    g.body = copier.copy(seal_chain(m_, chain, ret));
    row.func = m_.funcs.add(std::move(g));

    const NodeId rest = drop.next;
    std::vector<Node> stay;
    for (NodeId at : site.before) stay.push_back(m_.nodes[at]);
    Node call = first;
    call.expr.func = row.func;
    call.expr.args = m_.var_lists.add(outside);
    stay.push_back(call);
    Node nothing = second;
    nothing.expr = Expr();
    nothing.expr.kind = ExprKind::Struct;
    stay.push_back(nothing);
    for (NodeId at : site.after) stay.push_back(m_.nodes[at]);
    const NodeId head = seal_chain(m_, stay, m_.nodes[rest]);
    Node begin = m_.nodes[head];
    m_.nodes[site.start] = std::move(begin);
  }

  Module& m_;
  Layouts layouts_;
  const std::vector<PerfectTree>& trees_;
  const std::vector<bool>& reachable_;
  std::vector<ScanTree> out_;
};

}  // namespace

std::vector<ScanTree> find_scan_trees(Module& module, const std::vector<PerfectTree>& trees, const std::vector<bool>& reachable) { return Finder(module, trees, reachable).run(); }

}  // namespace bendc
