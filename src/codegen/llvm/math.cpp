// The F32 functions without an instruction, as IR built from support/f32_math.h: an internal function each, made on first use, alike for
// hosts, devices and the emulator.
#include "support/f32_math.h"

#include "codegen/llvm/emitter.h"
#include "support/internal.h"

namespace bendc::codegen {

using flow::Prim;

namespace {

// Values of the text's types, with its operators.
struct IrFloat {
  Builder* b;
  llvm::Value* v;
};
struct IrWord {
  Builder* b;
  llvm::Value* v;
};
struct IrTruth {
  Builder* b;
  llvm::Value* v;
};

IrFloat number(IrFloat like, double x) { return {like.b, llvm::ConstantFP::get(like.b->getDoubleTy(), x)}; }

IrFloat operator+(IrFloat x, IrFloat y) { return {x.b, x.b->CreateFAdd(x.v, y.v)}; }
IrFloat operator-(IrFloat x, IrFloat y) { return {x.b, x.b->CreateFSub(x.v, y.v)}; }
IrFloat operator*(IrFloat x, IrFloat y) { return {x.b, x.b->CreateFMul(x.v, y.v)}; }
IrFloat operator/(IrFloat x, IrFloat y) { return {x.b, x.b->CreateFDiv(x.v, y.v)}; }
IrTruth operator==(IrFloat x, IrFloat y) { return {x.b, x.b->CreateFCmpOEQ(x.v, y.v)}; }
IrTruth operator<(IrFloat x, IrFloat y) { return {x.b, x.b->CreateFCmpOLT(x.v, y.v)}; }
IrTruth operator>(IrFloat x, IrFloat y) { return {x.b, x.b->CreateFCmpOGT(x.v, y.v)}; }
IrTruth operator<=(IrFloat x, IrFloat y) { return {x.b, x.b->CreateFCmpOLE(x.v, y.v)}; }
IrFloat operator+(IrFloat x, double y) { return x + number(x, y); }
IrFloat operator-(IrFloat x, double y) { return x - number(x, y); }
IrFloat operator*(IrFloat x, double y) { return x * number(x, y); }
IrFloat operator*(double x, IrFloat y) { return number(y, x) * y; }
IrTruth operator==(IrFloat x, double y) { return x == number(x, y); }
IrTruth operator<(IrFloat x, double y) { return x < number(x, y); }
IrTruth operator>(IrFloat x, double y) { return x > number(x, y); }

IrWord operator+(IrWord x, IrWord y) { return {x.b, x.b->CreateAdd(x.v, y.v)}; }
IrWord operator-(IrWord x, IrWord y) { return {x.b, x.b->CreateSub(x.v, y.v)}; }
IrWord operator*(IrWord x, IrWord y) { return {x.b, x.b->CreateMul(x.v, y.v)}; }
IrWord operator&(IrWord x, IrWord y) { return {x.b, x.b->CreateAnd(x.v, y.v)}; }
IrWord operator|(IrWord x, IrWord y) { return {x.b, x.b->CreateOr(x.v, y.v)}; }
IrWord operator^(IrWord x, IrWord y) { return {x.b, x.b->CreateXor(x.v, y.v)}; }
IrTruth operator==(IrWord x, IrWord y) { return {x.b, x.b->CreateICmpEQ(x.v, y.v)}; }
IrTruth operator<(IrWord x, IrWord y) { return {x.b, x.b->CreateICmpULT(x.v, y.v)}; }

// Builds the operations of f32_math.h.
struct IrDoubles {
  using F = IrFloat;
  using I = IrWord;
  using B = IrTruth;
  Builder& b;

  F f(double x) { return {&b, llvm::ConstantFP::get(b.getDoubleTy(), x)}; }
  I i(uint64_t x) { return {&b, b.getInt64(x)}; }
  I bits(F x) { return {&b, b.CreateBitCast(x.v, b.getInt64Ty())}; }
  F float_of(I x) { return {&b, b.CreateBitCast(x.v, b.getDoubleTy())}; }
  F to_float(I x) { return {&b, b.CreateSIToFP(x.v, b.getDoubleTy())}; }
  F sqrt(F x) { return {&b, b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x.v)}; }
  F negated(F x) { return {&b, b.CreateFNeg(x.v)}; }
  template <class T> T select(B c, T x, T y) { return {&b, b.CreateSelect(c.v, x.v, y.v)}; }
  B both(B x, B y) { return {&b, b.CreateAnd(x.v, y.v)}; }
  B either(B x, B y) { return {&b, b.CreateOr(x.v, y.v)}; }
  B not_(B x) { return {&b, b.CreateNot(x.v)}; }
  I in_width(I by) { return {&b, b.CreateAnd(by.v, b.getInt64(63))}; }
  I shift_left(I x, I by) { return {&b, b.CreateShl(x.v, in_width(by).v)}; }
  I shift_right(I x, I by) { return {&b, b.CreateLShr(x.v, in_width(by).v)}; }
  I shift_signed(I x, uint64_t by) { return {&b, b.CreateAShr(x.v, by)}; }
  I remainder(I x, I y) { return {&b, b.CreateURem(x.v, y.v)}; }
  B greater_signed(I x, I y) { return {&b, b.CreateICmpSGT(x.v, y.v)}; }
  template <class Yes, class No> auto branch(B c, Yes yes, No no) {
    llvm::Function* function = b.GetInsertBlock()->getParent();
    auto block = [&](const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, function); };
    llvm::BasicBlock *then = block("then"), *otherwise = block("else"), *done = block("done");
    b.CreateCondBr(c.v, then, otherwise);
    b.SetInsertPoint(then);
    auto x = yes();
    llvm::BasicBlock* then_end = b.GetInsertBlock();
    b.CreateBr(done);
    b.SetInsertPoint(otherwise);
    auto y = no();
    llvm::BasicBlock* else_end = b.GetInsertBlock();
    b.CreateBr(done);
    b.SetInsertPoint(done);
    auto join = [&](llvm::Value* left, llvm::Value* right) {
      llvm::PHINode* phi = b.CreatePHI(left->getType(), 2);
      phi->addIncoming(left, then_end);
      phi->addIncoming(right, else_end);
      return phi;
    };
    x.first.v = join(x.first.v, y.first.v);
    x.second.v = join(x.second.v, y.second.v);
    return x;
  }
};

IrFloat compute(f32_math::Functions<IrDoubles>& functions, Prim prim, llvm::ArrayRef<IrFloat> x) {
  switch (prim) {
    case Prim::F32Exp: return functions.exp(x[0]);
    case Prim::F32Log: return functions.log(x[0]);
    case Prim::F32Log2: return functions.log2(x[0]);
    case Prim::F32Log10: return functions.log10(x[0]);
    case Prim::F32Sin: return functions.sin(x[0]);
    case Prim::F32Cos: return functions.cos(x[0]);
    case Prim::F32Tan: return functions.tan(x[0]);
    case Prim::F32Asin: return functions.asin(x[0]);
    case Prim::F32Acos: return functions.acos(x[0]);
    case Prim::F32Atan: return functions.atan(x[0]);
    case Prim::F32Sinh: return functions.sinh(x[0]);
    case Prim::F32Cosh: return functions.cosh(x[0]);
    case Prim::F32Tanh: return functions.tanh(x[0]);
    case Prim::F32Floor: return functions.floor(x[0]);
    case Prim::F32Ceil: return functions.ceil(x[0]);
    case Prim::F32Trunc: return functions.trunc(x[0]);
    case Prim::F32Pow: return functions.pow(x[0], x[1]);
    case Prim::F32Atan2: return functions.atan2(x[0], x[1]);
    case Prim::F32Mod: return functions.mod(x[0], x[1]);
    case Prim::F32Fma: return functions.fma(x[0], x[1], x[2]);
    default: internal_error("code generation", "an operation without a text");   // an open set: the other prims
  }
}

}  // namespace

llvm::Value* ModuleEmitter::f32_function(Builder& b, Prim prim, llvm::ArrayRef<llvm::Value*> args) {
  llvm::FunctionType* type = llvm::FunctionType::get(f32, std::vector<llvm::Type*>(args.size(), f32), false);
  llvm::Function* function = helper("bend." + std::string(flow::prim_text(prim)), type, [&](llvm::Function* fn, Builder& body) {
    fn->setMemoryEffects(llvm::MemoryEffects::none());
    fn->setWillReturn();
    std::vector<IrFloat> wide;
    for (llvm::Argument& arg : fn->args()) wide.push_back({&body, body.CreateFPExt(&arg, body.getDoubleTy())});
    IrDoubles ops{body};
    f32_math::Functions<IrDoubles> functions(ops);
    body.CreateRet(body.CreateFPTrunc(compute(functions, prim, wide).v, f32));
  });
  llvm::CallInst* call = b.CreateCall(function, args);
  call->setCallingConv(function->getCallingConv());
  return call;
}

}  // namespace bendc::codegen
