// The task stack and its join, against every interleaving of a small model: an owner that forks twice deep, gives and joins, and thieves.
//
// Model of memory: stores of the owner to tail and entries wait in a FIFO store buffer (total store order) and become visible one by one, at
// any time; read-modify-write operations and sequentially consistent stores of the owner empty it first; a thief's barrier empties it.
// Head and the done marks are one word each. Every operation is a point where any other thread, or the buffer, may come first. States seen
// before (memory, buffer, what each thread has read so far) are not explored again. Threads are fibers; a state is reached by replaying the
// choices that led to it.
#include <doctest/doctest.h>
#include <ucontext.h>

#include <cstring>
#include <functional>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/cpu/tasks.h"

using namespace bendc::rt;

namespace {

constexpr uint32_t kBase = 4096;
constexpr uint32_t kEntries = 3;
constexpr size_t kFiberStack = 64 << 10;
constexpr uint32_t place_of(uint32_t index) { return kBase + index * BEND_TASK_BYTES; }
constexpr uint32_t index_of(uint32_t place) { return (place - kBase) / BEND_TASK_BYTES; }

struct Store {
  uint32_t where;   // kEntries: the tail
  uint32_t value;
};

class Model {
 public:
  Model(uint32_t thieves, uint32_t attempts, bool barriers, bool giving) : attempts_(attempts), barriers_(barriers), giving_(giving) {
    bodies_.push_back([this] { owner(); });
    for (uint32_t t = 0; t < thieves; ++t) bodies_.push_back([this] { thief(); });
    if (giving) bodies_.push_back([this] { receiver(); });
    for (size_t i = 0; i < bodies_.size(); ++i) stacks_.push_back(std::make_unique<char[]>(kFiberStack));
  }

  // Explores everything; the first thing that went wrong, or null.
  const char* explore() {
    std::vector<uint32_t> choices;
    do {
      run(choices);
      ++runs;
      if (wrong_) return wrong_;
    } while (next(choices));
    return nullptr;
  }
  uint64_t runs = 0;

 private:
  // ---- the threads: the same functions as in the runtime ----
  struct Head {
    Model& m;
    uint64_t load(std::memory_order) { return m.op([&] { return m.head_; }); }
    void store(uint64_t value, std::memory_order) {
      m.op([&] { m.flush_all(); m.head_ = value; return 0; });
    }
    bool compare_exchange_strong(uint64_t& expected, uint64_t desired, std::memory_order) {
      const uint64_t seen = m.op([&] {
        const uint64_t now = m.head_;
        if (m.current_ == 0) m.flush_all();
        if (now == expected) m.head_ = desired;
        return now;
      });
      const bool done = seen == expected;
      expected = seen;
      return done;
    }
  };

  void push(uint32_t index, uint32_t task) {
    op([&] { buffer_.push_back({index, task}); return 0; });
    op([&] { buffer_.push_back({kEntries, place_of(index + 1)}); own_tail_ = place_of(index + 1); return 0; });
  }

  void give() {
    uint32_t place;
    if (!take_task(head, [&] { return own_tail_; }, [] {}, &place)) return;
    op([&] { gift_ = 1 + place; return 0; });
  }

  // What generated code does after the first call of a fork, and bend_join.
  void pop(uint32_t index, uint32_t task) {
    const uint32_t place = place_of(index);
    op([&] { buffer_.push_back({kEntries, place}); own_tail_ = place; return 0; });
    bool ours = head_place(head.load(std::memory_order_relaxed)) < place;
    if (!ours) {
      op([&] { flush_all(); return 0; });
      ours = pop_task(head, place) == Popped::Ours;
    }
    if (ours) return execute(task);
    // The gift that nobody has looked at yet is the owner's again.
    if (giving_ && op([&] { flush_all(); return gift_ == 1 + place && (gift_ = 0, true); })) {
      give_back_task(head, place);
      return execute(task);
    }
    op([&] { flush_all(); tail_ = own_tail_ = place + BEND_TASK_BYTES; return 0; });
    wait([this, index] { return done_[index]; });
    op([&] { flush_all(); done_[index] = false; tail_ = own_tail_ = place; return 0; });
    give_back_task(head, place);
  }

  void owner() {
    push(0, 1);
    push(1, 2);
    if (giving_) give();
    pop(1, 2);
    pop(0, 1);
    push(0, 3);
    pop(0, 3);
    finished_ = true;
  }

  void steal_run(uint32_t place) {
    const auto task = static_cast<uint32_t>(op([&] { return entry_[index_of(place)]; }));
    execute(task);
    op([&] { done_[index_of(place)] = true; return 0; });
  }

  void thief() {
    for (uint32_t i = 0; i < attempts_; ++i) {
      uint32_t place;
      const bool taken = take_task(
          head, [&] { return static_cast<uint32_t>(op([&] { return tail_; })); },
          [&] { op([&] { if (barriers_) flush_all(); return 0; }); }, &place);
      if (taken) steal_run(place);
    }
  }

  void receiver() {
    wait([this] { return gift_ != 0 || finished_; });
    if (const auto gift = static_cast<uint32_t>(op([&] { return std::exchange(gift_, 0u); })); gift != 0) steal_run(gift - 1);
  }

  void execute(uint32_t task) {
    if (task == 0 || task > 3 || ++executed_[task] != 1) wrong_ = "a task ran twice, or was none";
  }

  // ---- the machine ----
  template <class F>
  uint64_t op(F&& effect) {
    yield();
    const auto result = static_cast<uint64_t>(effect());
    history_[current_] = (history_[current_] ^ (result + 0x9E3779B97F4A7C15ull)) * 0x100000001B3ull;
    return result;
  }
  void wait(std::function<bool()> ready) {
    ready_[current_] = std::move(ready);
    yield();
    ready_[current_] = nullptr;
    history_[current_] = history_[current_] * 0x100000001B3ull + 1;
  }
  void yield() {
    history_[current_] = history_[current_] * 0x100000001B3ull + 3;   // one step further
    swapcontext(&fibers_[current_], &scheduler_);
  }

  void apply(const Store& store) { (store.where == kEntries ? tail_ : entry_[store.where]) = store.value; }
  void flush_all() {
    for (const Store& store : buffer_) apply(store);
    buffer_.clear();
  }

  static void enter(unsigned low, unsigned high) {
    auto* m = reinterpret_cast<Model*>(static_cast<uint64_t>(high) << 32 | low);
    m->bodies_[m->current_]();
    m->over_[m->current_] = true;
    m->yield();
  }

  void reset() {
    const size_t n = bodies_.size();
    head_ = kBase;
    tail_ = own_tail_ = kBase;
    gift_ = 0;
    std::memset(entry_, 0, sizeof entry_);
    std::memset(done_, 0, sizeof done_);
    std::memset(executed_, 0, sizeof executed_);
    finished_ = false;
    buffer_.clear();
    over_.assign(n, false);
    history_.assign(n, 0);
    ready_.assign(n, nullptr);
    fibers_.resize(n);
    const auto self = reinterpret_cast<uint64_t>(this);
    for (size_t i = 0; i < n; ++i) {
      getcontext(&fibers_[i]);
      fibers_[i].uc_stack.ss_sp = stacks_[i].get();
      fibers_[i].uc_stack.ss_size = kFiberStack;
      fibers_[i].uc_link = &scheduler_;
      makecontext(&fibers_[i], reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
    }
  }

  std::vector<uint32_t> enabled() {
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < bodies_.size(); ++i)
      if (!over_[i] && (!ready_[i] || ready_[i]())) out.push_back(i);
    if (!buffer_.empty()) out.push_back(static_cast<uint32_t>(bodies_.size()));
    return out;
  }

  void step(uint32_t actor) {
    if (actor == bodies_.size()) {
      apply(buffer_.front());
      buffer_.erase(buffer_.begin());
      return;
    }
    current_ = actor;
    swapcontext(&scheduler_, &fibers_[actor]);
  }

  std::string state() const {
    std::string out;
    auto add = [&out](const auto& value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
    add(head_);
    add(tail_);
    add(gift_);
    add(entry_);
    add(done_);
    for (const Store& store : buffer_) add(store);
    for (uint64_t history : history_) add(history);
    return out;
  }

  // Replays the choices, then goes on with the first possibility each time until the end or a state seen before.
  void run(std::vector<uint32_t>& choices) {
    reset();
    widths_.clear();
    for (size_t depth = 0;; ++depth) {
      const std::vector<uint32_t> options = enabled();
      if (options.empty()) {
        for (bool over : over_)
          if (!over && !wrong_) wrong_ = "the threads wait for each other";
        for (uint32_t task = 1; task <= 3; ++task)
          if (executed_[task] != 1 && !wrong_) wrong_ = "a task did not run";
        return;
      }
      if (depth >= choices.size()) {
        if (!seen_.insert(state()).second) return;
        choices.push_back(0);
      }
      widths_.push_back(static_cast<uint32_t>(options.size()));
      step(options[choices[depth]]);
      if (wrong_) return;
    }
  }

  bool next(std::vector<uint32_t>& choices) {
    choices.resize(widths_.size());
    while (!choices.empty() && choices.back() + 1 >= widths_[choices.size() - 1]) choices.pop_back();
    if (choices.empty()) return false;
    ++choices.back();
    return true;
  }

  const uint32_t attempts_;
  const bool barriers_, giving_;
  Head head{*this};
  uint64_t head_ = 0;
  uint32_t tail_ = 0, own_tail_ = 0, gift_ = 0;
  uint32_t entry_[kEntries] = {};
  bool done_[kEntries] = {};
  uint32_t executed_[4] = {};
  bool finished_ = false;
  const char* wrong_ = nullptr;
  std::vector<Store> buffer_;
  std::vector<std::function<void()>> bodies_;
  std::vector<std::unique_ptr<char[]>> stacks_;
  std::vector<ucontext_t> fibers_;
  ucontext_t scheduler_ = {};
  uint32_t current_ = 0;
  std::vector<bool> over_;
  std::vector<uint64_t> history_;
  std::vector<std::function<bool()>> ready_;
  std::vector<uint32_t> widths_;
  std::unordered_set<std::string> seen_;
};

const char* explored(uint32_t thieves, uint32_t attempts, bool barriers, bool giving) {
  Model model(thieves, attempts, barriers, giving);
  const char* wrong = model.explore();
  MESSAGE(model.runs << " runs");
  return wrong;
}

}  // namespace

TEST_CASE("tasks: every interleaving runs each task once") {
  CHECK(explored(1, 3, true, false) == nullptr);
  CHECK(explored(2, 1, true, false) == nullptr);
  CHECK(explored(1, 1, true, true) == nullptr);
}

TEST_CASE("tasks: the model finds what the thief's barrier is for") { CHECK(explored(1, 2, false, false) != nullptr); }
