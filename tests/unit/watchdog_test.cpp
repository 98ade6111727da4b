// The watchdog: what counts as standing still, and that it ends a process whose workers do, with a report.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "runtime/cpu/clock.h"
#include "runtime/cpu/scheduler.h"
#include "runtime_fixture.h"

using namespace bendc;
using bendc::test::RuntimeFixture;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

struct TwoWorkers {
  RuntimeFixture fixture;
  BendWorker workers[2] = {};
  BendForkTask task = {};
  rt::Scheduler* scheduler = nullptr;

  TwoWorkers() {
    fixture.runtime->config.threads = 2;
    fixture.runtime->workers = workers;
    workers[0].runtime = workers[1].runtime = fixture.runtime;
    REQUIRE(rt::scheduler_open(fixture.runtime));
    scheduler = fixture.runtime->scheduler;
    scheduler->started.store(2);
  }
  ~TwoWorkers() { rt::scheduler_free(fixture.runtime); }
};

}  // namespace

TEST_CASE("watchdog: only a wait without anybody at work is a standstill") {
  TwoWorkers two;
  rt::Scheduler* s = two.scheduler;
  s->tasks[0].awaited.store(&two.task);
  s->tasks[0].idle_since.store(kSecond);
  s->tasks[1].idle_since.store(2 * kSecond);
  CHECK(rt::stands_still(s, 12 * kSecond, 10 * kSecond));
  CHECK(!rt::stands_still(s, 11 * kSecond, 10 * kSecond));
  s->tasks[1].idle_since.store(0);   // at work, for however long
  CHECK(!rt::stands_still(s, 1000 * kSecond, 10 * kSecond));
  s->tasks[1].idle_since.store(kSecond);
  s->tasks[0].awaited.store(nullptr);   // the program waits for its input, not for a task
  CHECK(!rt::stands_still(s, 1000 * kSecond, 10 * kSecond));
  s->stopping_since.store(kSecond);
  s->stopping.store(1);
  CHECK(!rt::stands_still(s, 10 * kSecond, 10 * kSecond));
  CHECK(rt::stands_still(s, 11 * kSecond, 10 * kSecond));
}

TEST_CASE("watchdog: a standstill ends the process with a report") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], 2);
    TwoWorkers two;
    two.scheduler->tasks[0].awaited.store(&two.task);
    for (int i = 0; i < 2; ++i) two.scheduler->tasks[i].idle_since.store(rt::now() - 5 * kSecond);
    two.fixture.runtime->config.watchdog_seconds = 1;
    rt::watchdog_start(two.scheduler, 1);
    sleep(20);
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char part[1024];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) said.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 70);
  CHECK(said.find("stood still for 1 seconds") != std::string::npos);
  CHECK(said.find("worker 0 is idle for") != std::string::npos);
  CHECK(said.find("waits for the task") != std::string::npos);
}

TEST_CASE("watchdog: stops when it is told to") {
  TwoWorkers two;
  two.fixture.runtime->config.watchdog_seconds = 3600;
  rt::watchdog_start(two.scheduler, 3600);
  CHECK(two.scheduler->watchdog.running);
  rt::watchdog_stop(two.scheduler);
  CHECK(!two.scheduler->watchdog.running);
}
