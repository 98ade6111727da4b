// String constants: nodes that are never counted nor freed. A few characters are constant nodes. From kMostConstant characters on, where a constant
// of LLVM, a relocation and 16 bytes of the object for each took 7 microseconds and 1.8 KB a character, the program holds the characters, in the
// narrowest unit that fits all, and room for the nodes, which the entry fills before anything runs.
#include <algorithm>

#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

namespace {
constexpr size_t kMostConstant = 256;
constexpr uint32_t kNodeBytes = 16;   // SNil is word 0, SCon a node { count, char, tail } with tag 1 in its word

template <class Unit> llvm::Constant* units(llvm::LLVMContext& context, const std::vector<std::u32string>& strings, size_t total) {
  std::vector<Unit> all;
  all.reserve(total);
  for (const std::u32string& chars : strings)
    for (const char32_t c : chars) all.push_back(static_cast<Unit>(c));
  return llvm::ConstantDataArray::get(context, all);
}
}  // namespace

llvm::Constant* ModuleEmitter::string_word(uint32_t index) {
  if (!string_room_ && string_starts_.empty()) place_strings();
  if (flow.strings[index].empty()) return llvm::ConstantInt::get(i64, 0);
  llvm::Constant*& entry = strings_[index];
  if (!entry) entry = string_room_ ? node_word(string_room_, string_starts_[index]) : constant_string(flow.strings[index]);
  return entry;
}

// The word of a node of the array that a global is.
llvm::Constant* ModuleEmitter::node_word(llvm::GlobalVariable* nodes, uint64_t index) {
  return llvm::ConstantExpr::getPtrToInt(llvm::ConstantExpr::getInBoundsGetElementPtr(i8, nodes, llvm::ConstantInt::get(i64, index * kNodeBytes + 1)), i64);
}

void ModuleEmitter::place_strings() {
  uint64_t total = 0;
  for (const std::u32string& chars : flow.strings) {
    string_starts_.push_back(total);
    total += chars.size();
  }
  if (total <= kMostConstant || flow.main_kind == flow::MainKind::None) return;
  llvm::ArrayType* type = llvm::ArrayType::get(llvm::StructType::get(context, {i32, i32, i64}), total);
  string_room_ = new llvm::GlobalVariable(ir, type, false, llvm::GlobalValue::InternalLinkage, llvm::ConstantAggregateZero::get(type), "bend.strings");
  string_room_->setAlignment(llvm::Align(kNodeBytes));
}

llvm::Constant* ModuleEmitter::constant_string(const std::u32string& chars) {
  llvm::StructType* node = llvm::StructType::get(context, {i32, i32, i64});
  llvm::ArrayType* type = llvm::ArrayType::get(node, chars.size());
  auto* variable = new llvm::GlobalVariable(ir, type, true, llvm::GlobalValue::InternalLinkage, nullptr, "bend.string");
  variable->setAlignment(llvm::Align(kNodeBytes));
  std::vector<llvm::Constant*> nodes;
  nodes.reserve(chars.size());
  for (size_t i = 0; i < chars.size(); ++i) {
    llvm::Constant* tail = i + 1 < chars.size() ? node_word(variable, i + 1) : llvm::ConstantInt::get(i64, 0);
    nodes.push_back(llvm::ConstantStruct::get(node, {number(BEND_IMMORTAL), number(chars[i]), tail}));
  }
  variable->setInitializer(llvm::ConstantArray::get(type, nodes));
  return node_word(variable, 0);
}

void ModuleEmitter::fill_strings(Builder& b, llvm::Value* worker) {
  if (!string_room_) return;
  const uint64_t total = llvm::cast<llvm::ArrayType>(string_room_->getValueType())->getNumElements();
  char32_t largest = 0;
  std::vector<uint64_t> ends;
  for (size_t i = 0; i < flow.strings.size(); ++i) {
    for (const char32_t c : flow.strings[i]) largest = std::max(largest, c);
    ends.push_back(string_starts_[i] + flow.strings[i].size());
  }
  const uint32_t width = largest <= 0xFF ? 1 : largest <= 0xFFFF ? 2 : 4;
  llvm::Constant* codes = width == 1   ? units<uint8_t>(context, flow.strings, total)
                          : width == 2 ? units<uint16_t>(context, flow.strings, total)
                                       : units<uint32_t>(context, flow.strings, total);
  call_runtime(b, Rt::bend_fill_strings, {worker, string_room_, global(codes, "bend.codes"), number(width), global(llvm::ConstantDataArray::get(context, ends), "bend.ends"),
                                          llvm::ConstantInt::get(i64, ends.size())});
}

}  // namespace bendc::codegen
