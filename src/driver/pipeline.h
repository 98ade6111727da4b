// compile: a file -> diagnostics and, as far as asked, an object or a normal form. The only place that knows the order of the phases; it
// times them, and keeps the text that --dump asks for.
#pragma once
#include <string>
#include <vector>

#include "driver/custom_effects.h"
#include "driver/options.h"
#include "support/diagnostic.h"
#include "support/source.h"

namespace bendc {

enum class Goal : uint8_t { Check, Run, Build };

enum class Outcome : uint8_t {
  Refused,       // diagnostics say why
  Checked,       // Goal::Check
  Stopped,       // --stop-after or --dump
  Object,        // `object` holds an ELF object with bend_program
  Normalised,    // `text` is main's value
  Failed,        // `text` is a run-time error of normalisation
};

struct PhaseTime {
  std::string name;
  double seconds = 0;
};

struct Compilation {
  Outcome outcome = Outcome::Refused;
  SourceMap sources;
  Diagnostics diagnostics;
  std::vector<std::string> relies_on_unsafe;   // display names, Goal::Check
  std::string text, dump, object;
  std::vector<EffectFile> effect_files;        // with `object`: C files it needs
  std::vector<PhaseTime> times;
};

// `stack`: bytes of C++ stack of the calling thread.
[[nodiscard]] Compilation compile(const Options& options, Goal goal, size_t stack);

// Names --dump and --stop-after know, for the usage message; empty when the word is one of them.
[[nodiscard]] std::string complain_about_dump(const std::string& word);
[[nodiscard]] std::string complain_about_stop(const std::string& word);

}  // namespace bendc
