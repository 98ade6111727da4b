// Method: scalar evolution finds the accesses whose address is an affine recurrence of the loop; those with one step and constant distances are a stream.
// Other accesses stay as they are when they cannot meet a stream: neither writes, or both lie in array blocks that the guard compares. An
// array's address is always `inttoptr (and handle, BEND_ARRAY_ADDRESS)`, and an index never leaves its block.
#include "codegen/llvm/coalesce_plan.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <optional>

#include "runtime/abi.h"

namespace bendc::codegen {

namespace {

constexpr uint32_t kFewestIterations = 8;      // of a tile: below, copying and waiting cost more than what they save
constexpr size_t kMostStreams = 3;             // 32 KiB of shared memory a block
constexpr uint32_t kMostPeriod = 16;           // bytes
constexpr uint32_t kMostOverhang = 4;          // words
constexpr unsigned kMostInstructions = 200;    // of a loop: its code is there three times afterwards

struct Analyses {
  explicit Analyses(llvm::Function& function)
      : library_(llvm::Triple(function.getParent()->getTargetTriple())), tli(library_), assumptions(function), dominators(function), loops(dominators), se(function, tli, assumptions, dominators, loops) {}

 private:
  llvm::TargetLibraryInfoImpl library_;

 public:
  llvm::TargetLibraryInfo tli;
  llvm::AssumptionCache assumptions;
  llvm::DominatorTree dominators;
  llvm::LoopInfo loops;
  llvm::ScalarEvolution se;
};

// The array block that an address lies in: null when it is not known to be one or changes in the loop.
llvm::Value* array_block(const llvm::Loop& loop, llvm::Value* address) {
  using namespace llvm::PatternMatch;
  llvm::Value* object = llvm::getUnderlyingObject(address, 0);
  const llvm::APInt* mask = nullptr;
  if (!match(object, m_IntToPtr(m_And(m_Value(), m_APInt(mask)))) || *mask != BEND_ARRAY_ADDRESS) return nullptr;
  return loop.isLoopInvariant(object) ? object : nullptr;
}

struct Found {
  llvm::Instruction* inst;
  const llvm::SCEVAddRecExpr* address = nullptr;   // null: not a stream's
  llvm::Value* block = nullptr;
  bool local = false;                              // memory of the thread alone
  uint32_t words = 0;
  [[nodiscard]] bool writes() const { return llvm::isa<llvm::StoreInst>(inst); }
};

class Planner {
 public:
  Planner(Analyses& a, llvm::Loop& loop) : a_(a), loop_(loop) {}

  std::optional<LoopPlan> run() {
    if (!shape() || !accesses() || !streams() || !tile() || !separate()) return {};
    return std::move(plan_);
  }

  // Adds the code before the loop; false: some value cannot be had there.
  static bool expand(Analyses& a, LoopPlan& plan, const llvm::SCEV* backedges, const std::vector<const llvm::SCEV*>& starts);
  const llvm::SCEV* backedges = nullptr;
  std::vector<const llvm::SCEV*> starts;           // of the plan's streams

 private:
  // A loop of one latch that alone leaves it, to one block, after a number of iterations known before.
  bool shape() {
    plan_.preheader = loop_.getLoopPreheader();
    plan_.header = loop_.getHeader();
    plan_.latch = loop_.getLoopLatch();
    plan_.exit = loop_.getUniqueExitBlock();
    if (!loop_.isInnermost() || !plan_.preheader || !plan_.latch || !plan_.exit || loop_.getExitingBlock() != plan_.latch || !loop_.hasDedicatedExits()) return false;
    backedges = a_.se.getBackedgeTakenCount(&loop_);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(backedges) || a_.se.getTypeSizeInBits(backedges->getType()) > 64) return false;
    backedges = a_.se.getNoopOrZeroExtend(backedges, llvm::Type::getInt64Ty(plan_.header->getContext()));
    if (const auto* known = llvm::dyn_cast<llvm::SCEVConstant>(backedges); known && known->getAPInt().ult(kFewestIterations)) return false;
    plan_.blocks.assign(loop_.block_begin(), loop_.block_end());
    return true;
  }

  bool accesses() {
    unsigned size = 0;
    for (llvm::BasicBlock* block : plan_.blocks) {
      for (llvm::Instruction& inst : *block) {
        if (++size > kMostInstructions) return false;
        if (auto* call = llvm::dyn_cast<llvm::CallBase>(&inst)) {
          if (llvm::isa<llvm::AssumeInst>(call)) continue;
          if (!llvm::isa<llvm::IntrinsicInst>(call) || !call->doesNotAccessMemory() || call->isConvergent() || call->mayThrow()) return false;
          continue;
        }
        const bool load = llvm::isa<llvm::LoadInst>(inst), store = llvm::isa<llvm::StoreInst>(inst);
        if (load ? !llvm::cast<llvm::LoadInst>(inst).isSimple() : store ? !llvm::cast<llvm::StoreInst>(inst).isSimple() : inst.mayReadOrWriteMemory()) return false;
        if (load || store) found_.push_back(describe(inst));
      }
    }
    return true;
  }

  Found describe(llvm::Instruction& inst) {
    Found out{&inst};
    llvm::Value* pointer = llvm::getLoadStorePointerOperand(&inst);
    llvm::Type* type = llvm::getLoadStoreType(&inst);
    out.block = array_block(loop_, pointer);
    out.local = llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(pointer, 0));
    if (!out.block || !(type->isIntegerTy(32) || type->isIntegerTy(64) || type->isFloatTy())) return out;
    out.words = type->isIntegerTy(64) ? 2 : 1;
    // Also in the iterations in which it is not made, a stream's access must be one that may be made.
    const auto* address = llvm::dyn_cast<llvm::SCEVAddRecExpr>(a_.se.getSCEV(pointer));
    if (!address || address->getLoop() != &loop_ || !address->isAffine() || !a_.dominators.dominates(inst.getParent(), plan_.latch)) return out;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(address->getStepRecurrence(a_.se));
    if (!step || step->getAPInt().isNonPositive() || step->getAPInt().ugt(kMostPeriod) || step->getAPInt().urem(4) != 0) return out;
    out.address = address;
    return out;
  }

  [[nodiscard]] uint32_t period(const Found& found) const {
    return static_cast<uint32_t>(llvm::cast<llvm::SCEVConstant>(found.address->getStepRecurrence(a_.se))->getAPInt().getZExtValue() / 4);
  }

  // Bytes from a's start to b's.
  std::optional<int64_t> distance(const Found& a, const Found& b) {
    const auto* difference = llvm::dyn_cast<llvm::SCEVConstant>(a_.se.getMinusSCEV(b.address->getStart(), a.address->getStart()));
    if (!difference || difference->getAPInt().getSignificantBits() > 32) return {};
    return difference->getAPInt().getSExtValue();
  }

  bool streams() {
    constexpr int64_t kReach = 64;   // bytes
    std::vector<bool> taken(found_.size());
    for (size_t i = 0; i < found_.size(); ++i) {
      if (taken[i] || !found_[i].address) continue;
      std::vector<std::pair<int64_t, size_t>> members;
      for (size_t j = i; j < found_.size(); ++j) {
        if (taken[j] || !found_[j].address || period(found_[j]) != period(found_[i]) || found_[j].block != found_[i].block) continue;
        const std::optional<int64_t> bytes = distance(found_[i], found_[j]);
        if (!bytes || *bytes > kReach || *bytes < -kReach || *bytes % 4 != 0) continue;
        taken[j] = true;
        members.emplace_back(*bytes, j);
      }
      std::sort(members.begin(), members.end());
      Stream stream;
      stream.block = found_[i].block;
      stream.period = period(found_[i]);
      uint64_t words = 0;   // that an iteration writes: a bit each
      for (auto [bytes, index] : members) {
        const Found& member = found_[index];
        const auto place = static_cast<uint32_t>((bytes - members[0].first) / 4);
        stream.accesses.push_back({member.inst, place});
        stream.span = std::max(stream.span, place + member.words);
        stream.wide |= member.words == 2;
        (member.writes() ? stream.written : stream.read) = true;
        if (member.writes()) words |= ((uint64_t{1} << member.words) - 1) << place;
      }
      if (stream.wide && (stream.period % 2 != 0 || std::any_of(stream.accesses.begin(), stream.accesses.end(), [&](const Stream::Access& access) { return access.place % 2 != 0 && llvm::getLoadStoreType(access.inst)->isIntegerTy(64); })))
        return false;
      if (stream.written) {
        // What goes back must have been written: no gaps.
        stream.first_written = static_cast<uint32_t>(llvm::countr_zero(words));
        if (words >> stream.first_written != (uint64_t{1} << stream.period) - 1) return false;
      }
      plan_.streams.push_back(std::move(stream));
      starts.push_back(found_[members[0].second].address->getStart());
    }
    return !plan_.streams.empty() && plan_.streams.size() <= kMostStreams;
  }

  // How many iterations a tile has: all streams' words fit their rows.
  bool tile() {
    plan_.row = plan_.streams.size() == 1 ? 32 : 16;
    plan_.iterations = plan_.row;
    plan_.prefetch = true;
    bool read = false;
    for (const Stream& stream : plan_.streams) {
      if (overhang(stream) > kMostOverhang) return false;
      plan_.iterations = std::min(plan_.iterations, plan_.row / stream.period);
      read |= stream.read;
      // What one tile writes and the next reads cannot be fetched before.
      if (stream.read && stream.written && stream.first_written > 0) plan_.prefetch = false;
    }
    plan_.prefetch &= read;
    return plan_.iterations >= kFewestIterations;
  }

  // What is not in a stream cannot meet one.
  bool separate() {
    for (const Found& other : found_) {
      if (other.address || other.local) continue;
      for (const Stream& stream : plan_.streams) {
        if (!other.writes() && !stream.written) continue;
        if (!other.block || other.block == stream.block) return false;
        const std::pair<llvm::Value*, llvm::Value*> pair{other.block, stream.block};
        if (std::find(plan_.apart.begin(), plan_.apart.end(), pair) == plan_.apart.end()) plan_.apart.push_back(pair);
      }
    }
    return true;
  }

  Analyses& a_;
  llvm::Loop& loop_;
  LoopPlan plan_;
  std::vector<Found> found_;
};

bool expand(Analyses& a, LoopPlan& plan, const llvm::SCEV* backedges, const std::vector<const llvm::SCEV*>& starts) {
  llvm::SCEVExpander expander(a.se, "tile");
  llvm::Instruction* end = plan.preheader->getTerminator();
  if (!expander.isSafeToExpandAt(backedges, end)) return false;
  for (const llvm::SCEV* start : starts)
    if (!expander.isSafeToExpandAt(start, end)) return false;
  llvm::Type* i64 = llvm::Type::getInt64Ty(plan.header->getContext());
  plan.backedges = expander.expandCodeFor(backedges, i64, end);
  for (size_t i = 0; i < starts.size(); ++i) {
    llvm::Value* start = expander.expandCodeFor(starts[i], starts[i]->getType(), end);
    plan.streams[i].start = start->getType()->isPointerTy() ? new llvm::PtrToIntInst(start, i64, "", end->getIterator()) : start;
  }
  return true;
}

}  // namespace

std::vector<LoopPlan> plan_loops(llvm::Function& function) {
  std::vector<LoopPlan> plans;
  Analyses a(function);
  for (llvm::Loop* loop : a.loops) {
    llvm::simplifyLoop(loop, &a.dominators, &a.loops, &a.se, &a.assumptions, nullptr, false);
    llvm::formLCSSARecursively(*loop, a.dominators, &a.loops, &a.se);
  }
  for (llvm::Loop* loop : a.loops.getLoopsInPreorder()) {
    Planner planner(a, *loop);
    std::optional<LoopPlan> plan = planner.run();
    if (plan && expand(a, *plan, planner.backedges, planner.starts)) plans.push_back(std::move(*plan));
  }
  return plans;
}

}  // namespace bendc::codegen
