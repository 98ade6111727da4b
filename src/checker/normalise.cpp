// Strong normalisation through the machine's quoting.
#include "checker/normalise.h"

#include "checker/machine.h"

namespace bendc {

NormaliseResult normalise(core::Book& book, const Interner& names, core::DefId main, const NormaliseOptions& options) {
  NormaliseResult result;
  if (!main.valid() || !book.defs[main].body.valid()) {
    result.status = NormaliseStatus::NoBody;
    return result;
  }
  Machine machine(book, names, {.floats = true, .all_unfold = true, .fuel = options.fuel, .memory = options.memory, .stack = options.stack});
  const Value* value = machine.eval(book.defs[main].body, machine.empty());
  const core::TermId term = machine.quote(book, value, 0, true, 0, Name{});
  switch (machine.halt()) {
    case Halt::None: result.text = core::print_term(book, names, term); break;
    case Halt::NatOverflow: result.status = NormaliseStatus::NatOverflow; break;
    case Halt::Fuel: result.status = NormaliseStatus::OutOfFuel; break;
    case Halt::Memory: result.status = NormaliseStatus::OutOfMemory; break;
    case Halt::Stack: result.status = NormaliseStatus::OutOfStack; break;
  }
  return result;
}

}  // namespace bendc
