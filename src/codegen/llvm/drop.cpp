// Drops specialised by type: what happens when the last reference to a node goes. The runtime's walk (runtime/memory/drop.cpp) reads layouts; here the
// layout is code, for datatypes that hold themselves directly or not at all. All others stay with the runtime.
//
// The walk takes no stack. A field of the datatype itself is followed with reversed pointers: while such a child dies, the field it hung in holds the
// parent, and the parent's count, no longer needed, says which field that is. The last such field is followed after the node has been freed, so a list
// is a loop. Fields of other types are released by their own functions: what those types hold cannot lead back here, so calls nest no deeper than types do.
#include <cstddef>

#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

using flow::CtorRepr;
using flow::DataId;
using flow::TypeId;
using flow::TypeKind;

namespace {
constexpr size_t kMostFields = 24;   // fields of its own type in all constructors of a datatype; more would be much code for little
}

// Can dropping a value of this type, by generated code, come upon one of that datatype? Closures and values of unknown type are dropped by the runtime,
// which never calls generated code.
bool ModuleEmitter::reaches(TypeId from, DataId target) {
  std::vector<TypeId> work{from};
  std::vector<bool> seen(flow.datas.size(), false);
  while (!work.empty()) {
    const flow::Type& type = flow.types[work.back()];
    work.pop_back();
    work.insert(work.end(), type.kind == TypeKind::Fn ? type.parts.end() : type.parts.begin(), type.parts.end());
    for (const auto& variant : type.variants) work.insert(work.end(), variant.begin(), variant.end());
    if (type.kind != TypeKind::Ref) continue;
    if (type.data == target) return true;
    if (seen[type.data.index]) continue;
    seen[type.data.index] = true;
    for (const flow::CtorLayout& ctor : flow.datas[type.data].ctors) work.insert(work.end(), ctor.fields.begin(), ctor.fields.end());
  }
  return false;
}

bool ModuleEmitter::drops_directly(DataId data) {
  auto known = direct_drops_.find(data.index);
  if (known != direct_drops_.end()) return known->second;
  bool direct = true;
  size_t own = 0;
  for (const flow::CtorLayout& ctor : flow.datas[data].ctors) {
    if (ctor.repr != CtorRepr::Node) continue;
    for (TypeId field : ctor.fields) {
      if (!layouts.of(field).counted) continue;
      const flow::Type& type = flow.types[field];
      if (type.kind == TypeKind::Ref && type.data == data) ++own;
      else direct &= !reaches(field, data);
    }
  }
  return direct_drops_[data.index] = direct && own <= kMostFields;
}

void ModuleEmitter::drop_last(Builder& b, llvm::Value* worker, TypeId id, llvm::Value* word) {
  const DataId data = flow.types[id].data;
  if (!drops_directly(data)) {
    call_runtime(b, Rt::bend_drop_fields, {worker, word, data_info(data), ref_ctor(b, word, data)});
    return;
  }
  llvm::Function* function = drop_helper(id);
  b.CreateCall(function, {worker, word})->setCallingConv(function->getCallingConv());
}

// One reference less: to `last` when it was the last one, else to `done`.
void ModuleEmitter::count_down(Builder& b, llvm::Value* worker, llvm::Value* node, bool crosses, llvm::BasicBlock* last, llvm::BasicBlock* done) {
  llvm::BasicBlock *shared = block(b, "shared"), *counted = block(b, "counted");
  b.CreateCondBr(is_unique(b, node, crosses), last, shared);
  b.SetInsertPoint(shared);
  llvm::Value* count = load(b, i32, node, 0, Region::Node);
  if (crosses) llvm::cast<llvm::LoadInst>(count)->setAtomic(llvm::AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateICmpSGE(count, number(0)), counted, done);
  b.SetInsertPoint(counted);
  auto locked = [&] {
    // Another thread may have given up its reference since the test above: then this one is the last after all.
    llvm::Value* before = b.CreateAtomicRMW(llvm::AtomicRMWInst::Sub, node, number(1), llvm::Align(4), llvm::AtomicOrdering::AcquireRelease);
    llvm::BasicBlock* fewer = block(b, "fewer");
    b.CreateCondBr(b.CreateICmpEQ(before, number(1)), last, fewer, unlikely_);
    b.SetInsertPoint(fewer);
  };
  by_workers(b, worker, crosses, locked, [&] { store(b, b.CreateSub(count, number(1)), node, 0, Region::Node); });
  b.CreateBr(done);
}

llvm::Function* ModuleEmitter::drop_helper(TypeId id) {
  const DataId data = flow.types[id].data;
  return helper("bend.drop.D" + std::to_string(data.index), llvm::FunctionType::get(void_type, {ptr, i64}, false), [&](llvm::Function* fn, Builder& b) {
    struct Step {                      // one field of the datatype itself
      uint32_t ctor, field;
      llvm::BasicBlock* block;
      llvm::PHINode *cell, *parent;
      bool last;
    };
    llvm::Value* worker = fn->getArg(0);
    const std::vector<flow::CtorLayout>& ctors = flow.datas[data].ctors;
    llvm::Constant* none = llvm::ConstantInt::get(i64, 0);
    auto is_own = [&](TypeId field) { return flow.types[field].kind == TypeKind::Ref && flow.types[field].data == data; };
    auto slot = [&](Builder& at, llvm::Value* cell, const Step& step) {
      return at.CreateConstInBoundsGEP1_64(i8, ref_address(at, cell, data, step.ctor), layouts.node(data, step.ctor).offsets[step.field]);
    };

    llvm::BasicBlock *entry = b.GetInsertBlock(), *enter = block(b, "enter"), *up = block(b, "up"), *finished = block(b, "finished"), *resume = block(b, "resume");
    b.CreateBr(enter);
    Builder phis(enter);
    llvm::PHINode *cell = phis.CreatePHI(i64, 4), *parent = phis.CreatePHI(i64, 4);
    cell->addIncoming(fn->getArg(1), entry);
    parent->addIncoming(none, entry);
    phis.SetInsertPoint(up);
    llvm::PHINode* above = phis.CreatePHI(i64, 4);

    std::vector<Step> steps;
    for (uint32_t c = 0; c < ctors.size(); ++c) {
      if (ctors[c].repr != CtorRepr::Node) continue;
      for (uint32_t f = 0; f < ctors[c].fields.size(); ++f) {
        if (!is_own(ctors[c].fields[f])) continue;
        if (!steps.empty() && steps.back().ctor == c) steps.back().last = false;
        Step step{c, f, block(b, "step"), nullptr, nullptr, true};
        phis.SetInsertPoint(step.block);
        step.cell = phis.CreatePHI(i64, 3);
        step.parent = phis.CreatePHI(i64, 3);
        steps.push_back(step);
      }
    }

    // A node whose last reference has gone: what is not of its own type is released at once.
    b.SetInsertPoint(enter);
    llvm::Value* index = ref_ctor(b, cell, data);
    llvm::BasicBlock* absent = block(b, "absent");
    llvm::SwitchInst* kinds = b.CreateSwitch(index, absent);
    b.SetInsertPoint(absent);
    b.CreateUnreachable();
    for (uint32_t c = 0; c < ctors.size(); ++c) {
      if (ctors[c].repr != CtorRepr::Node) continue;
      llvm::BasicBlock* arm = block(b, "node");
      kinds->addCase(llvm::cast<llvm::ConstantInt>(number(c)), arm);
      b.SetInsertPoint(arm);
      const Step* first = nullptr;
      for (uint32_t f = 0; f < ctors[c].fields.size(); ++f)
        if (const TypeId field = ctors[c].fields[f]; !is_own(field) && layouts.of(field).counted) release(b, worker, field, ref_field(b, cell, data, c, f));
      for (const Step& step : steps)
        if (step.ctor == c && !first) first = &step;
      if (first) {
        first->cell->addIncoming(cell, b.GetInsertBlock());
        first->parent->addIncoming(parent, b.GetInsertBlock());
        b.CreateBr(first->block);
      } else {
        free(b, worker, ref_address(b, cell, data, c), layouts.node(data, c).bytes);
        above->addIncoming(parent, b.GetInsertBlock());
        b.CreateBr(up);
      }
    }

    std::vector<const Step*> resumed;
    for (size_t s = 0; s < steps.size(); ++s) {
      const Step& step = steps[s];
      b.SetInsertPoint(step.block);
      llvm::Value* child = load(b, i64, slot(b, step.cell, step), 0, Region::Node);
      if (step.last) free(b, worker, ref_address(b, step.cell, data, step.ctor), layouts.node(data, step.ctor).bytes);
      llvm::BasicBlock *node = block(b, "child"), *dies = block(b, "dies"), *next = block(b, "next");
      if (llvm::Value* is_node = ref_is_node(b, child, data)) b.CreateCondBr(is_node, node, next);
      else b.CreateBr(node);
      b.SetInsertPoint(node);
      count_down(b, worker, ref_address(b, child, data), crosses(data), dies, next);

      b.SetInsertPoint(dies);
      if (!step.last) {
        store(b, step.parent, slot(b, step.cell, step), 0, Region::Node);
        store(b, number(resumed.size()), ref_address(b, step.cell, data, step.ctor), 0, Region::Node);
        resumed.push_back(&step);
      }
      cell->addIncoming(child, b.GetInsertBlock());
      parent->addIncoming(step.last ? step.parent : step.cell, b.GetInsertBlock());
      b.CreateBr(enter);

      b.SetInsertPoint(next);
      if (step.last) {
        above->addIncoming(step.parent, b.GetInsertBlock());
        b.CreateBr(up);
      } else {
        steps[s + 1].cell->addIncoming(step.cell, b.GetInsertBlock());
        steps[s + 1].parent->addIncoming(step.parent, b.GetInsertBlock());
        b.CreateBr(steps[s + 1].block);
      }
    }

    // Back to the parent: the field walked last holds its own parent.
    b.SetInsertPoint(up);
    if (resumed.empty()) {
      b.CreateBr(finished);
    } else {
      b.CreateCondBr(b.CreateICmpEQ(above, none), finished, resume);
      b.SetInsertPoint(resume);
      llvm::Value* at = resumed.size() == 1 ? number(0) : load(b, i32, ref_address(b, above, data), 0, Region::Node, resumed.size());
      llvm::BasicBlock* nowhere = block(b, "nowhere");
      llvm::SwitchInst* fields = b.CreateSwitch(at, nowhere);
      b.SetInsertPoint(nowhere);
      b.CreateUnreachable();
      for (size_t r = 0; r < resumed.size(); ++r) {
        llvm::BasicBlock* back = block(b, "back");
        fields->addCase(llvm::cast<llvm::ConstantInt>(number(r)), back);
        b.SetInsertPoint(back);
        const Step& next = *(resumed[r] + 1);   // steps of a constructor lie one after the other
        next.parent->addIncoming(load(b, i64, slot(b, above, *resumed[r]), 0, Region::Node), back);
        next.cell->addIncoming(above, back);
        b.CreateBr(next.block);
      }
    }
    if (resumed.empty()) resume->eraseFromParent();
    b.SetInsertPoint(finished);
    b.CreateRetVoid();
  });
}

// An array whose elements are counted: the block's last reference releases them one by one, each by its type's function.
void ModuleEmitter::release_array(Builder& b, llvm::Value* worker, TypeId array, llvm::Value* word) {
  const TypeId element = flow.types[array].parts[0];
  if (!layouts.of(element).counted) {
    call_runtime(b, Rt::bend_drop_array, {worker, word, layout_info(element)});
    return;
  }
  const std::string name = "bend.release.T" + std::to_string(array.index);
  llvm::Function* function = helper(name, llvm::FunctionType::get(void_type, {ptr, i64}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value *self = fn->getArg(0), *handle = fn->getArg(1);
    llvm::Value* address = body.CreateIntToPtr(body.CreateAnd(handle, BEND_ARRAY_ADDRESS), ptr);
    llvm::BasicBlock *there = block(body, "there"), *last = block(body, "last"), *shared = block(body, "shared"), *loop = block(body, "element"),
                     *empty = block(body, "empty"), *done = block(body, "done");
    body.CreateCondBr(body.CreateIsNotNull(address), there, done);
    body.SetInsertPoint(there);
    llvm::Value* count = load(body, i32, address, 0, Region::ArrayHeader);
    if (crosses(array)) llvm::cast<llvm::LoadInst>(count)->setAtomic(llvm::AtomicOrdering::Acquire);
    body.CreateCondBr(body.CreateICmpEQ(count, number(1)), last, shared);
    body.SetInsertPoint(shared);
    call_runtime(body, Rt::bend_drop_array, {self, handle, layout_info(element)});
    body.CreateBr(done);

    body.SetInsertPoint(last);
    llvm::Value* slots = body.CreateShl(llvm::ConstantInt::get(i64, 1), body.CreateLShr(handle, BEND_ARRAY_SHIFT));
    llvm::Value* base = body.CreateConstInBoundsGEP1_64(i8, address, BEND_ARRAY_HEADER);
    body.CreateBr(loop);
    body.SetInsertPoint(loop);
    llvm::PHINode* index = body.CreatePHI(i64, 2);
    index->addIncoming(llvm::ConstantInt::get(i64, 0), last);
    llvm::Value* place = body.CreateInBoundsGEP(llvm::ArrayType::get(i8, layouts.of(element).size), base, {index});
    release(body, self, element, load_value(body, element, place, 0, true));
    llvm::Value* next = body.CreateNUWAdd(index, llvm::ConstantInt::get(i64, 1));
    index->addIncoming(next, body.GetInsertBlock());
    body.CreateCondBr(body.CreateICmpULT(next, slots), loop, empty);
    body.SetInsertPoint(empty);
    call_runtime(body, Rt::bend_array_release, {self, handle, layout_info(element)});
    body.CreateBr(done);
    body.SetInsertPoint(done);
    body.CreateRetVoid();
  });
  b.CreateCall(function, {worker, word})->setCallingConv(function->getCallingConv());
}

}  // namespace bendc::codegen
