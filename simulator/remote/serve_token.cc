#include "simulator/remote/serve_token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigits = 64;
constexpr std::string_view kHex = "0123456789abcdef";

std::string new_token() {
  std::array<unsigned char, kDigits / 2> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error(ExitCode::io, "no random bytes: " + std::string(std::strerror(errno)));
  }
  std::string token;
  for (const unsigned char byte : bytes) token += {kHex[byte / 16], kHex[byte % 16]};
  return token;
}

std::string write_new(const fs::path& file) {
  std::error_code ignored;  // the writing says it
  fs::create_directories(file.parent_path(), ignored);
  const int descriptor =
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const std::string token = new_token(), line = token + "\n";
  const bool written = descriptor >= 0 && ::write(descriptor, line.data(), line.size()) ==
                                              static_cast<ssize_t>(line.size());
  const std::string reason = written ? "" : std::strerror(errno);
  if (descriptor >= 0) ::close(descriptor);
  if (descriptor >= 0 && !written) ::unlink(file.c_str());  // a part would be refused ever after
  if (!written) throw Error(ExitCode::io, file.string() + ": " + reason);
  return token;
}

}  // namespace

bool is_token(std::string_view text) {
  return text.size() == kDigits && text.find_first_not_of(kHex) == text.npos;
}

bool same_token(std::string_view given, std::string_view token) {
  return given.size() == token.size() &&
         CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

std::optional<std::string> read_token(const fs::path& file, Problems& problems) {
  auto text = read_text_file(file, 4096, problems);
  if (!text) return std::nullopt;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (is_token(*text)) return text;
  problems.push_back({file.string(), "", "something else", "a token: 64 hexadecimal digits", ""});
  return std::nullopt;
}

std::string kept_token(const fs::path& file) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0 && errno == ENOENT) return write_new(file);
  Problems problems;
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & kOthers) != 0) {
    problems.push_back({file.string(), "", "a file that others may read or have made",
                        "a file of your own, of mode 0600", "remove it: a new one is made"});
    throw Error(ExitCode::bad_input, std::move(problems));
  }
  const auto token = read_token(file, problems);
  if (!token) throw Error(ExitCode::bad_input, std::move(problems));
  return *token;
}

fs::path token_file() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    return fs::path(state) / "tessera" / "serve.token";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    throw Error(ExitCode::usage, "HOME is not set: say --token-file");
  }
  return fs::path(home) / ".local" / "state" / "tessera" / "serve.token";
}

}  // namespace tessera
