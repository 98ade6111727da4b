// Flow: the erased, monomorphic, first-order intermediate language between checked Core and LLVM. A-normal form, tree-shaped bodies
// with join points, explicit fork/join, explicit closures, and (after `insert_ownership`) explicit dup and drop.
//
// Example (text form, flow_text.h):
//   fn sum(n: nat, acc: u32) -> u32 {
//     switch n { 0 => { ret acc }
//       else => { let p: nat = nat.pred n; let x: u32 = u32.add acc, 1:u32; tail sum(p, x) } }
//   }
//
// Types
//   u32 f32 nat        scalars (i32, float, i64)
//   enum(k)            k nullary constructors, i32 tag 0..k-1 (Bool = enum(2), False 0; Cmp = enum(3))
//   struct{..}         by value, any number of fields (Unit = struct{}; a pair = struct{A, B}; erased fields are gone)
//   sum{..|..}         by value, two or more variants (each a field list), not recursive: i32 tag + overlaid payload
//   ref D              a boxed datatype (recursive, or wider than kMaxFlatWords); D is a DataId of this module
//   array T            one word: block pointer | log2(slots) << 56
//   fn(A)->B           one word: a closure taking exactly one argument (curried; nullary never exists). Affine: applied at most once
//   any                one word: a value of unknown type in a self-describing box (object)
//   token              memory of a freed node for reuse in place (or null)
//
// Memory of a `ref D`: bits 0..2 of the word are the constructor's index when D has at most 8 constructors ("tagged"), else 0 and the
// tag is a u32 field of the node. A constructor without live fields is the word (index) alone ("nullary"); a constructor whose only
// live field is u32, f32 or an enum is packed: (value << 32) | index ("packed"); all others are nodes of the heap:
// { u32 count; u32 first u32-sized field or padding; remaining fields at their natural alignment }, 8-byte aligned.
// Objects (closures, any-boxes, effect requests): { u32 count; u32 object id; payload struct }. See runtime/abi.h.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "support/source.h"
#include "support/table.h"

namespace bendc::flow {

struct TypeTag;  using TypeId = Id<TypeTag>;
struct DataTag;  using DataId = Id<DataTag>;
struct VarTag;   using VarId = Id<VarTag>;
struct FuncTag;  using FuncId = Id<FuncTag>;
struct NodeTag;  using NodeId = Id<NodeTag>;
struct JoinTag;  using JoinId = Id<JoinTag>;
struct EffectTag; using EffectId = Id<EffectTag>;

inline constexpr uint32_t kMaxFlatWords = 32;   // wider records and sums are boxed: by-value copies would dominate

enum class TypeKind : uint8_t { U32, F32, Nat, Enum, Struct, Sum, Ref, Array, Fn, Any, Token };

struct Type {
  TypeKind kind = TypeKind::U32;
  uint32_t count = 0;                          // Enum: constructors
  DataId data;                                 // Ref
  std::vector<TypeId> parts;                   // Struct: fields; Array: {element}; Fn: {param, result}
  std::vector<std::vector<TypeId>> variants;   // Sum: fields of each
  friend bool operator==(const Type&, const Type&) = default;
};

enum class CtorRepr : uint8_t { Nullary, Packed, Node };

struct CtorLayout {
  std::string name;
  std::vector<TypeId> fields;                  // live fields only
  CtorRepr repr = CtorRepr::Node;
};

struct Data {                                  // a boxed datatype instance, e.g. List<u32>
  std::string name;
  std::vector<CtorLayout> ctors;
  bool shareable = true;                       // kind Data, or dup'ed by @unsafe code; false: always one owner, its count is never read
};

enum class Prim : uint8_t {
#define BENDC_PRIM(id, text, base) id,
#include "codegen/prims.def"
#undef BENDC_PRIM
};

// Right-hand sides. Operand vars are in `args` (Slice into Module::var_lists). The result type is the bound var's type.
enum class ExprKind : uint8_t {
  Const,        // imm: bits of a u32/f32/nat/enum constant
  Str,          // imm: index into Module::strings; a String value (ref)
  Prim,         // prim(args)
  Struct,       // struct{args}
  Get,          // args[0].imm  (struct field; borrows the struct: fields are copied, see ownership.h)
  Variant,      // sum or enum constructor imm with args
  VariantGet,   // args[0] known to be variant imm; field imm2
  Con,          // ref constructor imm with args; with `reuse` valid: in the memory of that token
  ConGet,       // field imm2 of args[0], known to be constructor imm (borrows)
  Call,         // func(args); flag bang when written f!(..)
  Apply,        // closure args[0] applied to args[1]
  Closure,      // func with captured args: the func's leading params are the captures, exactly one param is left
  Request,      // IO request of effect imm: args are the effect's live arguments and, last, the continuation closure; result ref IO.OP
  Box,          // args[0] -> any
  Unbox,        // any -> result type (the box is consumed)
};

struct Expr {
  ExprKind kind = ExprKind::Const;
  Prim prim{};
  bool bang = false;
  bool in_range = false;                       // Array get/set/swap: index proved below the size (no mask)
  bool in_place = false;                       // an array primitive that gives its handle back: only reads it, and the result is the rest (set: struct{})
  FuncId func;
  VarId reuse;                                 // Con: token var or none
  uint64_t imm = 0, imm2 = 0;
  Slice args;
};

enum class NodeKind : uint8_t {
  Let,        // var = expr; next
  Open,       // (after ownership) take apart `subject` = constructor imm (ref) owned: vars := its fields, owned; `var` (if valid) := token; next
  Dup,        // one more reference to `subject`; next
  Drop,       // one less; next
  Join,       // join point `join` with params `vars` and body `body` (may jump to itself when it is a loop), in scope in `next` and `body`
  Fork,       // vars[i] := calls[i], independent of each other; all joined before next
  Case,       // on subject: enum, sum or ref; arms by constructor index; `other` for the rest or none when exhaustive
  Switch,     // on subject: u32 or nat literal; arms by value; `other` always present
  Ret,        // subject
  Tail,       // tail call func(args)
  Jump,       // to join with args
  Abort,      // run-time error imm (base.md 5.2 numbers); never returns
};

struct Arm {
  uint64_t value = 0;                          // constructor index or literal
  NodeId body;
};

struct CallSite {
  FuncId func;
  Slice args;
  bool bang = false;
};

struct Node {
  NodeKind kind = NodeKind::Ret;
  bool loop = false;                           // Join: its body jumps to itself
  VarId var, subject;
  Expr expr;
  Slice vars;                                  // Open, Join params, Fork results (VarIds in var_lists)
  Slice args;                                  // Tail, Jump
  FuncId func;
  JoinId join;
  uint64_t imm = 0;
  NodeId body, next, other;
  std::vector<Arm> arms;
  std::vector<CallSite> calls;                 // Fork
  Span span;                                   // for run-time errors and explain
};

struct Var {
  TypeId type;
  std::string name;                            // for text form; unique names are made by the printer
  bool borrowed = false;                       // counts nothing: a parameter of a loop or join point, or a constructor, made of what a borrowed parameter lends
};

struct Func {
  std::string name;                            // display name of the def plus an instance suffix: "List.map~3"
  std::vector<VarId> params;
  std::vector<bool> borrowed;                  // per param, after borrow inference; empty = all owned
  TypeId result;
  NodeId body;
  Span span;
  uint32_t param_count() const { return static_cast<uint32_t>(params.size()); }
};
// What instances, copies and segments are called means nothing to the user.
inline std::string_view user_name(const Func& func) { return std::string_view(func.name).substr(0, func.name.find_first_of("~@$")); }

struct Effect {                                // a runtime-provided or foreign effect
  std::string name;                            // "print"
  std::vector<TypeId> args;                    // live arguments, without the continuation
  TypeId answer;                               // type the continuation takes
  std::string c_path;                          // custom effects: the .c file; empty for runtime-provided ones
};

enum class MainKind : uint8_t { None, Io, Value };

struct Module {
  Table<TypeId, Type> types;
  Table<DataId, Data> datas;
  Table<VarId, Var> vars;
  Table<NodeId, Node> nodes;
  Table<FuncId, Func> funcs;
  Table<EffectId, Effect> effects;
  ListPool<VarId> var_lists;
  std::vector<std::u32string> strings;
  uint32_t join_count = 0;
  bool owned = false;                          // ownership is explicit (after insert_ownership)
  TypeId shared_closure;                       // of owned modules: a function type that is dup'ed somewhere (only @unsafe code does), else invalid
  MainKind main_kind = MainKind::None;
  FuncId entry;                                // Io: () -> ref IO.OP (main applied to the final continuation); Value: () -> struct{} (evaluates and shows)
  DataId string_data, io_op_data;              // of String and IO.OP, when used

  [[nodiscard]] TypeId intern(Type type);      // structural hash-consing
  [[nodiscard]] std::span<const VarId> list(Slice s) const { return var_lists[s]; }
  JoinId new_join() { return JoinId(join_count++); }
  std::unordered_multimap<size_t, TypeId> type_index;
};

[[nodiscard]] std::string_view prim_text(Prim prim);
[[nodiscard]] std::string_view prim_base(Prim prim);
// Words (8 bytes) a value takes by value; used for the kMaxFlatWords rule.
[[nodiscard]] uint32_t flat_words(const Module& module, TypeId type);
// Adds `end` and, before it, the nodes of `chain` in order, each followed by the next; gives the first. Leaves the chain empty.
[[nodiscard]] NodeId seal_chain(Module& module, std::vector<Node>& chain, Node end);

}  // namespace bendc::flow
