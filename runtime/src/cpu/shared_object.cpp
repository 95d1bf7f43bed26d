// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// memfd_create, write, seal, dlopen of /proc/self/fd/<n>. The file stays open
// as long as the handle: the loader compares paths, and a number that was used
// again would give the object that had it before.

#include "gdnrt/shared_object.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

using namespace gdnrt;

static Status osFailure(const char *name, const char *what) {
  std::string reason = std::generic_category().message(errno);
  return failure(StatusCode::ioError, name, ": ", what, ": ", reason);
}

/// The loader trusts what it maps, so refuse early what is plainly not ours.
static bool looksLoadable(const uint8_t *data, size_t size) {
  Elf64_Ehdr header;
  if (size < sizeof(header))
    return false;
  std::memcpy(&header, data, sizeof(header));
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_DYN &&
         header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phoff <= size &&
         header.e_phnum <= (size - header.e_phoff) / sizeof(Elf64_Phdr);
}

static int createMemoryFile() {
  // Kernels before 6.3 do not know MFD_EXEC; later ones may demand it.
  int file =
      ::memfd_create("gdn-code", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  if (file < 0 && errno == EINVAL)
    file = ::memfd_create("gdn-code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  return file;
}

static bool writeAll(int file, const uint8_t *data, size_t size) {
  while (size != 0) {
    ssize_t written = ::write(file, data, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

Result<std::shared_ptr<SharedObject>>
SharedObject::load(const uint8_t *data, size_t size, const char *name) {
  if (!looksLoadable(data, size))
    return failure(StatusCode::corrupt, name,
                   ": the code is not a 64-bit ELF shared object");
  int file = createMemoryFile();
  if (file < 0)
    return osFailure(name, "cannot create a memory file");
  if (!writeAll(file, data, size)) {
    Status status = osFailure(name, "cannot fill a memory file");
    ::close(file);
    return status;
  }
  // Sealing is a courtesy against stray writes; some sandboxes lack it.
  (void)::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  std::string path = "/proc/self/fd/" + std::to_string(file);
  void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = ::dlerror();
    Status status = failure(
        StatusCode::corrupt, name,
        ": cannot load the code: ", reason ? reason : "no reason given");
    ::close(file);
    return status;
  }
  return std::shared_ptr<SharedObject>(new SharedObject(file, handle));
}

SharedObject::~SharedObject() {
  ::dlclose(handle_);
  ::close(file_);
}

void *SharedObject::find(const char *symbol) const {
  return ::dlsym(handle_, symbol);
}
