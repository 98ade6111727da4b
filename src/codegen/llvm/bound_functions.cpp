#include "codegen/llvm/bound_functions.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SCCIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "codegen/llvm/unroll_recursion.h"

namespace bendc::codegen {

namespace {

// Instructions, each as often as the struct that it makes has members, since LLVM takes those apart one by one, or four times as a branch has targets.
using Weight = uint64_t;

constexpr Weight kGrown = 40'000;       // of a function with all that is inlined into it; the suite's largest is 32,500 by this measure
constexpr Weight kOptimised = 50'000;   // 2 s at level 1
constexpr Weight kSelected = 100'000;   // 1.5 s without optimisation, 0.4 s with the fast register allocator
constexpr Weight kInlining = 4'000'000;   // of one function, the suite's largest is 2,750,000: each call inlined looks at the function as grown so far, and copies the callee
constexpr Weight kCandidate = 300;      // LLVM does not inline what is larger, unless this is its only call
constexpr Weight kStraight = 500;       // instructions of a block: instruction selection and the combiner of machine instructions look along it for each
constexpr size_t kCycle = 64;           // functions that call each other: each inlined call looks at all of them again

Weight members(const llvm::Type* type) {
  const auto* record = llvm::dyn_cast<llvm::StructType>(type);
  return record ? record->getNumElements() : 1;
}

Weight weight_of(const llvm::Function& function) {
  Weight sum = 0;
  for (const llvm::Instruction& instruction : llvm::instructions(function))
    sum += std::max<Weight>({1, members(instruction.getType()), instruction.isTerminator() ? Weight{4} * instruction.getNumSuccessors() : 0});
  return sum;
}

Weight weight_of_blocks(const llvm::Function& function) {
  Weight sum = 0;
  for (const llvm::BasicBlock& block : function)
    if (block.size() > kStraight) sum += block.size() * block.size() / kStraight;
  return sum;
}

struct Size {
  Weight grown = 0;       // with what is inlined into it
  Weight inlining = 0;    // what that costs
};

class Bounds {
 public:
  explicit Bounds(llvm::Module& module) : graph_(module) {}

  void run() {
    for (auto cycle = llvm::scc_begin(&graph_); !cycle.isAtEnd(); ++cycle) {
      members_.clear();
      for (const llvm::CallGraphNode* node : *cycle) members_.insert(node->getFunction());
      for (const llvm::CallGraphNode* node : *cycle)
        if (llvm::Function* function = node->getFunction(); function && !function->isDeclaration()) bound(*function);
    }
  }

 private:
  void bound(llvm::Function& function) {
    const Weight own = weight_of(function);
    Size now{own, 0};
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      llvm::Function* callee = call ? call->getCalledFunction() : nullptr;
      if (!callee || callee->isDeclaration() || call->isNoInline()) continue;
      if (callee->hasFnAttribute(llvm::Attribute::AlwaysInline)) {
        now.grown += sizes_.lookup(callee).grown;
        continue;
      }
      const bool inside = members_.contains(callee);
      if (inside && members_.size() <= kCycle) continue;
      const Size added = inside ? Size{} : inlined(*callee);
      const Size next{now.grown + added.grown, now.inlining + added.inlining + (added.grown == 0 ? 0 : now.grown + added.grown)};
      if (inside || next.grown > kGrown || next.inlining > kInlining) call->setIsNoInline();
      else now = next;
    }
    sizes_[&function] = now;
    if (own + weight_of_blocks(function) > kOptimised && !function.hasFnAttribute(llvm::Attribute::AlwaysInline)) {
      function.addFnAttr(llvm::Attribute::NoInline);
      function.addFnAttr(llvm::Attribute::OptimizeNone);
    }
  }

  // What LLVM's inliner adds for a call, as far as it can be told.
  [[nodiscard]] Size inlined(const llvm::Function& callee) const {
    if (callee.hasFnAttribute(llvm::Attribute::NoInline)) return {};
    const Size size = sizes_.lookup(&callee);
    return size.grown <= kCandidate || (callee.hasLocalLinkage() && callee.hasOneUse()) ? size : Size{};
  }

  llvm::CallGraph graph_;
  llvm::SmallPtrSet<const llvm::Function*, 8> members_;          // of the cycle being looked at
  llvm::DenseMap<const llvm::Function*, Size> sizes_;
};

}  // namespace

std::vector<flow::FuncId> bound_functions(llvm::Module& module) {
  Bounds(module).run();
  std::vector<flow::FuncId> out;
  for (const llvm::Function& function : module) {
    uint32_t index = 0;
    if (!function.hasFnAttribute(llvm::Attribute::OptimizeNone) || function.getFnAttribute(kOfProgram).getValueAsString().getAsInteger(10, index)) continue;
    // Beside a function stands its clone without forks.
    if (std::find(out.begin(), out.end(), flow::FuncId(index)) == out.end()) out.emplace_back(index);
  }
  return out;
}

bool has_huge_function(const llvm::Module& module) {
  return std::any_of(module.begin(), module.end(), [](const llvm::Function& function) {
    return function.hasFnAttribute(llvm::Attribute::OptimizeNone) && weight_of(function) + weight_of_blocks(function) > kSelected;
  });
}

}  // namespace bendc::codegen
