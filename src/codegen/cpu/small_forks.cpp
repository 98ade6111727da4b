#include "codegen/cpu/small_forks.h"

#include <algorithm>
#include <unordered_map>

namespace bendc::flow {

namespace {

constexpr uint64_t kUnbounded = UINT64_MAX;
constexpr uint64_t kLargestLimit = 64;     // spines: T grows linearly
constexpr uint32_t kDeepestNesting = 256;  // of matches inside matches

uint64_t plus(uint64_t a, uint64_t b) { return a > kSmallFork || b > kSmallFork ? kUnbounded : a + b; }

bool constant_time(Prim prim) {
  switch (prim) {
    case Prim::ArrayNew:
    case Prim::ArrayClone:
    case Prim::ArrayNode:
    case Prim::ArraySplit:
    case Prim::ArrayTake:
    case Prim::ArrayJoin:
    case Prim::F32Show:
    case Prim::F32Read:
    case Prim::ShowText:
    case Prim::ShowU32:
    case Prim::ShowNat:
    case Prim::ShowF32:
    case Prim::ShowChar:
    case Prim::ShowString:
      return false;
    default:
      return true;   // scalar operations and single slots
  }
}

class Bounder {
 public:
  explicit Bounder(const Module& module) : m_(module), flat_(module.funcs.size(), kUnknown) {}

  std::vector<SmallFork> run() {
    std::vector<SmallFork> out(m_.funcs.size());
    for (uint32_t f = 0; f < m_.funcs.size(); ++f) {
      if (!forks(m_.funcs[FuncId(f)].body, 0)) continue;
      const Func& func = m_.funcs[FuncId(f)];
      for (uint32_t p = 0; p < func.param_count(); ++p) {
        if (m_.types[m_.vars[func.params[p]].type].kind != TypeKind::Nat) continue;
        const uint64_t limit = measure(FuncId(f), p);
        if (limit > out[f].limit) out[f] = {p, limit};
      }
    }
    return out;
  }

 private:
  static constexpr uint64_t kUnknown = UINT64_MAX - 1, kOpen = UINT64_MAX - 2;

  bool forks(NodeId id, uint32_t depth) const {
    for (; id.valid(); id = m_.nodes[id].next) {
      const Node& n = m_.nodes[id];
      if (n.kind == NodeKind::Fork && n.calls.size() > 1) return true;
      if (depth >= kDeepestNesting) return false;
      for (const Arm& arm : n.arms)
        if (forks(arm.body, depth + 1)) return true;
      if (n.other.valid() && forks(n.other, depth + 1)) return true;
      if (n.body.valid() && forks(n.body, depth + 1)) return true;
    }
    return false;
  }

  // The smallest value of the parameter with T past kSmallFork, 0 when even T(0) is.
  uint64_t measure(FuncId func, uint32_t param) {
    self_ = func;
    param_ = param;
    totals_.clear();
    while (totals_.size() < kLargestLimit) {
      below_.clear();
      below_[m_.funcs[func].params[param].index] = 0;
      const uint64_t total = cost(m_.funcs[func].body, 0);
      if (total > kSmallFork) break;
      totals_.push_back(total);
    }
    return totals_.size();
  }

  // Of a function outside the recursion: no recursion of its own, no loop.
  uint64_t flat(FuncId func) {
    uint64_t& known = flat_[func.index];
    if (known == kOpen) return kUnbounded;
    if (known != kUnknown) return known;
    known = kOpen;
    const FuncId self = self_;
    self_ = FuncId();
    const uint64_t found = nesting_ >= kDeepestNesting ? kUnbounded : cost(m_.funcs[func].body, 0);
    self_ = self;
    return flat_[func.index] = found;
  }

  uint64_t call(FuncId func, Slice args) {
    if (func != self_) {
      ++nesting_;
      const uint64_t found = flat(func);
      --nesting_;
      return plus(found, 1);
    }
    const auto step = below_.find(m_.list(args)[param_].index);
    if (step == below_.end() || step->second == 0) return kUnbounded;
    // A step past zero is not taken at this value.
    return step->second > totals_.size() ? 1 : plus(totals_[totals_.size() - step->second], 1);
  }

  // Operations of the longest path.
  uint64_t cost(NodeId id, uint32_t depth) {
    uint64_t sum = 0;
    for (; id.valid(); id = m_.nodes[id].next) {
      if (depth >= kDeepestNesting || sum > kSmallFork) return kUnbounded;
      const Node& n = m_.nodes[id];
      sum = plus(sum, 1);
      switch (n.kind) {
        case NodeKind::Let:
          sum = plus(sum, let(n));
          break;
        case NodeKind::Open:
        case NodeKind::Dup:
        case NodeKind::Ret:
        case NodeKind::Jump:
        case NodeKind::Abort:
          break;
        case NodeKind::Drop:
          // What a drop frees has no bound; memory for reuse has.
          if (m_.types[m_.vars[n.subject].type].kind != TypeKind::Token) return kUnbounded;
          break;
        case NodeKind::Join:
          if (n.loop) return kUnbounded;
          sum = plus(sum, cost(n.body, depth + 1));
          break;
        case NodeKind::Fork:
          for (const CallSite& site : n.calls) sum = plus(sum, call(site.func, site.args));
          break;
        case NodeKind::Case:
        case NodeKind::Switch: {
          uint64_t longest = n.other.valid() ? cost(n.other, depth + 1) : 0;
          for (const Arm& arm : n.arms) longest = std::max(longest, cost(arm.body, depth + 1));
          return plus(sum, longest);
        }
        case NodeKind::Tail:
          return plus(sum, call(n.func, n.args));
      }
    }
    return sum;
  }

  uint64_t let(const Node& n) {
    const Expr& e = n.expr;
    switch (e.kind) {
      case ExprKind::Const:
      case ExprKind::Str:
      case ExprKind::Struct:
      case ExprKind::Get:
      case ExprKind::Variant:
      case ExprKind::VariantGet:
      case ExprKind::Con:
      case ExprKind::ConGet:
      case ExprKind::Closure:
      case ExprKind::Box:
      case ExprKind::Unbox:
      case ExprKind::Request:
        return 1;
      case ExprKind::Prim:
        if (e.prim == Prim::NatPred)
          if (const auto of = below_.find(m_.list(e.args)[0].index); of != below_.end()) below_[n.var.index] = of->second + 1;
        return constant_time(e.prim) ? 1 : kUnbounded;
      case ExprKind::Call:
        return call(e.func, e.args);
      case ExprKind::Apply:
        return kUnbounded;
    }
    return kUnbounded;
  }

  const Module& m_;
  std::vector<uint64_t> flat_;                    // by function
  FuncId self_;
  uint32_t param_ = 0;
  uint32_t nesting_ = 0;
  std::vector<uint64_t> totals_;                  // T(0), T(1), ..
  std::unordered_map<uint32_t, uint64_t> below_;  // by variable: how far below the parameter
};

}  // namespace

std::vector<SmallFork> find_small_forks(const Module& module) { return Bounder(module).run(); }

}  // namespace bendc::flow
