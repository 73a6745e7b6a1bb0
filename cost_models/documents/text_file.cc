// Files of text, read with a limit and written whole or not at all.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/text_parts.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Closes what it holds.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  bool open() const { return number_ >= 0; }
  /// False where the last of what was written is lost.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

// Of a file that is neither regular nor a folder.
const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return S_ISSOCK(mode) ? "a socket" : "no regular file";
}

[[noreturn]] void fail(const fs::path& file, const char* what, int reason) {
  throw Error(ExitCode::io, Problems{{.file = file.string(),
                                      .found = std::string(what) + ": " + std::strerror(reason)}});
}

/// 0, or errno of the write that failed.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// To a device or a pipe, which no file may replace.
void write_through(const fs::path& file, const TextParts& parts) {
  // O_NONBLOCK: a pipe that nobody reads is told at once instead of waited for.
  Descriptor out(::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!out.open()) fail(file, "cannot open", errno);
  const int flags = ::fcntl(out.get(), F_GETFL);
  if (flags >= 0) ::fcntl(out.get(), F_SETFL, flags & ~O_NONBLOCK);
  parts([&](std::string_view text) {
    if (const int reason = write_all(out.get(), text)) fail(file, "cannot write", reason);
  });
  if (!out.close()) fail(file, "cannot write", errno);
}

/// Through a temporary file beside `file`, which stays as it was where anything fails.
void write_beside(const fs::path& file, const TextParts& parts) {
  const fs::path temporary = file.string() + ".tmp" + std::to_string(::getpid());
  Descriptor out(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!out.open()) fail(file, "cannot create", errno);
  try {
    parts([&](std::string_view text) {
      if (const int reason = write_all(out.get(), text)) fail(file, "cannot write", reason);
    });
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  int reason = ::fsync(out.get()) != 0 ? errno : 0;
  if (!out.close() && reason == 0) reason = errno;
  if (reason == 0 && ::rename(temporary.c_str(), file.c_str()) != 0) reason = errno;
  if (reason == 0) return;
  ::unlink(temporary.c_str());
  fail(file, "cannot write", reason);
}

}  // namespace

std::optional<std::string> read_text_file(const fs::path& file, std::size_t limit,
                                          Problems& problems) {
  const auto refuse = [&](std::string found, std::string expected, std::string hint = {}) {
    problems.push_back({.file = file.string(),
                        .found = std::move(found),
                        .expected = std::move(expected),
                        .hint = std::move(hint)});
    return std::nullopt;
  };
  // O_NONBLOCK: a pipe is refused without waiting for its writer, and no special file holds us.
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!in.open()) {
    return refuse(errno == ENOENT ? "no such file" : std::strerror(errno), "a readable file");
  }
  struct stat status {};
  if (::fstat(in.get(), &status) != 0) return refuse(std::strerror(errno), "a readable file");
  if (S_ISDIR(status.st_mode)) return refuse("a folder", "a file");
  if (!S_ISREG(status.st_mode)) {
    return refuse(kind_of(status.st_mode), "a regular file", "save its text in a file first");
  }
  const std::string most = std::to_string(limit) + " bytes";
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > limit) return refuse("more than " + most, "at most " + most);
  std::string text;
  text.reserve(size);
  char block[1 << 16];
  for (;;) {  // files of /proc state no size
    const ssize_t count = ::read(in.get(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse(std::strerror(errno), "a readable file");
    if (count == 0) return text;
    text.append(block, static_cast<std::size_t>(count));
    if (text.size() > limit) return refuse("more than " + most, "at most " + most);
  }
}

void write_text_file(const fs::path& file, std::string_view text) {
  write_text_parts(file, [text](const auto& take) { take(text); });
}

void write_text_parts(const fs::path& file, const TextParts& parts) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return write_beside(file, parts);
  if (S_ISDIR(status.st_mode)) fail(file, "cannot write", EISDIR);
  if (!S_ISREG(status.st_mode)) return write_through(file, parts);
  std::error_code error;
  const fs::path target = fs::canonical(file, error);  // a link goes on naming what it names
  write_beside(error ? file : target, parts);
}

}  // namespace tessera
