#include "executor/records/line_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

/// The number behind "step": in a JSON line.
std::optional<std::int64_t> step_of(std::string_view line) {
  constexpr std::string_view kKey = "\"step\":";
  std::size_t at = line.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  at = line.find_first_not_of(' ', at + kKey.size());
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), step);
  return error == std::errc() ? std::optional(step) : std::nullopt;
}

/// Bytes of `text` up to the end of its last whole line whose step is at most `step`.
std::size_t kept_bytes(std::string_view text, std::int64_t step) {
  std::size_t end = text.rfind('\n');
  while (end != std::string_view::npos) {
    const std::size_t before = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const auto found = step_of(text.substr(begin, end - begin));
    if (!found || *found <= step) return end + 1;
    end = before;
  }
  return 0;
}

bool write_all(int descriptor, std::string_view record) {
  while (!record.empty()) {
    const ssize_t written = ::write(descriptor, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    record.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

LineFile::LineFile(std::filesystem::path path, Open how) : path_(std::move(path)) {
  const int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | (how == Open::create ? O_EXCL : 0);
  descriptor_ = ::open(path_.c_str(), flags, 0644);
  if (descriptor_ < 0) {
    throw Error(ExitCode::io, {Problem{.file = path_.string(), .found = std::strerror(errno)}});
  }
}

LineFile::LineFile(LineFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      lost_(other.lost_) {}

LineFile::~LineFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool LineFile::append(std::string_view record) {
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (write_all(descriptor_, record)) {
    if (lost_ > 0) {
      std::fprintf(stderr, "%s is written again; %lld records are missing\n", path_.c_str(),
                   static_cast<long long>(lost_));
    }
    lost_ = 0;
    return true;
  }
  if (lost_++ == 0) {
    std::fprintf(stderr, "%s cannot be written: %s; the run goes on without it\n", path_.c_str(),
                 std::strerror(errno));
  }
  // Half a record would spoil the next one; where this fails, too, a reader will say so.
  if (known && ::ftruncate(descriptor_, status.st_size) != 0) return false;
  return false;
}

void LineFile::forget_after(std::int64_t step) {
  cut_after(step, [](std::string_view) { return true; });
}

void LineFile::keep_apart_after(std::int64_t step, const std::filesystem::path& apart) {
  cut_after(step, [&](std::string_view lines) {
    const int descriptor = ::open(apart.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) return false;
    const bool written = write_all(descriptor, lines);
    ::close(descriptor);
    return written;
  });
}

bool LineFile::with_text(
    std::int64_t step,
    const std::function<bool(std::string_view text, std::size_t kept)>& use) const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || status.st_size == 0) return false;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor_, 0);
  if (data == MAP_FAILED) return false;
  const std::string_view text(static_cast<const char*>(data), size);
  const bool used = use(text, kept_bytes(text, step));
  ::munmap(data, size);
  return used;
}

void LineFile::cut_after(std::int64_t step, const std::function<bool(std::string_view)>& keep) {
  with_text(step, [&](std::string_view text, std::size_t kept) {
    if (kept == text.size()) return true;
    if (keep(text.substr(kept)) && ::ftruncate(descriptor_, static_cast<off_t>(kept)) == 0) {
      return true;
    }
    std::fprintf(stderr, "%s keeps the lines after step %lld: %s\n", path_.c_str(),
                 static_cast<long long>(step), std::strerror(errno));
    return false;
  });
}

std::string LineFile::lines_after(std::int64_t step) const {
  std::string lines;
  with_text(step, [&](std::string_view text, std::size_t kept) {
    const std::size_t end = text.rfind('\n');
    if (end != std::string_view::npos && end >= kept) lines = text.substr(kept, end + 1 - kept);
    return true;
  });
  return lines;
}

bool LineFile::replace_after(std::int64_t step, std::string_view record) {
  const std::string beside = path_.string() + ".new";
  const int made = ::open(beside.c_str(), O_RDWR | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (made < 0) return false;
  bool copied = true;
  with_text(step, [&](std::string_view text, std::size_t kept) {
    copied = write_all(made, text.substr(0, kept));
    return copied;
  });
  if (!copied || !write_all(made, record) || ::fsync(made) != 0 ||
      ::rename(beside.c_str(), path_.c_str()) != 0) {
    ::close(made);
    ::unlink(beside.c_str());
    return false;
  }
  ::close(std::exchange(descriptor_, made));
  return true;
}

}  // namespace tessera
