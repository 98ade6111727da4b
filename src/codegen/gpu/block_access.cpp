// A symbolic run of every path. In a loop, an index that starts at the block's first slot is first + t and a counter that starts at the number of slots
// less `bias` is slots - bias - t, for the t of this turn: both guesses hold when every jump back changes them alike. Where the counter less c is known to
// be above 0, t + c + bias < slots, so the index plus up to c + bias lies in the block.
#include "codegen/gpu/block_access.h"

#include <fmt/format.h>

#include <map>

#include "codegen/prim_types.h"

namespace bendc {

using namespace flow;

namespace {

constexpr uint32_t kMostSteps = 1u << 12;   // nodes looked at: paths that meet are run once each

// Given terms of a loop, by `number`; operands: the loop, c.
constexpr uint64_t kOffset = 101, kLeft = 102;

class Walker {
 public:
  Walker(const Module& module, Terms& terms, const BlockRules& rules) : m_(module), t_(terms), rules_(rules) {}

  BlockAccess run(FuncId leaf) {
    (void)walk(m_.funcs[leaf].body);
    return std::move(out_);
  }

 private:
  struct Loop {
    uint32_t id = 0, bias = 0;
    int64_t slack = -1;                  // the index may be so much above first + t; -1: not even that
    std::vector<uint32_t> assumed;       // terms of the parameters' words
    std::set<size_t> dropped;            // words whose guess was wrong
    bool again = false;
  };

  bool fail(std::string why) {
    if (out_.why.empty()) out_.why = std::move(why);
    return false;
  }

  bool is_loop_term(uint32_t id, uint64_t kind) const { return t_[id].kind == Term::Kind::Given && t_[id].number == kind; }
  uint32_t loop_term(uint64_t kind, uint32_t loop, uint32_t c) { return t_.given(kind, {loop, c}); }

  // i << e
  bool is_first(uint32_t id) {
    if (!t_.is_prim(id, Prim::U32Shln)) return false;
    const uint32_t number = t_[id].operands[0], log2 = t_[id].operands[1];
    if (!rules_.is_number(number) || !(rules_.is_fixed(log2) || t_[log2].kind == Term::Kind::Const)) return false;
    if (out_.first) return *out_.first == id;
    out_.first = id;
    out_.log2 = log2;
    return true;
  }

  // 2^e less the returned bias, for the block's e.
  std::optional<uint32_t> slots_less(uint32_t id) {
    if (t_[out_.log2].kind == Term::Kind::Const && t_[id].kind == Term::Kind::Const && t_[out_.log2].number < 32) {
      const uint64_t slots = uint64_t{1} << t_[out_.log2].number;
      if (t_[id].number == slots) return 0;
      if (t_[id].number + 1 == slots) return 1;
    }
    if (!t_.is_prim(id, Prim::U32ToNat)) return std::nullopt;
    const uint32_t count = t_[id].operands[0];
    const uint32_t slots = t_.prim(Prim::U32Shln, {t_.constant(1), out_.log2});
    if (count == slots) return 0;
    if (count == t_.prim(Prim::U32Sub, {slots, t_.constant(1)})) return 1;
    return std::nullopt;
  }

  bool inside(uint32_t index) {
    if (is_loop_term(index, kOffset)) {
      const auto it = loops_.find(t_[index].operands[0]);
      return it != loops_.end() && static_cast<int64_t>(t_[index].operands[1]) <= it->second.slack;
    }
    return is_first(index);
  }

  // index + 1, counter - 1.
  void let(const Node& n) {
    t_.let(n);
    if (n.expr.kind != ExprKind::Prim) return;
    const std::span<const VarId> args = m_.list(n.expr.args);
    auto word = [&](size_t i) { return t_.value(args[i])[0]; };
    if (n.expr.prim == Prim::NatPred && is_loop_term(word(0), kLeft)) t_.bind(n.var, {loop_term(kLeft, t_[word(0)].operands[0], t_[word(0)].operands[1] + 1)});
    if (n.expr.prim == Prim::U32Inc || n.expr.prim == Prim::U32Add) {
      for (size_t i = 0; i < args.size(); ++i) {
        const bool one = n.expr.prim == Prim::U32Inc || t_.is_const(word(1 - i), 1);
        if (one && is_loop_term(word(i), kOffset)) {
          t_.bind(n.var, {loop_term(kOffset, t_[word(i)].operands[0], t_[word(i)].operands[1] + 1)});
          break;
        }
      }
    }
  }

  bool access(const Node& n) {
    const std::span<const VarId> args = m_.list(n.expr.args);
    const uint32_t array = t_.value(args[0])[0];
    const bool reads = n.expr.prim == Prim::ArrayGet;
    if (!rules_.is_array(array)) return fail("a leaf touches another array than the trees' own");
    if (!rules_.may_write && !reads) return fail("a leaf of the first tree writes to an array");
    out_.touched.insert(array);
    const bool within = inside(t_.value(args[1])[0]);
    out_.strict &= within && n.expr.prim <= Prim::ArraySwap;
    if (rules_.may_write && reads) return true;
    if (!within) return fail(fmt::format("a leaf of the {} tree may {} outside of a block of its own", rules_.may_write ? "second" : "first", reads ? "read" : "write"));
    out_.arrays.insert(array);
    return true;
  }

  bool expression(const Node& n) {
    const Expr& e = n.expr;
    switch (e.kind) {
      case ExprKind::Const: case ExprKind::Struct: case ExprKind::Get: case ExprKind::Variant: case ExprKind::VariantGet: break;
      case ExprKind::Call:
        if (!call(e.func, m_.list(e.args))) return false;
        break;
      case ExprKind::Prim: {
        const Prim p = e.prim;
        if (p == Prim::ArrayGet || p == Prim::ArraySet || p == Prim::ArraySwap || (p >= Prim::AtomicAdd && p <= Prim::AtomicFadd)) {
          if (!access(n)) return false;
        } else if (p >= Prim::ArrayNew && p != Prim::ArraySize && p != Prim::ArrayMask && p != Prim::ArrayFork && p != Prim::ArrayJoin) {
          return fail("a leaf handles whole arrays");
        }
        break;
      }
      case ExprKind::Str: case ExprKind::Con: case ExprKind::ConGet: case ExprKind::Apply: case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box: case ExprKind::Unbox:
        return fail("a leaf makes or reads boxed values");
    }
    let(n);
    return true;
  }

  // Leaves call nothing that recurses.
  bool call(FuncId f, std::span<const VarId> args) {
    Terms::Words words;
    for (VarId arg : args) {
      const Terms::Words part = t_.value(arg);
      words.insert(words.end(), part.begin(), part.end());
    }
    t_.bind(m_.funcs[f].params, words);
    return walk(m_.funcs[f].body);
  }

  bool jump(const Node& n) {
    Terms::Words words;
    for (VarId arg : m_.list(n.args)) {
      const Terms::Words part = t_.value(arg);
      words.insert(words.end(), part.begin(), part.end());
    }
    const Node& join = m_.nodes[joins_.at(n.join.index)];
    if (!join.loop) {
      t_.bind(m_.list(join.vars), words);
      return walk(join.body);
    }
    if (const auto it = inner_.find(n.join.index); it != inner_.end()) {
      turn(loops_.at(it->second), words);
      return true;
    }
    return enter(n.join, join, words);
  }

  bool enter(JoinId id, const Node& join, const Terms::Words& words) {
    Loop loop;
    loop.id = next_loop_++;
    std::optional<size_t> counter;
    bool index = false;
    for (size_t k = 0; k < words.size(); ++k) index = is_first(words[k]) || index;
    for (size_t k = 0; index && k < words.size() && !counter; ++k) {
      if (const std::optional<uint32_t> bias = slots_less(words[k])) {
        counter = k;
        loop.bias = *bias;
      }
    }
    for (size_t k = 0; k < words.size(); ++k)
      loop.assumed.push_back(counter && k == *counter ? loop_term(kLeft, loop.id, 0) : counter && is_first(words[k]) ? loop_term(kOffset, loop.id, 0) : words[k]);
    bool fine = true;
    do {
      loop.again = false;
      loop.slack = static_cast<int64_t>(loop.bias) - 1;
      loops_[loop.id] = loop;
      inner_[id.index] = loop.id;
      t_.bind(m_.list(join.vars), loop.assumed);
      fine = walk(join.body);
      loop = loops_[loop.id];
      inner_.erase(id.index);
    } while (fine && loop.again);
    loops_.erase(loop.id);
    return fine;
  }

  // A jump back.
  void turn(Loop& loop, const Terms::Words& words) {
    std::optional<uint32_t> by;   // the counter's change
    for (size_t k = 0; k < words.size(); ++k)
      if (is_loop_term(loop.assumed[k], kLeft) && is_loop_term(words[k], kLeft) && t_[words[k]].operands[0] == loop.id) by = t_[words[k]].operands[1];
    auto drop = [&](size_t k) {
      loop.assumed[k] = t_.term({Term::Kind::Unknown, uint64_t{1} << 40 | next_unknown_++, {}, {}});
      loop.again = true;
    };
    for (size_t k = 0; k < words.size(); ++k) {
      const uint32_t was = loop.assumed[k];
      const bool ours = (is_loop_term(was, kLeft) || is_loop_term(was, kOffset)) && t_[was].operands[0] == loop.id;
      if (!ours) {
        if (words[k] != was && t_[was].kind != Term::Kind::Unknown) drop(k);
        else if (words[k] != was && loop.dropped.insert(k).second) drop(k);
        continue;
      }
      const bool same = by && t_[words[k]].kind == Term::Kind::Given && t_[words[k]].number == t_[was].number && t_[words[k]].operands == std::vector<uint32_t>{loop.id, *by};
      if (!same) drop(k);
    }
  }

  bool walk(NodeId at) {
    while (at.valid()) {
      if (++steps_ > kMostSteps) return fail("its leaves are too large to look through");
      const Node& n = m_.nodes[at];
      switch (n.kind) {
        case NodeKind::Let:
          if (!expression(n)) return false;
          break;
        case NodeKind::Open:
          if (!t_.open(n)) return fail("a leaf makes or reads boxed values");
          break;
        case NodeKind::Dup: case NodeKind::Drop: break;
        case NodeKind::Join: joins_[n.join.index] = at; break;
        case NodeKind::Case: case NodeKind::Switch: return choose(n);
        case NodeKind::Ret: case NodeKind::Abort: return true;
        case NodeKind::Tail: return call(n.func, m_.list(n.args));
        case NodeKind::Jump: return jump(n);
        case NodeKind::Fork: return fail("a leaf forks");
      }
      at = n.next;
    }
    return true;
  }

  bool choose(const Node& n) {
    const Terms::Words subject = t_.value(n.subject);
    const bool counter = n.kind == NodeKind::Switch && subject.size() == 1 && is_loop_term(subject[0], kLeft);
    bool zero = false;
    for (const Arm& arm : n.arms) zero |= arm.value == 0;
    auto branch = [&](NodeId body, bool positive) {
      if (!counter || !positive) return walk(body);
      const uint32_t id = t_[subject[0]].operands[0];
      const int64_t before = loops_[id].slack;
      loops_[id].slack = std::max<int64_t>(before, int64_t{t_[subject[0]].operands[1]} + loops_[id].bias);
      const bool fine = walk(body);
      loops_[id].slack = before;
      return fine;
    };
    for (const Arm& arm : n.arms)
      if (!branch(arm.body, arm.value != 0)) return false;
    return !n.other.valid() || branch(n.other, zero);
  }

  const Module& m_;
  Terms& t_;
  const BlockRules& rules_;
  BlockAccess out_;
  std::map<uint32_t, NodeId> joins_;       // by join
  std::map<uint32_t, uint32_t> inner_;     // the loops around, by join
  std::map<uint32_t, Loop> loops_;
  uint32_t next_loop_ = 0, steps_ = 0;
  uint64_t next_unknown_ = 0;
};

}  // namespace

BlockAccess block_access(const Module& module, Terms& terms, FuncId leaf, const BlockRules& rules) { return Walker(module, terms, rules).run(leaf); }

}  // namespace bendc
