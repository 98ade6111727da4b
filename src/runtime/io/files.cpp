// Effects on files. Opening, reading and writing run on helper threads; nothing is buffered here, so what a write answers as done has been
// handed to the system.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/io/answers.h"
#include "runtime/io/loop.h"
#include "runtime/runtime.h"

using namespace bendc::rt;

namespace {

constexpr uint64_t kFirstRead = 64u << 10;
constexpr mode_t kNewFileMode = 0644;

struct FileJob : Job {
  BendWord handle;
  int fd;
  int flags;              // of open
  bool at_offset;
  uint64_t offset;
  uint64_t max;
  uint64_t size;          // answer of file_size
  Bytes data;             // path, bytes to write, or bytes read
  int error;
};

FileJob* new_job(BendWorker* worker, void (*run)(Job*), void (*finish)(BendWorker*, Job*, void*), BendWord handle) {
  FileJob* job = static_cast<FileJob*>(system_alloc(worker, sizeof(FileJob)));
  job->run = run;
  job->finish = finish;
  job->handle = handle;
  job->fd = fd_of_handle(handle);
  return job;
}

void end_job(FileJob* job) {
  bytes_free(&job->data);
  free(job);
}

// Open.

bool open_flags(const Bytes& mode, int* flags) {
  if (mode.size != 1) return false;
  switch (mode.data[0]) {
    case 'r': *flags = O_RDONLY; return true;
    case 'w': *flags = O_WRONLY | O_CREAT | O_TRUNC; return true;
    case 'a': *flags = O_WRONLY | O_CREAT | O_APPEND; return true;
  }
  return false;
}

void run_open(Job* raw) {
  FileJob* job = static_cast<FileJob*>(raw);
  do job->fd = open(job->data.data, job->flags | O_CLOEXEC, kNewFileMode);
  while (job->fd < 0 && errno == EINTR);
  job->error = job->fd < 0 ? errno : 0;
}

void finish_open(BendWorker* worker, Job* raw, void* answer) {
  FileJob* job = static_cast<FileJob*>(raw);
  ResultWord* result = static_cast<ResultWord*>(answer);
  if (job->error) answer_fail(worker, result, job->error);
  else answer_done(result, handle_of_fd(job->fd));
  end_job(job);
}

// Read: a regular file until `max` bytes or its end, anything else once.

bool grow(Bytes* bytes, uint64_t capacity) {
  char* data = static_cast<char*>(realloc(bytes->data, capacity));
  if (!data) return false;
  bytes->data = data;
  bytes->capacity = capacity;
  return true;
}

void run_read(Job* raw) {
  FileJob* job = static_cast<FileJob*>(raw);
  struct stat about;
  bool regular = fstat(job->fd, &about) == 0 && S_ISREG(about.st_mode);
  uint64_t capacity = kFirstRead;
  if (regular) {
    off_t position = job->at_offset ? static_cast<off_t>(job->offset) : lseek(job->fd, 0, SEEK_CUR);
    // One more than is left, so that the end shows without another round; files of /proc state no size.
    if (about.st_size > position && position >= 0) capacity = static_cast<uint64_t>(about.st_size - position) + 1;
  }
  while (job->data.size < job->max) {
    if (job->data.size == job->data.capacity) {
      uint64_t wanted = job->data.capacity ? job->data.capacity * 2 : capacity;
      if (!grow(&job->data, wanted < job->max ? wanted : job->max)) {
        job->error = ENOMEM;
        return;
      }
    }
    char* to = job->data.data + job->data.size;
    size_t room = job->data.capacity - job->data.size;
    ssize_t n = job->at_offset ? pread(job->fd, to, room, static_cast<off_t>(job->offset + job->data.size)) : read(job->fd, to, room);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && job->data.size == 0) job->error = errno;   // bytes already read are answered; the next read meets the error again
    if (n <= 0) return;
    job->data.size += static_cast<size_t>(n);
    if (!regular) return;
  }
}

void answer_read(BendWorker* worker, FileJob* job, void* answer, BendWord (*value)(BendWorker*, const char*, size_t)) {
  Beside<ResultWord>* beside = static_cast<Beside<ResultWord>*>(answer);
  beside->handle = job->handle;
  if (job->error) answer_fail(worker, &beside->result, job->error);
  else answer_done(&beside->result, value(worker, job->data.data, job->data.size));
  end_job(job);
}

void finish_read(BendWorker* worker, Job* job, void* answer) { answer_read(worker, static_cast<FileJob*>(job), answer, string_decode); }
void finish_read_bytes(BendWorker* worker, Job* job, void* answer) { answer_read(worker, static_cast<FileJob*>(job), answer, byte_list); }

// Size.

void run_size(Job* raw) {
  FileJob* job = static_cast<FileJob*>(raw);
  struct stat about;
  if (fstat(job->fd, &about) != 0) job->error = errno;
  else if (about.st_size > static_cast<off_t>(UINT32_MAX)) job->error = EOVERFLOW;
  else job->size = static_cast<uint64_t>(about.st_size);
}

void finish_size(BendWorker* worker, Job* raw, void* answer) {
  FileJob* job = static_cast<FileJob*>(raw);
  Beside<ResultU32>* beside = static_cast<Beside<ResultU32>*>(answer);
  beside->handle = job->handle;
  if (job->error) answer_fail(worker, &beside->result, job->error);
  else answer_done(&beside->result, static_cast<uint32_t>(job->size));
  end_job(job);
}

// Write.

void run_write(Job* raw) {
  FileJob* job = static_cast<FileJob*>(raw);
  for (size_t done = 0; done < job->data.size;) {
    ssize_t n = write(job->fd, job->data.data + done, job->data.size - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      job->error = errno;
      return;
    }
  }
}

void finish_write(BendWorker* worker, Job* raw, void* answer) {
  FileJob* job = static_cast<FileJob*>(raw);
  Beside<ResultU32>* beside = static_cast<Beside<ResultU32>*>(answer);
  beside->handle = job->handle;
  if (job->error) answer_fail(worker, &beside->result, job->error);
  else answer_done(&beside->result, 0);
  end_job(job);
}

struct ReadArgs {
  BendWord continuation, file;
  uint32_t max;
};
struct ReadAtArgs {
  BendWord continuation, file;
  uint32_t offset, max;
};
struct WriteArgs {
  BendWord continuation, file, data;
};
struct HandleArgs {
  BendWord continuation, handle;
};

}  // namespace

int bend_eff_file_open(BendWorker* worker, BendTask* task, void* payload, void* answer) {
  struct Args {
    BendWord continuation, path, mode;
  };
  Args* args = static_cast<Args*>(payload);
  Bytes path = string_encode(worker, args->path);
  Bytes mode = string_encode(worker, args->mode);
  int flags = 0;
  int error = !open_flags(mode, &flags) ? EINVAL : has_zero(path) ? EILSEQ : 0;
  bytes_free(&mode);
  if (error) {
    bytes_free(&path);
    answer_fail(worker, static_cast<ResultWord*>(answer), error);
    return BEND_DONE;
  }
  FileJob* job = new_job(worker, run_open, finish_open, 0);
  job->data = path;
  job->flags = flags;
  return loop_submit(worker, task, job);
}

int bend_eff_file_read(BendWorker* worker, BendTask* task, void* payload, void*) {
  ReadArgs* args = static_cast<ReadArgs*>(payload);
  FileJob* job = new_job(worker, run_read, finish_read, args->file);
  job->max = args->max < INT32_MAX ? args->max : INT32_MAX;
  return loop_submit(worker, task, job);
}

int bend_eff_file_read_bytes(BendWorker* worker, BendTask* task, void* payload, void*) {
  ReadArgs* args = static_cast<ReadArgs*>(payload);
  FileJob* job = new_job(worker, run_read, finish_read_bytes, args->file);
  job->max = args->max < INT32_MAX ? args->max : INT32_MAX;
  return loop_submit(worker, task, job);
}

int bend_eff_file_read_at(BendWorker* worker, BendTask* task, void* payload, void*) {
  ReadAtArgs* args = static_cast<ReadAtArgs*>(payload);
  FileJob* job = new_job(worker, run_read, finish_read_bytes, args->file);
  job->at_offset = true;
  job->offset = args->offset;
  job->max = args->max < INT32_MAX ? args->max : INT32_MAX;
  return loop_submit(worker, task, job);
}

int bend_eff_file_size(BendWorker* worker, BendTask* task, void* payload, void*) {
  return loop_submit(worker, task, new_job(worker, run_size, finish_size, static_cast<HandleArgs*>(payload)->handle));
}

int bend_eff_file_write(BendWorker* worker, BendTask* task, void* payload, void*) {
  WriteArgs* args = static_cast<WriteArgs*>(payload);
  FileJob* job = new_job(worker, run_write, finish_write, args->file);
  job->data = string_encode(worker, args->data);
  return loop_submit(worker, task, job);
}

int bend_eff_file_write_bytes(BendWorker* worker, BendTask* task, void* payload, void* answer) {
  WriteArgs* args = static_cast<WriteArgs*>(payload);
  Bytes data;
  if (!byte_list_take(worker, args->data, &data)) {
    Beside<ResultU32>* beside = static_cast<Beside<ResultU32>*>(answer);
    beside->handle = args->file;
    answer_fail(worker, &beside->result, EINVAL);
    return BEND_DONE;
  }
  FileJob* job = new_job(worker, run_write, finish_write, args->file);
  job->data = data;
  return loop_submit(worker, task, job);
}

int bend_eff_file_close(BendWorker*, BendTask*, void* payload, void*) {
  close(fd_of_handle(static_cast<HandleArgs*>(payload)->handle));
  return BEND_DONE;
}
