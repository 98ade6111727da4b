// Method, for a loop that coalesce_plan.h describes. `plain` is the loop as it was:
//
//   preheader: all 32 lanes here? -> check, else plain
//   check:     the guard's other tests agree on all lanes -> start, else plain
//   start:     each lane leaves its streams' starts and ends in shared memory for the others
//   tile:      rows from global to shared memory; iterations (a constant number of them unless some lane has fewer left); written rows back;
//              again while any lane has iterations left
//   done:      -> the loop's exit
//
// Rows begin where lines of memory begin, for a store of a part of a line costs as much as one of two lines: a lane's first tile has the iterations up to
// the first such place. (H200, 2^26 words, a prefix sum in place: 165 us aligned, 240 to 310 us not.) So a lane counts from an iteration `skip` before its
// first. The loads of a tile are made before the iterations of the tile before, into registers, so that both take their time together.
// A lane past its end loads its last word again: no line is touched that the loop does not touch itself.
//
// Shared memory of a warp, for each stream: 32 rows, so far apart that the lanes' words of one iteration lie in different banks; then 32 records
// { address of the first row: 8 bytes, last word and skipped words: 4 bytes each }. With rows of 16 words one access takes two rows, those of lanes
// r and r + 16. What overhangs a row each lane loads for itself.
#include "codegen/llvm/coalesce_loops.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <algorithm>
#include <optional>

#include "codegen/llvm/coalesce_plan.h"
#include "codegen/llvm/tiles.h"

namespace bendc::codegen {

namespace {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kRecordWords = 4;
constexpr uint32_t kFewest = 8;                    // iterations of each lane
constexpr uint64_t kMostBackedges = 1u << 24;      // so that words of a stream are counted in 32 bits
constexpr uint32_t kNear = 32;                     // bytes, a sector: lanes that are closer are served together
constexpr uint32_t kMostUnrolled = 512;            // instructions of a tile's iterations
constexpr unsigned kShared = 3, kGlobal = 1;       // address spaces
constexpr const char* kTilesName = "bend.tiles";

using Builder = llvm::IRBuilder<>;
using Values = std::vector<llvm::Value*>;

// Odd, or twice an odd number: words of eight bytes stay aligned, and go to different banks in halves of a warp.
uint32_t pitch(const LoopPlan& plan, const Stream& stream) {
  const uint32_t words = plan.row + std::max(overhang(stream), 1u);
  return stream.wide ? ((words + 1) / 2 | 1) * 2 : words | 1;
}
uint32_t stream_words(const LoopPlan& plan, const Stream& stream) { return kWarp * pitch(plan, stream) + kWarp * kRecordWords; }

uint32_t warp_words(const LoopPlan& plan) {
  uint32_t words = 0;
  for (const Stream& stream : plan.streams) words += stream_words(plan, stream);
  return words;
}

class Coalescer {
 public:
  Coalescer(LoopPlan& plan, llvm::GlobalVariable* area, uint32_t area_words) : plan_(plan), area_(area), area_words_(area_words), context_(plan.header->getContext()), b_(context_) {}

  void run() {
    plain_ = block("plain");
    check_ = block("check");
    start_ = block("start");
    tile_ = block("tile");
    done_ = block("done");
    enter();
    check();
    start();
    tile();
  }

 private:
  // Where a stream's words lie: this lane's row, the word of its column in its first copied row, and that row's record; its own record's start and last.
  struct Area {
    llvm::Value *own, *copied, *records, *start, *last;
  };

  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(context_, name, plan_.header->getParent(), plan_.header); }
  llvm::Value* number(uint32_t value) { return b_.getInt32(value); }
  llvm::Value* all() { return b_.getInt32(~0u); }
  llvm::Value* intrinsic(llvm::Type* type, llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> args) { return b_.CreateIntrinsic(type, id, args); }
  llvm::Value* vote(llvm::Intrinsic::ID id, llvm::Value* bit) { return intrinsic(b_.getInt1Ty(), id, {all(), bit}); }
  void wait() { intrinsic(b_.getVoidTy(), llvm::Intrinsic::nvvm_bar_warp_sync, {all()}); }
  // The address of word `index` of `base` in shared memory.
  llvm::Value* word(llvm::Value* base, llvm::Value* index) { return b_.CreateInBoundsGEP(b_.getInt32Ty(), base, index); }
  llvm::Value* word(llvm::Value* base, uint32_t index) { return word(base, number(index)); }
  // The global address of word `index` of a stream that starts at `start`.
  llvm::Value* global(llvm::Value* start, llvm::Value* index) {
    llvm::Value* address = b_.CreateAdd(start, b_.CreateShl(b_.CreateZExt(index, b_.getInt64Ty()), 2));
    return b_.CreateIntToPtr(address, llvm::PointerType::get(context_, kGlobal));
  }
  static void unrolling(llvm::Instruction* latch, const char* how, std::optional<uint32_t> count = {}) {
    llvm::LLVMContext& context = latch->getContext();
    llvm::SmallVector<llvm::Metadata*, 2> parts{llvm::MDString::get(context, how)};
    if (count) parts.push_back(llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), *count)));
    llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, llvm::MDNode::get(context, parts)});
    loop->replaceOperandWith(0, loop);
    latch->setMetadata(llvm::LLVMContext::MD_loop, loop);
  }

  void enter() {
    plan_.preheader->getTerminator()->eraseFromParent();
    b_.SetInsertPoint(plan_.preheader);
    llvm::Value* here = intrinsic(b_.getInt32Ty(), llvm::Intrinsic::nvvm_activemask, {});
    b_.CreateCondBr(b_.CreateICmpEQ(here, all()), check_, plain_);
    b_.SetInsertPoint(plain_);
    b_.CreateBr(plan_.header);
    plan_.header->replacePhiUsesWith(plan_.preheader, plain_);
  }

  // The end of a stream's addresses in this lane.
  llvm::Value* end_of(const Stream& stream) {
    llvm::Value* bytes = b_.CreateAdd(b_.CreateMul(plan_.backedges, b_.getInt64(4ull * stream.period)), b_.getInt64(4ull * stream.span));
    return b_.CreateAdd(stream.start, bytes);
  }

  void check() {
    b_.SetInsertPoint(check_);
    lane_ = b_.CreateAnd(intrinsic(b_.getInt32Ty(), llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}), kWarp - 1);
    // kFewest - 1 <= backedges < kMostBackedges
    llvm::Value* fits = b_.CreateICmpULT(b_.CreateSub(plan_.backedges, b_.getInt64(kFewest - 1)), b_.getInt64(kMostBackedges - kFewest + 1));
    for (auto [x, y] : plan_.apart) fits = b_.CreateAnd(fits, b_.CreateICmpNE(b_.CreatePtrToInt(x, b_.getInt64Ty()), b_.CreatePtrToInt(y, b_.getInt64Ty())));
    for (size_t i = 0; i < plan_.streams.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const Stream &x = plan_.streams[i], &y = plan_.streams[j];
        if (!x.written && !y.written) continue;
        llvm::Value *before = b_.CreateICmpULE(end_of(x), y.start), *after = b_.CreateICmpULE(end_of(y), x.start);
        fits = b_.CreateAnd(fits, b_.CreateOr(before, after));
      }
    }
    llvm::Value *together = vote(llvm::Intrinsic::nvvm_vote_all_sync, fits), *apart = b_.getFalse();
    for (const Stream& stream : plan_.streams) {
      llvm::Value* low = b_.CreateTrunc(stream.start, b_.getInt32Ty());
      llvm::Value* difference = b_.CreateSub(low, intrinsic(b_.getInt32Ty(), llvm::Intrinsic::nvvm_shfl_sync_up_i32, {all(), low, number(1), number(0)}));
      // Not within (-kNear, kNear); lane 0 has no neighbour.
      llvm::Value* far = b_.CreateOr(b_.CreateICmpUGT(b_.CreateAdd(difference, number(kNear - 1)), number(2 * kNear - 2)), b_.CreateICmpEQ(lane_, number(0)));
      apart = b_.CreateOr(apart, vote(llvm::Intrinsic::nvvm_vote_all_sync, far));
    }
    b_.CreateCondBr(b_.CreateAnd(together, apart), start_, plain_);
  }

  void start() {
    b_.SetInsertPoint(start_);
    llvm::Value* warp = b_.CreateLShr(intrinsic(b_.getInt32Ty(), llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}), 5);
    llvm::Value* base = word(area_, b_.CreateMul(warp, number(area_words_)));
    // All streams skip what one has to whose rows are to begin lines, one that is written if any is.
    const auto first = std::find_if(plan_.streams.begin(), plan_.streams.end(), [](const Stream& stream) { return stream.written; });
    aligned_ = first == plan_.streams.end() ? &plan_.streams.front() : &*first;
    llvm::Value* offset = b_.CreateAnd(b_.CreateTrunc(b_.CreateLShr(aligned_->start, 2), b_.getInt32Ty()), plan_.row - 1);
    skip_ = llvm::isPowerOf2_32(aligned_->period) && aligned_->period * plan_.iterations == plan_.row ? b_.CreateUDiv(offset, number(aligned_->period)) : number(0);
    end_ = b_.CreateAdd(b_.CreateAdd(b_.CreateTrunc(plan_.backedges, b_.getInt32Ty()), number(1)), skip_);
    column_ = b_.CreateAnd(lane_, plan_.row - 1);
    // The first of the rows that this lane copies: 0, or 16 for the upper half of the lanes.
    llvm::Value* first_row = plan_.row == kWarp ? number(0) : b_.CreateAnd(lane_, kWarp - plan_.row);
    wait();
    uint32_t at = 0;
    for (const Stream& stream : plan_.streams) {
      Area area;
      llvm::Value* rows = word(base, at);
      llvm::Value* records = word(base, at + kWarp * pitch(plan_, stream));
      at += stream_words(plan_, stream);
      area.own = word(rows, b_.CreateMul(lane_, number(pitch(plan_, stream))));
      area.copied = word(rows, b_.CreateAdd(b_.CreateMul(first_row, number(pitch(plan_, stream))), column_));
      area.records = word(records, b_.CreateMul(first_row, number(kRecordWords)));
      llvm::Value* record = word(records, b_.CreateMul(lane_, number(kRecordWords)));
      llvm::Value* skipped = b_.CreateMul(skip_, number(stream.period));
      area.start = b_.CreateSub(stream.start, b_.CreateShl(b_.CreateZExt(skipped, b_.getInt64Ty()), 2));
      area.last = b_.CreateAdd(b_.CreateMul(b_.CreateSub(end_, number(1)), number(stream.period)), number(stream.span - 1));
      b_.CreateAlignedStore(area.start, record, llvm::Align(16));
      b_.CreateAlignedStore(area.last, word(record, 2), llvm::Align(8));
      b_.CreateAlignedStore(skipped, word(record, 3), llvm::Align(4));
      areas_.push_back(area);
    }
    wait();
    if (plan_.prefetch) first_loads_ = load_rows(number(0));
    b_.CreateBr(tile_);
  }

  // Start, last word and skipped words of a row.
  struct Record {
    llvm::Value *start, *last, *skipped;
  };
  Record record(llvm::Value* place) {
    llvm::Value* both = b_.CreateAlignedLoad(llvm::FixedVectorType::get(b_.getInt64Ty(), 2), place, llvm::Align(16));   // one access
    llvm::Value* words = b_.CreateExtractElement(both, uint64_t{1});
    return {b_.CreateExtractElement(both, uint64_t{0}), b_.CreateTrunc(words, b_.getInt32Ty()), b_.CreateTrunc(b_.CreateLShr(words, 32), b_.getInt32Ty())};
  }
  llvm::Value* load_word(llvm::Value* start, llvm::Value* index) { return b_.CreateAlignedLoad(b_.getInt32Ty(), global(start, index), llvm::Align(4)); }
  llvm::Value* least(llvm::Value* x, llvm::Value* y) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, y); }

  // The words that this lane copies of the tile that starts with iteration `at`, all read streams' one after another.
  Values load_rows(llvm::Value* at) {
    Values out;
    for (size_t s = 0; s < plan_.streams.size(); ++s) {
      const Stream& stream = plan_.streams[s];
      if (!stream.read) continue;
      llvm::Value* first = b_.CreateMul(at, number(stream.period));
      llvm::Value* index = b_.CreateAdd(first, column_);
      for (uint32_t r = 0; r < plan_.row; ++r) {
        const Record row = record(word(areas_[s].records, r * kRecordWords));
        llvm::Value* within = least(index, row.last);
        // What the other streams skip may lie before their block.
        if (&stream != aligned_) within = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, within, row.skipped);
        out.push_back(load_word(row.start, within));
      }
      for (uint32_t i = 0; i < overhang(stream); ++i) out.push_back(load_word(areas_[s].start, least(b_.CreateAdd(first, number(plan_.iterations * stream.period + i)), areas_[s].last)));
    }
    return out;
  }

  void store_rows(const Values& loads) {
    size_t next = 0;
    for (size_t s = 0; s < plan_.streams.size(); ++s) {
      const Stream& stream = plan_.streams[s];
      if (!stream.read) continue;
      const uint32_t words = plan_.iterations * stream.period;
      for (uint32_t r = 0; r < plan_.row; ++r) b_.CreateAlignedStore(loads[next++], word(areas_[s].copied, r * pitch(plan_, stream)), llvm::Align(4));
      // A row that is not all of the tile's words ends with some of the next tile's, which are the overhang too.
      for (uint32_t i = 0; i < overhang(stream); ++i, ++next)
        if (words + i >= plan_.row) b_.CreateAlignedStore(loads[next], word(areas_[s].own, words + i), llvm::Align(4));
    }
  }

  void write_word(const Stream& stream, const Area& area, llvm::Value* row, llvm::Value* start, llvm::Value* index) {
    llvm::Value* place = word(area.copied, b_.CreateAdd(b_.CreateMul(row, number(pitch(plan_, stream))), number(stream.first_written)));
    b_.CreateAlignedStore(b_.CreateAlignedLoad(b_.getInt32Ty(), place, llvm::Align(4)), global(start, index), llvm::Align(4));
  }

  // What the tile from iteration `at` wrote, to where it belongs. `full`: all lanes have all iterations of this tile.
  void write_rows(llvm::Value* at, llvm::Value* full) {
    for (size_t s = 0; s < plan_.streams.size(); ++s) {
      const Stream& stream = plan_.streams[s];
      if (!stream.written) continue;
      const uint32_t words = plan_.iterations * stream.period;
      llvm::BasicBlock *whole = block("whole"), *rows = block("rows"), *put = block("put"), *next = block("next"), *after = block("after");
      llvm::Value* index = b_.CreateAdd(b_.CreateMul(at, number(stream.period)), b_.CreateAdd(column_, number(stream.first_written)));
      llvm::BasicBlock* before = b_.GetInsertBlock();
      if (words < plan_.row) {
        llvm::BasicBlock* some = block("some");
        b_.CreateCondBr(b_.CreateICmpULT(column_, number(words)), some, after);
        b_.SetInsertPoint(some);
        before = some;
      }
      b_.CreateCondBr(full, whole, rows);
      b_.SetInsertPoint(whole);
      for (uint32_t r = 0; r < plan_.row; ++r) {
        llvm::Value* start = b_.CreateAlignedLoad(b_.getInt64Ty(), word(areas_[s].records, r * kRecordWords), llvm::Align(16));
        write_word(stream, areas_[s], number(r), start, index);
      }
      b_.CreateBr(after);
      b_.SetInsertPoint(rows);
      llvm::PHINode* row = b_.CreatePHI(b_.getInt32Ty(), 2);
      row->addIncoming(number(0), before);
      const Record of = record(word(areas_[s].records, b_.CreateMul(row, number(kRecordWords))));
      // From the first word that is written to the last.
      llvm::Value* from = b_.CreateAdd(of.skipped, number(stream.first_written));
      llvm::Value* last = b_.CreateAdd(of.last, number(stream.first_written + stream.period - stream.span));
      llvm::Value* mine = b_.CreateAnd(b_.CreateICmpUGE(index, from), b_.CreateICmpULE(index, last));
      b_.CreateCondBr(mine, put, next);
      b_.SetInsertPoint(put);
      write_word(stream, areas_[s], row, of.start, index);
      b_.CreateBr(next);
      b_.SetInsertPoint(next);
      llvm::Value* following = b_.CreateAdd(row, number(1));
      row->addIncoming(following, next);
      unrolling(b_.CreateCondBr(b_.CreateICmpULT(following, number(plan_.row)), rows, after), "llvm.loop.unroll.disable");
      b_.SetInsertPoint(after);
    }
  }

  // The iterations of a tile in one lane, on its row: those from `from` on before `to`, one at least. Entered from the builder's block, left to a new one that
  // becomes it. Returns the next states and the results, as values of that block.
  Values iterate(llvm::Value* from, llvm::Value* to, const Values& states) {
    llvm::BasicBlock *before = b_.GetInsertBlock(), *after = block("iterated");
    llvm::ValueToValueMapTy map;
    llvm::SmallVector<llvm::BasicBlock*, 8> copies;
    for (llvm::BasicBlock* original : plan_.blocks) {
      llvm::BasicBlock* copy = llvm::CloneBasicBlock(original, map, ".tile", plan_.header->getParent());
      copy->moveBefore(after);
      map[original] = copy;
      copies.push_back(copy);
    }
    llvm::remapInstructionsInBlocks(copies, map);
    auto *header = llvm::cast<llvm::BasicBlock>(map[plan_.header]), *latch = llvm::cast<llvm::BasicBlock>(map[plan_.latch]);
    b_.CreateBr(header);
    // The loop's own predecessor is not one of the copy's.
    size_t next = 0;
    for (llvm::PHINode& phi : header->phis()) {
      const int index = phi.getBasicBlockIndex(plain_);
      phi.setIncomingBlock(static_cast<unsigned>(index), before);
      phi.setIncomingValue(static_cast<unsigned>(index), states[next++]);
    }
    b_.SetInsertPoint(header, header->begin());
    llvm::PHINode* iteration = b_.CreatePHI(b_.getInt32Ty(), 2, "iteration");
    iteration->addIncoming(from, before);
    rewrite(map, header, iteration);
    latch->getTerminator()->eraseFromParent();
    b_.SetInsertPoint(latch);
    llvm::Value* following = b_.CreateNUWAdd(iteration, number(1));
    iteration->addIncoming(following, latch);
    llvm::BranchInst* back = b_.CreateCondBr(b_.CreateICmpEQ(following, to), after, header);
    if (!llvm::isa<llvm::Constant>(to)) {
      unrolling(back, "llvm.loop.unroll.disable");
    } else {
      size_t size = 0;
      for (llvm::BasicBlock* copy : copies) size += copy->size();
      if (size * plan_.iterations <= kMostUnrolled) unrolling(back, "llvm.loop.unroll.full");
      else unrolling(back, "llvm.loop.unroll.count", size <= kMostUnrolled / 8 ? 8 : size <= kMostUnrolled / 4 ? 4 : 2);
    }
    b_.SetInsertPoint(after);
    auto mapped = [&](llvm::Value* value) {
      llvm::Value* copy = map.lookup(value);
      return copy ? copy : value;
    };
    Values out;
    for (llvm::PHINode& phi : plan_.header->phis()) out.push_back(mapped(phi.getIncomingValueForBlock(plan_.latch)));
    for (llvm::Value* result : results_) out.push_back(mapped(result));
    return out;
  }

  // The copied accesses of streams go to this lane's rows.
  void rewrite(llvm::ValueToValueMapTy& map, llvm::BasicBlock* header, llvm::Value* iteration) {
    for (size_t s = 0; s < plan_.streams.size(); ++s) {
      b_.SetInsertPoint(header, header->getFirstInsertionPt());
      llvm::Value* row = word(areas_[s].own, b_.CreateMul(iteration, number(plan_.streams[s].period)));
      for (const Stream::Access& access : plan_.streams[s].accesses) {
        auto* copy = llvm::cast<llvm::Instruction>(map[access.inst]);
        b_.SetInsertPoint(copy);
        llvm::Value* place = word(row, access.place);
        llvm::Type* type = llvm::getLoadStoreType(copy);
        const llvm::Align align(type->isIntegerTy(64) ? 8 : 4);
        if (auto* store = llvm::dyn_cast<llvm::StoreInst>(copy)) {
          b_.CreateAlignedStore(store->getValueOperand(), place, align);
        } else {
          llvm::LoadInst* value = b_.CreateAlignedLoad(type, place, align);
          if (llvm::MDNode* range = copy->getMetadata(llvm::LLVMContext::MD_range)) value->setMetadata(llvm::LLVMContext::MD_range, range);
          copy->replaceAllUsesWith(value);
          map[access.inst] = value;
        }
        copy->eraseFromParent();
      }
    }
  }

  void tile() {
    b_.SetInsertPoint(tile_);
    llvm::SmallVector<llvm::PHINode*, 8> carried;
    auto carry = [&](llvm::Value* first) {
      llvm::PHINode* phi = b_.CreatePHI(first->getType(), 2);
      phi->addIncoming(first, start_);
      carried.push_back(phi);
      return phi;
    };
    llvm::PHINode* at = carry(number(0));
    Values states, loads;
    for (llvm::PHINode& phi : plan_.header->phis()) states.push_back(carry(phi.getIncomingValueForBlock(plain_)));
    for (llvm::PHINode& phi : plan_.exit->phis()) {
      auto* value = llvm::dyn_cast<llvm::Instruction>(phi.getIncomingValueForBlock(plan_.latch));
      if (value && in_loop(value->getParent())) results_.push_back(value);
    }
    const size_t state_count = states.size();
    for (llvm::Value* result : results_) states.push_back(carry(llvm::PoisonValue::get(result->getType())));
    for (llvm::Value* load : first_loads_) loads.push_back(carry(load));

    llvm::Value* from = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, skip_, at);
    llvm::Value* left = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, end_, at);
    llvm::Value* to = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, number(plan_.iterations));
    llvm::Value* following = b_.CreateAdd(at, number(plan_.iterations));
    if (!plan_.prefetch) loads = load_rows(at);
    store_rows(loads);
    wait();
    llvm::Value* more = vote(llvm::Intrinsic::nvvm_vote_any_sync, b_.CreateICmpULT(following, end_));
    // Short blocks are one tile: no loads for a second one.
    Values next_loads;
    if (plan_.prefetch) {
      llvm::BasicBlock *before = b_.GetInsertBlock(), *fetch = block("fetch"), *fetched = block("fetched");
      b_.CreateCondBr(more, fetch, fetched);
      b_.SetInsertPoint(fetch);
      const Values made = load_rows(following);
      b_.CreateBr(fetched);
      b_.SetInsertPoint(fetched);
      for (llvm::Value* load : made) {
        llvm::PHINode* phi = b_.CreatePHI(load->getType(), 2);
        phi->addIncoming(llvm::PoisonValue::get(load->getType()), before);
        phi->addIncoming(load, fetch);
        next_loads.push_back(phi);
      }
    }
    llvm::Value* full = vote(llvm::Intrinsic::nvvm_vote_all_sync, b_.CreateICmpEQ(b_.CreateSub(to, from), number(plan_.iterations)));
    llvm::BasicBlock *whole = block("iterations"), *part = block("part"), *some = block("some"), *over = block("iterated");
    b_.CreateCondBr(full, whole, part);
    b_.SetInsertPoint(part);
    b_.CreateCondBr(b_.CreateICmpEQ(to, number(0)), over, some);
    const Values first(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(state_count));
    b_.SetInsertPoint(whole);
    const Values from_whole = iterate(number(0), number(plan_.iterations), first);
    whole = b_.GetInsertBlock();
    b_.CreateBr(over);
    b_.SetInsertPoint(some);
    const Values from_some = iterate(from, to, first);
    some = b_.GetInsertBlock();
    b_.CreateBr(over);
    b_.SetInsertPoint(over);
    Values after;
    for (size_t i = 0; i < states.size(); ++i) {
      llvm::PHINode* phi = b_.CreatePHI(states[i]->getType(), 3);
      phi->addIncoming(from_whole[i], whole);
      phi->addIncoming(from_some[i], some);
      phi->addIncoming(states[i], part);
      after.push_back(phi);
    }
    wait();
    write_rows(at, full);
    // Reads of the rows, before the next tile's words come.
    if (std::any_of(plan_.streams.begin(), plan_.streams.end(), [](const Stream& stream) { return stream.written; })) wait();
    llvm::BasicBlock* end = b_.GetInsertBlock();
    unrolling(b_.CreateCondBr(more, tile_, done_), "llvm.loop.unroll.disable");
    Values again{following};
    again.insert(again.end(), after.begin(), after.end());
    again.insert(again.end(), next_loads.begin(), next_loads.end());
    for (size_t i = 0; i < carried.size(); ++i) carried[i]->addIncoming(again[i], end);
    b_.SetInsertPoint(done_);
    b_.CreateBr(plan_.exit);
    size_t result = 0;
    for (llvm::PHINode& phi : plan_.exit->phis()) {
      llvm::Value* value = phi.getIncomingValueForBlock(plan_.latch);
      auto* made = llvm::dyn_cast<llvm::Instruction>(value);
      phi.addIncoming(made && in_loop(made->getParent()) ? after[state_count + result++] : value, done_);
    }
  }

  [[nodiscard]] bool in_loop(const llvm::BasicBlock* block) const { return std::find(plan_.blocks.begin(), plan_.blocks.end(), block) != plan_.blocks.end(); }

  LoopPlan& plan_;
  llvm::GlobalVariable* area_;
  const uint32_t area_words_;
  llvm::LLVMContext& context_;
  Builder b_;
  llvm::BasicBlock *plain_ = nullptr, *check_ = nullptr, *start_ = nullptr, *tile_ = nullptr, *done_ = nullptr;
  llvm::Value *lane_ = nullptr, *column_ = nullptr;
  llvm::Value *skip_ = nullptr, *end_ = nullptr;   // this lane's iterations are those from `skip` on before `end`
  const Stream* aligned_ = nullptr;                // the one whose rows begin lines
  std::vector<Area> areas_;
  Values first_loads_;
  Values results_;   // the loop's values that are used after it
};

}  // namespace

llvm::GlobalVariable* find_tiles(llvm::Module& module) { return module.getGlobalVariable(kTilesName, true); }

llvm::GlobalVariable* tiles(llvm::Module& module, uint32_t words, uint32_t warps) {
  if (llvm::GlobalVariable* made = find_tiles(module)) return made;
  llvm::Type* type = llvm::ArrayType::get(llvm::Type::getInt32Ty(module.getContext()), uint64_t{words} * warps);
  auto* area = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type), kTilesName, nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
  area->setAlignment(llvm::Align(16));
  return area;
}

uint32_t tile_words(const llvm::GlobalVariable& tiles, uint32_t warps) {
  return static_cast<uint32_t>(llvm::cast<llvm::ArrayType>(tiles.getValueType())->getNumElements() / warps);
}

unsigned coalesce_loops(llvm::Module& module, unsigned block_threads) {
  std::vector<LoopPlan> plans;
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || function.hasFnAttribute(llvm::Attribute::Cold)) continue;
    std::vector<LoopPlan> found = plan_loops(function);
    plans.insert(plans.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  if (plans.empty()) return 0;
  uint32_t words = 0;
  for (const LoopPlan& plan : plans) words = std::max(words, warp_words(plan));
  llvm::GlobalVariable* area = tiles(module, words, block_threads / kWarp);
  words = tile_words(*area, block_threads / kWarp);
  std::erase_if(plans, [&](const LoopPlan& plan) { return warp_words(plan) > words; });
  for (LoopPlan& plan : plans) Coalescer(plan, area, words).run();
  return static_cast<unsigned>(plans.size());
}

}  // namespace bendc::codegen
