#include "codegen/gpu/made_nodes.h"

#include <map>
#include <optional>

#include "codegen/prim_types.h"

namespace bendc {

using namespace flow;

namespace {

constexpr uint32_t kMostBytes = 1u << 16;
constexpr uint32_t kMostDepth = 32;   // of calls: also the end of recursion

class Counter {
 public:
  Counter(const Module& module, Layouts& layouts) : m_(module), layouts_(layouts) {}

  // The bytes made from here to the function's end; none when the ways differ. Nodes that end in an error make any number.
  struct Bytes {
    bool any = false;
    uint32_t count = 0;
  };

  std::optional<Bytes> function(FuncId func) {
    if (auto known = functions_.find(func.index); known != functions_.end()) return known->second;
    if (depth_ == kMostDepth) return std::nullopt;
    ++depth_;
    std::map<uint32_t, Bytes> outer;
    outer.swap(joins_);
    const std::optional<Bytes> bytes = from(m_.funcs[func].body);
    outer.swap(joins_);
    --depth_;
    return functions_[func.index] = bytes;
  }

  std::set<uint32_t> sizes;

 private:
  // Bodies nest as deep as matches do, which the device's bounds on a leaf's weight keep small.
  std::optional<Bytes> from(NodeId at) {
    Bytes made;
    auto add = [&](const std::optional<Bytes>& more) {
      if (!more) return false;
      made.any |= more->any;
      made.count += more->count;
      return made.count <= kMostBytes;
    };
    for (;;) {
      const Node& n = m_.nodes[at];
      switch (n.kind) {
        case NodeKind::Let:
          if (!add(expression(n))) return std::nullopt;
          at = n.next;
          continue;
        case NodeKind::Join: {
          if (n.loop) return std::nullopt;
          const std::optional<Bytes> body = from(n.body);
          if (!body) return std::nullopt;
          joins_[n.join.index] = *body;
          at = n.next;
          continue;
        }
        case NodeKind::Case:
        case NodeKind::Switch: {
          std::optional<Bytes> all = Bytes{true, 0};
          for (const Arm& arm : n.arms) all = same(all, from(arm.body));
          if (n.other.valid()) all = same(all, from(n.other));
          if (!add(all)) return std::nullopt;
          return made;
        }
        case NodeKind::Tail:
          if (!add(function(n.func))) return std::nullopt;
          return made;
        case NodeKind::Jump: {
          const auto join = joins_.find(n.join.index);
          if (join == joins_.end() || !add(join->second)) return std::nullopt;
          return made;
        }
        case NodeKind::Ret: return made;
        case NodeKind::Abort: return Bytes{true, 0};
        case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: case NodeKind::Fork: return std::nullopt;
      }
    }
  }

  static std::optional<Bytes> same(const std::optional<Bytes>& a, const std::optional<Bytes>& b) {
    if (!a || !b) return std::nullopt;
    if (a->any) return b;
    if (b->any || a->count == b->count) return a;
    return std::nullopt;
  }

  std::optional<Bytes> expression(const Node& n) {
    const Expr& e = n.expr;
    switch (e.kind) {
      case ExprKind::Const: case ExprKind::Struct: case ExprKind::Get: case ExprKind::Variant: case ExprKind::VariantGet: return Bytes{};
      case ExprKind::Prim:
        if (!is_plain(m_.vars[n.var].type)) return std::nullopt;
        for (VarId arg : m_.list(e.args))
          if (!is_plain(m_.vars[arg].type)) return std::nullopt;
        return Bytes{};
      case ExprKind::Con: {
        const DataId data = m_.types[m_.vars[n.var].type].data;
        if (e.reuse.valid()) return std::nullopt;
        if (m_.datas[data].ctors[e.imm].repr != CtorRepr::Node) return Bytes{};
        const uint32_t bytes = layouts_.node(data, static_cast<uint32_t>(e.imm)).bytes;
        sizes.insert(bytes);
        return Bytes{false, bytes};
      }
      case ExprKind::Call: return function(e.func);
      case ExprKind::Str: case ExprKind::ConGet: case ExprKind::Apply: case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box: case ExprKind::Unbox: return std::nullopt;
    }
    return std::nullopt;
  }

  // Numbers and what is made of them.
  bool is_plain(TypeId type) {
    switch (m_.types[type].kind) {
      case TypeKind::U32: case TypeKind::F32: case TypeKind::Nat: case TypeKind::Enum: case TypeKind::Token: return true;
      case TypeKind::Struct: case TypeKind::Sum: return !layouts_.of(type).counted;
      case TypeKind::Ref: case TypeKind::Array: case TypeKind::Fn: case TypeKind::Any: return false;
    }
    return false;
  }

  const Module& m_;
  Layouts& layouts_;
  std::map<uint32_t, std::optional<Bytes>> functions_;
  std::map<uint32_t, Bytes> joins_;
  uint32_t depth_ = 0;
};

}  // namespace

MadeNodes made_nodes(const Module& module, Layouts& layouts, FuncId func) {
  Counter counter(module, layouts);
  const auto bytes = counter.function(func);
  if (!bytes || bytes->any || bytes->count == 0) return {};
  return {bytes->count, std::move(counter.sizes)};
}

}  // namespace bendc
