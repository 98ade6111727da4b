// Array operations. A handle is the block's address with log2(slots) in the top byte: the index mask comes from the handle in registers,
// so a get or set is one load or store. set, get, size and the atomics give back the same SSA value they were given.
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

using flow::Prim;
using flow::TypeId;
using flow::VarId;

llvm::Value* FuncEmitter::block_address(llvm::Value* handle) { return b_.CreateIntToPtr(b_.CreateAnd(handle, BEND_ARRAY_ADDRESS), m_.ptr); }

llvm::Value* FuncEmitter::index_mask(llvm::Value* handle) {
  llvm::Value* log2 = b_.CreateTrunc(b_.CreateLShr(handle, BEND_ARRAY_SHIFT), m_.i32);
  return b_.CreateNot(b_.CreateShl(b_.getInt32(~0u), log2));
}

llvm::Value* FuncEmitter::slot_address(llvm::Value* handle, llvm::Value* index, TypeId element, bool in_range) {
  if (m_.keeping_) return m_.kept_slot(b_, handle, index);
  if (!in_range) index = b_.CreateAnd(index, index_mask(handle));
  llvm::Value* slots = b_.CreateConstInBoundsGEP1_64(m_.i8, block_address(handle), BEND_ARRAY_HEADER);
  llvm::Type* slot = llvm::ArrayType::get(m_.i8, m_.layouts.of(element).size);
  return b_.CreateInBoundsGEP(slot, slots, {b_.CreateZExt(index, m_.i64)});
}

namespace {

// The words that 16 bytes of slots of one value consist of; null for slots of other sizes than 4, 8 and 16 bytes, or with gaps.
llvm::Value* slots_in_16_bytes(ModuleEmitter& m, Builder& b, TypeId element, LeafSpan value) {
  const flow::TypeLayout& layout = m.layouts.of(element);
  if (layout.size != 4 && layout.size != 8 && layout.size != 16) return nullptr;
  llvm::Value* words[4] = {};
  for (size_t i = 0; i < layout.leaves.size(); ++i) {
    const uint32_t at = layout.leaves[i].offset / 4;
    llvm::Value* leaf = value[i];
    if (layout.leaves[i].kind == flow::LeafKind::I64) {
      words[at] = b.CreateTrunc(leaf, m.i32);
      words[at + 1] = b.CreateTrunc(b.CreateLShr(leaf, 32), m.i32);
    } else {
      words[at] = leaf->getType()->isFloatTy() ? b.CreateBitCast(leaf, m.i32) : leaf;
    }
  }
  llvm::Value* out = llvm::PoisonValue::get(llvm::FixedVectorType::get(m.i32, 4));
  for (uint32_t i = 0; i < 4; ++i) {
    llvm::Value* word = words[i % (layout.size / 4)];
    if (!word || word->getType() != m.i32) return nullptr;
    out = b.CreateInsertElement(out, word, i);
  }
  return out;
}

}  // namespace

// Every slot := value. The value's references were one; the slots hold as many as there are slots.
void FuncEmitter::fill(llvm::Value* handle, TypeId element, LeafSpan value) {
  const flow::TypeLayout& layout = m_.layouts.of(element);
  llvm::Value* count = b_.CreateShl(b_.getInt64(1), b_.CreateLShr(handle, BEND_ARRAY_SHIFT));
  m_.retain(b_, worker_, element, value, b_.CreateTrunc(b_.CreateSub(count, b_.getInt64(1)), m_.i32));
  if (layout.leaves.empty()) return;
  llvm::Value* slots = b_.CreateConstInBoundsGEP1_64(m_.i8, block_address(handle), BEND_ARRAY_HEADER);
  // left, from `count` down to 1: visit(count - left). A number of iterations that LLVM sees, so that it unrolls.
  auto loop = [&](llvm::Value* times, llvm::BasicBlock* done, const auto& visit) {
    llvm::BasicBlock *entry = b_.GetInsertBlock(), *body = m_.block(b_, "fill");
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
    llvm::PHINode *index = b_.CreatePHI(m_.i64, 2), *left = b_.CreatePHI(m_.i64, 2);
    index->addIncoming(b_.getInt64(0), entry);
    left->addIncoming(times, entry);
    visit(index);
    llvm::Value* rest = b_.CreateSub(left, b_.getInt64(1));
    index->addIncoming(b_.CreateNUWAdd(index, b_.getInt64(1)), body);
    left->addIncoming(rest, body);
    b_.CreateCondBr(b_.CreateICmpEQ(rest, b_.getInt64(0)), done, body);
  };
  llvm::BasicBlock* done = m_.block(b_, "filled");
  if (m_.on_device()) m_.device_skip_zeros(b_, worker_, handle, element, value, done);
  // One thread of a device fills a block, by accesses of 16 bytes: a slot each would make 65536 slots take a millisecond. Small blocks have no such alignment.
  if (llvm::Value* words = m_.on_device() ? slots_in_16_bytes(m_, b_, element, value) : nullptr) {
    llvm::BasicBlock *wide = m_.block(b_, "wide"), *narrow = m_.block(b_, "narrow");
    llvm::Value* aligned = b_.CreateICmpEQ(b_.CreateAnd(b_.CreatePtrToInt(slots, m_.i64), 15), b_.getInt64(0));
    const uint64_t in_16 = 16 / layout.size;
    b_.CreateCondBr(b_.CreateAnd(aligned, b_.CreateICmpUGE(count, b_.getInt64(in_16))), wide, narrow);
    b_.SetInsertPoint(wide);
    loop(b_.CreateUDiv(count, b_.getInt64(in_16)), done, [&](llvm::Value* index) {
      b_.CreateAlignedStore(words, b_.CreateInBoundsGEP(words->getType(), slots, {index}), llvm::Align(16));
    });
    b_.SetInsertPoint(narrow);
  }
  loop(count, done, [&](llvm::Value* index) {
    m_.store_value(b_, element, value, b_.CreateInBoundsGEP(llvm::ArrayType::get(m_.i8, layout.size), slots, {index}), 0, true);
  });
  b_.SetInsertPoint(done);
}

Leaves FuncEmitter::array_prim(const flow::Node& node) {
  const std::span<const VarId> args = m_.flow.list(node.expr.args);
  auto handle = [&] { return scalar(args[0]); };
  const TypeId array = type(args[0]);
  auto element = [&] { return m_.flow.types[array].parts[0]; };
  auto where = [&]() -> llvm::Value* { return m_.text(site()); };
  auto slot = [&] { return slot_address(handle(), scalar(args[1]), element(), node.expr.in_range); };
  // The handle comes back first, unless the operation is in place.
  const bool in_place = node.expr.in_place;
  auto with_handle = [&](const Leaves& rest) {
    Leaves out;
    if (!in_place) out.push_back(handle());
    out.append(rest.begin(), rest.end());
    return out;
  };
  switch (node.expr.prim) {
    case Prim::ArrayNew: {
      const TypeId content = type(args[1]);
      llvm::Value* made = m_.on_device() ? m_.device_array_alloc(b_, worker_, scalar(args[0]), content, site())
                                         : m_.call_runtime(b_, Rt::bend_array_alloc, {worker_, scalar(args[0]), m_.layout_info(content), where()});
      // Says again what the word's top bits are: with a constant size the indices' masks become constants too.
      if (!m_.on_device()) made = b_.CreateOr(b_.CreateAnd(made, BEND_ARRAY_ADDRESS), b_.CreateShl(scalar(args[0]), BEND_ARRAY_SHIFT));
      fill(made, content, value(args[1]));
      return {made};
    }
    case Prim::ArrayLeaf: {
      const TypeId content = type(args[0]);
      llvm::Value* made = m_.on_device() ? m_.device_array_alloc(b_, worker_, b_.getInt64(0), content, site())
                                         : m_.call_runtime(b_, Rt::bend_array_alloc, {worker_, b_.getInt64(0), m_.layout_info(content), where()});
      m_.store_value(b_, content, value(args[0]), block_address(made), BEND_ARRAY_HEADER, true);
      return {made};
    }
    case Prim::ArrayGet: {
      Leaves found = m_.load_value(b_, element(), slot(), 0, true);
      m_.retain(b_, worker_, element(), found, nullptr);
      return with_handle(found);
    }
    case Prim::ArraySet: {
      llvm::Value* address = slot();
      if (m_.flow.owned && m_.layouts.of(element()).counted) {
        // The new element is in place before the old one is dropped.
        const Leaves old = m_.load_value(b_, element(), address, 0, true);
        m_.store_value(b_, element(), value(args[2]), address, 0, true);
        m_.release(b_, worker_, element(), old);
      } else {
        m_.store_value(b_, element(), value(args[2]), address, 0, true);
      }
      return with_handle({});
    }
    case Prim::ArraySwap: {
      llvm::Value* address = slot();
      const Leaves old = m_.load_value(b_, element(), address, 0, true);
      m_.store_value(b_, element(), value(args[2]), address, 0, true);
      return with_handle(old);
    }
    case Prim::ArraySize:
      return with_handle({b_.CreateShl(b_.getInt32(1), b_.CreateTrunc(b_.CreateLShr(handle(), BEND_ARRAY_SHIFT), m_.i32))});
    case Prim::ArrayClone:
      if (m_.on_device()) return with_handle({m_.device_array_clone(b_, worker_, handle(), element())});
      return with_handle({m_.call_runtime(b_, Rt::bend_array_clone, {worker_, handle(), m_.layout_info(element())})});
    case Prim::ArrayFork:
      m_.retain(b_, worker_, array, {handle()}, nullptr);
      return {handle(), handle()};
    case Prim::ArrayJoin:
      m_.release(b_, worker_, array, {scalar(args[1])});
      return {handle()};
    case Prim::ArrayNode:
      if (m_.on_device()) return {m_.device_array_node(b_, worker_, handle(), scalar(args[1]), element(), site())};
      return {m_.call_runtime(b_, Rt::bend_array_node, {worker_, handle(), scalar(args[1]), m_.layout_info(element()), where()})};
    case Prim::ArrayIsLeaf:
      return {boolean(b_.CreateICmpEQ(b_.CreateLShr(handle(), BEND_ARRAY_SHIFT), b_.getInt64(0)))};
    case Prim::ArrayMask:
      if (m_.keeping_) return {b_.getInt32(~0u)};   // slots are found without a mask
      return {index_mask(handle())};
    case Prim::ArrayTake: {
      Leaves found = m_.load_value(b_, element(), block_address(handle()), BEND_ARRAY_HEADER, true);
      if (m_.on_device()) m_.device_array_consumed(b_, worker_, handle(), element());
      else if (m_.flow.owned) m_.call_runtime(b_, Rt::bend_array_release, {worker_, handle(), m_.layout_info(element())});
      return found;
    }
    case Prim::ArraySplit: {
      if (m_.on_device()) return m_.device_array_split(b_, worker_, handle(), element(), site());
      llvm::Value* halves = frame(16);
      m_.call_runtime(b_, Rt::bend_array_split, {worker_, handle(), m_.layout_info(element()), halves, where()});
      return {m_.load(b_, m_.i64, halves, 0, ModuleEmitter::Region::Frame), m_.load(b_, m_.i64, halves, 8, ModuleEmitter::Region::Frame)};
    }
    default:
      return {};
  }
}

// Relaxed; the old value comes back, beside the handle unless the operation is in place. While no other worker runs, nobody can look between a load and a store, which take a
// fraction of the time of a locked operation.
Leaves FuncEmitter::atomic_prim(const flow::Node& node) {
  const std::span<const VarId> args = m_.flow.list(node.expr.args);
  llvm::Value* handle = scalar(args[0]);
  llvm::Value* address = slot_address(handle, scalar(args[1]), m_.flow.types[type(args[0])].parts[0], node.expr.in_range);
  constexpr auto kRelaxed = llvm::AtomicOrdering::Monotonic;
  auto with_handle = [&](llvm::Value* old) { return node.expr.in_place ? Leaves{old} : Leaves{handle, old}; };
  auto update = [&](llvm::AtomicRMWInst::BinOp op) {
    llvm::Value* operand = scalar(args[2]);
    if (m_.on_device()) return with_handle(b_.CreateAtomicRMW(op, address, operand, llvm::Align(4), kRelaxed));
    llvm::Value *locked = nullptr, *plain = nullptr;
    llvm::BasicBlock *locked_at = nullptr, *plain_at = nullptr;
    m_.by_workers(
        b_, worker_, true,
        [&] {
          locked = b_.CreateAtomicRMW(op, address, operand, llvm::Align(4), kRelaxed);
          locked_at = b_.GetInsertBlock();
        },
        [&] {
          plain = b_.CreateAlignedLoad(operand->getType(), address, llvm::Align(4));
          b_.CreateAlignedStore(llvm::buildAtomicRMWValue(op, b_, plain, operand), address, llvm::Align(4));
          plain_at = b_.GetInsertBlock();
        });
    llvm::PHINode* old = b_.CreatePHI(operand->getType(), 2);
    old->addIncoming(locked, locked_at);
    old->addIncoming(plain, plain_at);
    return with_handle(old);
  };
  switch (node.expr.prim) {
    case Prim::AtomicAdd: return update(llvm::AtomicRMWInst::Add);
    case Prim::AtomicMin: return update(llvm::AtomicRMWInst::UMin);
    case Prim::AtomicMax: return update(llvm::AtomicRMWInst::UMax);
    case Prim::AtomicAnd: return update(llvm::AtomicRMWInst::And);
    case Prim::AtomicOr: return update(llvm::AtomicRMWInst::Or);
    case Prim::AtomicXor: return update(llvm::AtomicRMWInst::Xor);
    case Prim::AtomicExch: return update(llvm::AtomicRMWInst::Xchg);
    case Prim::AtomicFadd:
      if (m_.on_device()) return with_handle(m_.device_add_f32(b_, address, scalar(args[2])));
      return update(llvm::AtomicRMWInst::FAdd);
    case Prim::AtomicCas: {
      llvm::Value* pair = b_.CreateAtomicCmpXchg(address, scalar(args[2]), scalar(args[3]), llvm::Align(4), kRelaxed, kRelaxed);
      return with_handle(b_.CreateExtractValue(pair, 0));
    }
    default: return {};
  }
}

}  // namespace bendc::codegen
