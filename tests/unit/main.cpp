// The entry of unit_tests: doctest's own main, and a limit on the wall time of each test case. Every other file of this folder registers test cases.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace {

/// Seconds a test case may take. The longest takes some 10 s with sanitizers; tests of the scheduler wait for other threads, and one that waits in vain would spin for ever.
constexpr unsigned kTestCaseSeconds = 240;

/// What the handler writes: the running test case's name. A signal handler reaches nothing but objects of static storage.
char overdue_text[512];

void report_overdue(int) {
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, overdue_text, std::strlen(overdue_text));
  _exit(1);
}

/// Arms the alarm at each test case's start, and takes it back at its end.
struct TimeLimit : doctest::IReporter {
  explicit TimeLimit(const doctest::ContextOptions&) { std::signal(SIGALRM, report_overdue); }

  void test_case_start(const doctest::TestCaseData& test) override {
    std::snprintf(overdue_text, sizeof overdue_text, "unit_tests: \"%s\" (%s:%u) has taken %u seconds and is ended\n", test.m_name, test.m_file.c_str(), test.m_line, kTestCaseSeconds);
    alarm(kTestCaseSeconds);
  }
  void test_case_end(const doctest::CurrentTestCaseStats&) override { alarm(0); }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

}  // namespace

REGISTER_LISTENER("time_limit", 1, TimeLimit);
