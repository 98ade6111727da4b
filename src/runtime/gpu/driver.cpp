#include "runtime/gpu/driver.h"

#include <dlfcn.h>

namespace bendc::rt::gpu {

namespace {

void* find_symbol(void* library, const char* symbol) { return dlsym(library, symbol); }

}  // namespace

bool driver_fill(Driver* driver, void* (*find)(void* context, const char* symbol), void* context, Message* why) {
#define BENDC_CUDA(name, symbol, required, parameters)                                    \
  driver->name = reinterpret_cast<int(*) parameters>(find(context, symbol));              \
  if (required && !driver->name) {                                                        \
    why->text("the CUDA driver has no `").text(symbol).text("`; it is older than CUDA 11"); \
    return false;                                                                         \
  }
#include "runtime/gpu/driver.def"
#undef BENDC_CUDA
  return true;
}

bool driver_open(Driver* driver, const char* library, Message* why) {
  *driver = {};
  if (library) {
    driver->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  } else {
    driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver->library) driver->library = dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
  }
  if (!driver->library) {
    const char* reason = dlerror();
    why->text("no CUDA driver: ").text(reason ? reason : "libcuda.so.1 cannot be opened");
    return false;
  }
  if (!driver_fill(driver, find_symbol, driver->library, why)) {
    driver_close(driver);
    return false;
  }
  if (int code = driver->driver_version(&driver->version)) {
    describe(driver, "cuDriverGetVersion", code, why);
    driver_close(driver);
    return false;
  }
  return true;
}

void driver_close(Driver* driver) {
  if (driver->library) dlclose(driver->library);
  *driver = {};
}

void describe(const Driver* driver, const char* call, int code, Message* out) {
  const char* name = nullptr;
  const char* text = nullptr;
  out->text(call).text(": ").number(static_cast<uint64_t>(code < 0 ? 0 : code));
  if (driver->error_name && driver->error_name(code, &name) == kSuccess && name) out->text(" ").text(name);
  if (driver->error_string && driver->error_string(code, &text) == kSuccess && text) out->text(": ").text(text);
}

}  // namespace bendc::rt::gpu
