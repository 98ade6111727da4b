// account COMMAND WORDS..: runs a command and writes its processor time in microseconds and its peak memory in KB as the last line of stderr.
// A process starts with the peak of the one that forked it, so a measuring script cannot ask for a small program's peak itself.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** words) {
  if (count < 2) return 2;
  pid_t child = fork();
  if (child == 0) {
    execv(words[1], words + 1);
    _exit(127);
  }
  int status;
  struct rusage use;
  if (child < 0 || wait4(child, &status, 0, &use) != child) return 126;
  long long micros = (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000LL + use.ru_utime.tv_usec + use.ru_stime.tv_usec;
  fprintf(stderr, "%lld %ld\n", micros, use.ru_maxrss);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
