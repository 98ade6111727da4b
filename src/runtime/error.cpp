#include "runtime/error.h"

#include <setjmp.h>
#include <unistd.h>

#include "runtime/cpu/scheduler.h"
#include "runtime/runtime.h"

namespace bendc::rt {

namespace {

const char* standing_text(uint32_t number) {
  switch (number) {
    case kErrorTasks: return "too many tasks wait at once";
    case kErrorMatch: return "a match has no case for its value, or an array has no such half";
    case kErrorMemory: return "out of memory";
    case kErrorDeviceCode: return "the device reached a function that it does not hold";
    case kErrorNat: return "a Nat past 2^48-1 (281474976710655)";
    case kErrorShare: return "a value that has one owner was shared";
    case kErrorStack: return "stack overflow";
    case kErrorArray: return "an array past the largest block of 2^31 cells";
    case kErrorCopies: return "a value has more live copies than its count holds (2147483647)";
  }
  return "unknown error";
}

}  // namespace

void fail_plain(BendWorker* worker, const Message& text) {
  fail_task(worker, text.data(), text.size());
  // Only one worker ends the program; it takes the others with it. One that returns waits for the others' tasks: who cannot end its task ends the process.
  while (__atomic_exchange_n(&worker->runtime->failing, 1u, __ATOMIC_ACQ_REL) != 0) {
    if (worker->runtime->config.returns_errors) _exit(1);
    pause();
  }
  output_flush(&worker->runtime->out);
  Message line;
  line.text("bend: ").bytes(text.data(), text.size()).text("\n");
  write_stderr(line.data(), line.size());
  if (worker->index == 0 && worker->runtime->error_exit) {
    leave_forks(worker);
    _longjmp(*static_cast<jmp_buf*>(worker->runtime->error_exit), 1);
  }
  _exit(1);
}

void fail(BendWorker* worker, uint32_t number, const char* site, const Message& detail) {
  Message m;
  m.text("error ").number(number).text(": ").text(standing_text(number));
  if (detail.size() > 0) m.text(": ").bytes(detail.data(), detail.size());
  if (site) m.text(" (at ").text(site).text(")");
  fail_plain(worker, m);
}

}  // namespace bendc::rt

void bend_fail(BendWorker* worker, uint32_t number, const char* site) { bendc::rt::fail(worker, number, site, bendc::rt::Message()); }
