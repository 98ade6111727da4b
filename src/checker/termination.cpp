// The structural order of arguments against patterns.
#include "checker/termination.h"

namespace bendc {

namespace {

bool is_number(const Value* v) { return v->tag == Tag::Nat || v->tag == Tag::U32 || v->tag == Tag::F32; }

}  // namespace

Order Descent::compare(const Value* arg, const Value* pattern) {
  if (m_.deep()) return Order::Greater;
  for (;;) {
    arg = m_.force(arg);
    pattern = m_.force(pattern);
    if (pattern->tag == Tag::Var) return arg->tag == Tag::Var && arg->a == pattern->a ? Order::Equal : Order::Greater;
    if (arg == pattern) return Order::Equal;
    if (is_number(pattern) && is_number(arg)) {
      const uint64_t a = as<NumberValue>(arg)->number;
      const uint64_t p = as<NumberValue>(pattern)->number;
      if (a == p && arg->tag == pattern->tag) return Order::Equal;
      return pattern->tag == Tag::Nat && arg->tag == Tag::Nat && a < p ? Order::Less : Order::Greater;
    }
    if (pattern->tag != Tag::Ctr) {
      // A literal pattern: its parts are literals, so only a literal or a constructor can be below it.
      if (arg->tag != Tag::Ctr && arg->tag != Tag::Str) return Order::Greater;
      if (pattern->tag == Tag::Str && arg->tag == Tag::Str && m_.string_length(as<NumberValue>(arg)) > m_.string_length(as<NumberValue>(pattern))) {
        return Order::Greater;
      }
      pattern = m_.step(pattern);
      if (pattern == nullptr) return Order::Greater;
    }
    const CtrValue* p = as<CtrValue>(pattern);
    const Value* layer = arg->tag == Tag::Ctr ? arg : nullptr;
    if (layer == nullptr && arg->tag != Tag::Var && arg->tag != Tag::App && arg->tag != Tag::Call) layer = m_.step(arg);
    if (p->count == 1) {
      // One field: a chain such as Succ, compared in a loop.
      if (layer != nullptr && layer->a == p->a) {
        arg = as<CtrValue>(layer)->fields[0];
        pattern = p->fields[0];
        continue;
      }
      const Order inner = compare(arg, p->fields[0]);
      return inner == Order::Greater ? Order::Greater : Order::Less;
    }
    for (const Known& k : known_) {
      if (k.arg == arg && k.pattern == pattern) return k.order;
    }
    Order result = Order::Greater;
    uint32_t bad = p->count;
    if (layer != nullptr && layer->a == p->a) {
      bool less = false;
      for (uint32_t i = 0; i < p->count && bad == p->count; ++i) {
        const Order o = compare(as<CtrValue>(layer)->fields[i], p->fields[i]);
        if (o == Order::Greater) bad = i;
        if (o == Order::Less) less = true;
      }
      if (bad == p->count) result = less ? Order::Less : Order::Equal;
    }
    for (uint32_t j = 0; j < p->count && result == Order::Greater; ++j) {
      if (j != bad && compare(arg, p->fields[j]) != Order::Greater) result = Order::Less;
    }
    known_.push_back({arg, pattern, result});
    return result;
  }
}

Descent::Result Descent::lexicographic(std::span<const Value* const> args, std::span<const Value* const> patterns, const std::vector<bool>& erased) {
  Result result;
  const size_t count = std::min(args.size(), patterns.size());
  result.failing = static_cast<uint32_t>(count);
  bool decided = false;
  for (size_t i = 0; i < count; ++i) {
    known_.clear();
    const Order order = erased[i] ? Order::Equal : compare(args[i], patterns[i]);
    result.orders.push_back(order);
    if (decided || order == Order::Equal) continue;
    decided = true;
    result.descends = order == Order::Less;
    if (order == Order::Greater) result.failing = static_cast<uint32_t>(i);
  }
  return result;
}

}  // namespace bendc
