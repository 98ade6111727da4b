// Reports: the diagnostics of elaboration, kept apart by the phase they belong to, since a program with parse-time errors shows only
// those, and one with case-tree errors no check errors (language.md section 10). While `quiet` is set, F and C codes are dropped:
// code that no path reaches is still read, but not judged.
#pragma once
#include <string>
#include <utility>

#include "support/diagnostic.h"

namespace bendc::elab {

struct Reports {
  Diagnostics parse;     // P, and limits
  Diagnostics flatten;   // F
  Diagnostics check;     // C
  Diagnostics warnings;  // W
  std::string def;       // the declaration being elaborated, as its file writes it
  bool quiet = false;
  bool broken = false;   // an error was reported since the flag was last cleared

  Diagnostic& add(Code code, Span span, std::string message) {
    char phase = code_text(code)[0];
    bool dropped = quiet && (phase == 'F' || phase == 'C');
    Diagnostics& bag = phase == 'F' ? flatten : phase == 'C' ? check : phase == 'W' ? warnings : parse;
    if (phase != 'W' && !dropped) broken = true;
    Diagnostic& d = (dropped ? scratch_ = Diagnostics(), scratch_ : bag).add(code, span, std::move(message));
    d.def = def;
    return d;
  }

 private:
  Diagnostics scratch_;
};

}  // namespace bendc::elab
