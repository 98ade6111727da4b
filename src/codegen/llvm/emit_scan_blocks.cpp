// Blocks of an array that a warp-task of a scan keeps in shared memory while it runs its leaves (codegen/gpu/scan_trees.h, ScanTree::kept). The 32 blocks are
// neighbours, so they are one stretch of the array. The warp loads it once, 16 bytes a lane at a time, with all loads under way before the first is waited
// for; the leaves of both trees read and write there; the warp then stores all of it, the slots too that no leaf wrote, since nobody else looks at them.
// What the two leaves' loops would otherwise load tile by tile, each on its own (coalesce_loops), is one wait, and memory is read once.
//
// A function has a version of its own whose array accesses go there. It takes a handle with the array's own size and, for its address, the
// place where slot 0 would lie: slot i of the block's slots first, first + 1, .. is found as before, from the array's index. That the block is large enough for
// nobody to look at its count shows in the handle, as ever.
//
// In shared memory a lane's block is a row of an odd number of units of 16 bytes: eight lanes' units lie in different banks, so accesses of four words at once, which
// unrolled loops have (optimize.cpp), are as fast as any; single words of 32 lanes meet in fours.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/emit_grid.h"
#include "codegen/llvm/tiles.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::FuncId;

namespace {
constexpr uint32_t kLeastLog2 = 2, kMostLog2 = 6;   // 4 slots are a unit; 64 are 34 KiB a block of threads, and 16 loads into 64 registers
constexpr uint32_t kUnitLog2 = 2, kUnitWords = 1u << kUnitLog2;
constexpr uint32_t kAddressBits = std::bit_width(BEND_ARRAY_ADDRESS);
constexpr uint64_t kUnit = 16;
constexpr unsigned kShared = 3, kGlobal = 1;
constexpr uint32_t kWarpWords = BEND_LANES * ((1u << kMostLog2) + kUnitWords);
}  // namespace

llvm::Function* ModuleEmitter::kept_function(FuncId id) {
  const auto [it, fresh] = kept_.try_emplace(id.index, nullptr);
  if (!fresh) return it->second;
  llvm::Function* function = it->second = declare_function(id, ".kept");
  FuncEmitter(*this, id, function).run();
  return function;
}

llvm::Function* ModuleEmitter::kept_leaf(FuncId id) {
  keeping_ = true;
  llvm::Function* function = kept_function(id);
  keeping_ = false;
  return function;
}

// The handle by which a leaf finds slot `first` of the array of `handle` at `block`.
llvm::Value* ModuleEmitter::kept_handle(Builder& b, llvm::Value* handle, llvm::Value* block, llvm::Value* first) {
  llvm::Value* zero = b.CreateSub(b.CreatePtrToInt(block, i64), b.CreateShl(b.CreateZExt(first, i64), 2));
  return b.CreateOr(b.CreateAnd(handle, ~BEND_ARRAY_ADDRESS), b.CreateAnd(zero, BEND_ARRAY_ADDRESS));
}

llvm::Value* ModuleEmitter::kept_slot(Builder& b, llvm::Value* handle, llvm::Value* index) {
  llvm::Value* zero = b.CreateAnd(b.CreateAShr(b.CreateShl(handle, 64 - kAddressBits), 64 - kAddressBits), ~(kUnit - 1));
  llvm::Type* type = options.target == TargetKind::Device ? llvm::PointerType::get(context, kShared) : ptr;
  return b.CreateGEP(i32, b.CreateIntToPtr(zero, type), {b.CreateZExt(index, i64)});
}

// What all warp-tasks share; `number` is left to each. No `fit`: blocks are never kept.
GridEmitter::Kept GridEmitter::plan_kept(Builder& b, const ScanTree& scan, const Leaves& params, llvm::Value* bits) {
  Kept kept{};
  // Staged nodes have the kernel's shared memory for themselves.
  if (scan.kept == ScanTree::kTable || m_.options.gpu->plan->stage_bytes > 0) return kept;
  kept.handle = params[scan.kept];
  llvm::Value* log2 = scan.log2_word == ScanTree::kTable ? b.getInt64(scan.log2) : params[scan.log2_word];
  kept.fit = b.CreateICmpULE(b.CreateSub(log2, b.getInt64(kLeastLog2)), b.getInt64(kMostLog2 - kLeastLog2));
  kept.fit = b.CreateAnd(kept.fit, b.CreateICmpEQ(bits, b.getInt32(BEND_LANE_BITS)));
  kept.fit = b.CreateAnd(kept.fit, b.CreateICmpEQ(b.CreateAnd(kept.handle, kUnit - 1), b.getInt64(0)));
  kept.log2 = b.CreateTrunc(log2, m_.i32);
  if (gpu()) {
    llvm::Value* warp = b.CreateLShr(b.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}), BEND_LANE_BITS);
    kept.area = b.CreateInBoundsGEP(m_.i32, tiles(m_.ir, kWarpWords, BEND_BLOCK_THREADS / BEND_LANES), {b.CreateMul(warp, b.getInt32(kWarpWords))});
  } else {
    llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
    llvm::AllocaInst* area = Builder(&entry, entry.begin()).CreateAlloca(llvm::ArrayType::get(m_.i32, kWarpWords));
    area->setAlignment(llvm::Align(kUnit));
    kept.area = area;
  }
  return kept;
}

// visit(builder, log2 of the slots) for each size that is kept, in a block of its own.
void GridEmitter::each_size(Builder& b, const Kept& kept, const std::function<void(Builder&, uint32_t)>& visit) {
  llvm::BasicBlock *none = m_.block(b, "no_size"), *after = m_.block(b, "after_size");
  llvm::SwitchInst* sizes = b.CreateSwitch(kept.log2, none, kMostLog2 - kLeastLog2 + 1);
  for (uint32_t log2 = kLeastLog2; log2 <= kMostLog2; ++log2) {
    llvm::BasicBlock* arm = m_.block(b, "size");
    sizes->addCase(b.getInt32(log2), arm);
    b.SetInsertPoint(arm);
    visit(b, log2);
    b.CreateBr(after);
  }
  b.SetInsertPoint(none);
  b.CreateUnreachable();
  b.SetInsertPoint(after);
}

// The handle by which a lane's leaf finds its block.
llvm::Value* GridEmitter::kept_handle(Builder& b, const Kept& kept, llvm::Value* lane, uint32_t log2) {
  llvm::Value* row = b.CreateInBoundsGEP(m_.i32, kept.area, {b.CreateMul(lane, b.getInt32((1u << log2) + kUnitWords))});
  return m_.kept_handle(b, kept.handle, row, b.CreateShl(b.CreateAdd(kept.number, lane), log2));
}

namespace {

// Words 4 * (lane + 32 k) and the three behind it, for k below 2^(log2 - 2): in memory and in the rows.
struct Units {
  llvm::Value *memory, *rows;
  uint32_t log2;
  [[nodiscard]] uint32_t count() const { return 1u << (log2 - kLeastLog2); }
  [[nodiscard]] llvm::Value* unit(Builder& b, uint32_t k) const { return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), memory, uint64_t{k} * BEND_LANES * kUnit); }
  [[nodiscard]] llvm::Value* in_row(Builder& b, uint32_t k) const {
    const uint32_t words = k * BEND_LANES * kUnitWords;
    return b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), rows, words + (words >> log2 << kUnitLog2));
  }
};

Units units_of(Builder& b, llvm::Value* handle, llvm::Value* first, llvm::Value* area, llvm::Value* lane, uint32_t log2, bool device) {
  // The index is the array's, as ever: what lies beyond its size begins again.
  llvm::Value* mask = b.CreateNot(b.CreateShl(b.getInt32(~0u), b.CreateTrunc(b.CreateLShr(handle, BEND_ARRAY_SHIFT), b.getInt32Ty())));
  llvm::Value* word = b.CreateShl(lane, 2);
  llvm::Value* slot = b.CreateZExt(b.CreateAdd(b.CreateAnd(first, mask), word), b.getInt64Ty());
  llvm::Value* address = b.CreateAdd(b.CreateAnd(handle, BEND_ARRAY_ADDRESS), b.CreateAdd(b.CreateShl(slot, 2), b.getInt64(BEND_ARRAY_HEADER)));
  llvm::Value* memory = b.CreateIntToPtr(address, llvm::PointerType::get(b.getContext(), device ? kGlobal : 0));
  return {memory, b.CreateInBoundsGEP(b.getInt32Ty(), area, {b.CreateAdd(word, b.CreateShl(b.CreateLShr(word, log2), kUnitLog2))}), log2};
}

// A unit of memory that is used once: the cache is to give up its line first (`.cs`), which LLVM has no way to say. Off the device, as any other. With loads and
// stores so, a scan of 2^26 words takes 205 us in place of 218, of 2^24 64 in place of 71; with one of them so, at most 4 % less.
llvm::Value* load_streamed(Builder& b, llvm::Value* unit, bool device) {
  llvm::Type *word = b.getInt32Ty(), *type = llvm::FixedVectorType::get(word, kUnitWords);
  if (!device) return b.CreateAlignedLoad(type, unit, llvm::Align(kUnit));
  llvm::StructType* words = llvm::StructType::get(b.getContext(), {word, word, word, word});
  llvm::FunctionType* form = llvm::FunctionType::get(words, {b.getInt64Ty()}, false);
  llvm::Value* loaded = b.CreateCall(llvm::InlineAsm::get(form, "ld.global.cs.v4.u32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l,~{memory}", true), {b.CreatePtrToInt(unit, b.getInt64Ty())});
  llvm::Value* out = llvm::PoisonValue::get(type);
  for (unsigned i = 0; i < kUnitWords; ++i) out = b.CreateInsertElement(out, b.CreateExtractValue(loaded, i), uint64_t{i});
  return out;
}

void store_streamed(Builder& b, llvm::Value* value, llvm::Value* unit, bool device) {
  if (!device) {
    b.CreateAlignedStore(value, unit, llvm::Align(kUnit));
    return;
  }
  llvm::Type *word = b.getInt32Ty(), *address = b.getInt64Ty();
  llvm::FunctionType* form = llvm::FunctionType::get(b.getVoidTy(), {address, word, word, word, word}, false);
  llvm::SmallVector<llvm::Value*, 5> operands{b.CreatePtrToInt(unit, address)};
  for (unsigned i = 0; i < kUnitWords; ++i) operands.push_back(b.CreateExtractElement(value, uint64_t{i}));
  b.CreateCall(llvm::InlineAsm::get(form, "st.global.cs.v4.u32 [$0], {$1, $2, $3, $4};", "l,r,r,r,r,~{memory}", true), operands);
}

}  // namespace

void GridEmitter::fetch(Builder& b, const Kept& kept, uint32_t log2) {
  each_lane(b, nullptr, [&](Builder& inner, llvm::Value* lane) {
    const Units units = units_of(inner, kept.handle, inner.CreateShl(kept.number, log2), kept.area, lane, log2, gpu());
    Leaves loads;
    for (uint32_t k = 0; k < units.count(); ++k) loads.push_back(load_streamed(inner, units.unit(inner, k), gpu()));
    for (uint32_t k = 0; k < units.count(); ++k) inner.CreateAlignedStore(loads[k], units.in_row(inner, k), llvm::Align(kUnit));
  });
}

void GridEmitter::put_back(Builder& b, const Kept& kept, uint32_t log2) {
  llvm::Type* type = llvm::FixedVectorType::get(m_.i32, kUnitWords);
  each_lane(b, nullptr, [&](Builder& inner, llvm::Value* lane) {
    const Units units = units_of(inner, kept.handle, inner.CreateShl(kept.number, log2), kept.area, lane, log2, gpu());
    for (uint32_t k = 0; k < units.count(); ++k) store_streamed(inner, inner.CreateAlignedLoad(type, units.in_row(inner, k), llvm::Align(kUnit)), units.unit(inner, k), gpu());
  });
}

}  // namespace bendc::codegen
