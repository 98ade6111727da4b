// A worker's tasks: the calls of its unfinished forks, oldest first, in a stack of BendForkTask entries. The owner pushes and pops at the
// tail (the fast paths are generated code), other workers take the oldest entry at the head. After Chase and Lev (2005), with two changes:
//
// * Entries hold the task itself and are not reused before the join, so that results are delivered in place. An entry's place is its fork's
//   depth, so the head goes back down at a join. It therefore carries an epoch, which changes whenever the head's entry is given back: a
//   thief that looked at an earlier state of the stack fails its compare-and-swap.
// * The owner's pop has no fence. Storing the tail before reading the head is ordered by the thief instead, which makes the system put a
//   barrier into every running thread between its reads of head and tail (membarrier). Where the system has none, BendWorker.task_head
//   points to a word that no tail exceeds, and the owner pops in bend_join with sequentially consistent operations.
//
// Invariant: an entry taken by a thief lies below the head, so when the newest entry turns out taken, all older ones are.
//
// Low halves of addresses are compared: the stack lies in a span aligned to its size. `Word` is std::atomic or a model's.
#pragma once
#include <stdint.h>

#include <atomic>

#include "runtime/abi.h"

namespace bendc::rt {

inline constexpr uint32_t kTaskOpen = 0;   // BendForkTask.state
inline constexpr uint32_t kTaskDone = 1;
inline constexpr uint32_t kTaskFailed = 2;   // data[0]: what to say

inline uint32_t head_place(uint64_t head) { return static_cast<uint32_t>(head); }
inline uint64_t next_epoch(uint64_t head) { return head + (1ull << 32); }
inline uint64_t with_place(uint64_t head, uint32_t place) { return (head & ~0xFFFFFFFFull) | place; }

enum class Popped : uint8_t { Ours, Taken };

// The owner, having taken the entry at `place` off the tail: may it run the task itself?
template <class Head>
[[nodiscard]] Popped pop_task(Head& head, uint32_t place) {
  uint64_t seen = head.load(std::memory_order_seq_cst);
  if (head_place(seen) < place) return Popped::Ours;
  // The last entry: whoever changes the head gets it.
  if (head_place(seen) == place && head.compare_exchange_strong(seen, next_epoch(seen), std::memory_order_seq_cst)) return Popped::Ours;
  return Popped::Taken;
}

// The owner, after the taken entry at `place` is done and the tail is back at it.
template <class Head>
void give_back_task(Head& head, uint32_t place) {
  head.store(next_epoch(with_place(head.load(std::memory_order_relaxed), place)), std::memory_order_seq_cst);
}

// Another worker: the place of the entry taken, or false. `tail()` reads the tail's low half, `barrier()` orders the two reads.
template <class Head, class Tail, class Barrier>
[[nodiscard]] bool take_task(Head& head, Tail&& tail, Barrier&& barrier, uint32_t* place) {
  uint64_t seen = head.load(std::memory_order_seq_cst);
  if (tail() <= head_place(seen)) return false;
  barrier();
  if (tail() <= head_place(seen)) return false;
  *place = head_place(seen);
  return head.compare_exchange_strong(seen, with_place(seen, *place + BEND_TASK_BYTES), std::memory_order_seq_cst);
}

}  // namespace bendc::rt
