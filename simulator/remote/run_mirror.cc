#include "simulator/remote/run_mirror.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "cost_models/documents/printable.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kOverlap = 4096;
constexpr std::size_t kMostNames = std::size_t{1} << 20, kMostReason = 8192;

std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::int64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

std::string read_part(const fs::path& file, std::int64_t first, std::int64_t size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(first);
  stream.read(bytes.data(), size);
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  return bytes;
}

void write_part(const fs::path& file, const std::string& bytes, std::ios::openmode mode) {
  std::ofstream stream(file, std::ios::binary | mode);
  stream << bytes << std::flush;
  if (!stream) throw Error(ExitCode::io, file.string() + ": " + std::strerror(errno));
}

// As the original has it: what says when a run last wrote a step.
void set_time(const fs::path& file, std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t part = (ns % kSecond + kSecond) % kSecond;  // of times before 1970, too
  const timespec time{.tv_sec = (ns - part) / kSecond, .tv_nsec = part};
  const timespec both[] = {time, time};
  ::utimensat(AT_FDCWD, file.c_str(), both, 0);
}

void replace(const fs::path& file, const std::string& bytes) {
  const fs::path fresh = file.string() + ".new";
  write_part(fresh, bytes, std::ios::trunc);
  fs::rename(fresh, file);
}

}  // namespace

/// Ends a contact.
struct RunMirror::Failure {
  Contact contact;
  std::string fault;
};

RunMirror::RunMirror(RemoteName name, std::string token, fs::path cache)
    : name_(std::move(name)), cache_(std::move(cache)), client_(name_.port, std::move(token)) {
  if (!name_.run.empty()) state_ = read_mirror_state(folder()).value_or(MirrorState{});
}

fs::path RunMirror::folder() const {
  return name_.run.empty() ? fs::path() : mirror_folder(name_, cache_);
}

RunReply RunMirror::ask(const std::string& path, const std::optional<ByteRange>& range,
                        std::size_t most, const std::stop_token& stop) {
  RunReply reply = client_.get(path, range, most, stop);
  check(reply);
  return reply;
}

void RunMirror::check(const RunReply& reply) {
  if (!reply.fault.empty()) throw Failure{Contact::unreached, reply.fault};
  if (reply.status == 401) throw Failure{Contact::denied, "the token is refused"};
}

std::string RunMirror::signal(RunSignal signal, const std::stop_token& stop) {
  try {
    find_run(stop);
    const std::string word(name_of(signal));
    const std::string path = "/runs/" + std::to_string(*number_) + "/signals/" + word;
    const RunReply reply = client_.post(path, kMostReason, stop);
    check(reply);
    if (reply.status == 200) return {};
    if (reply.status == 403) return "it is served for reading alone (tessera serve --read-only)";
    if (reply.status != 409 && reply.status != 500)
      return "the tessera serve there tells runs nothing";
    return printable(reply.body.substr(0, reply.body.find('\n')), LineEnds::kept);
  } catch (const Failure& failure) {
    number_.reset();
    return failure.fault;
  }
}

void RunMirror::find_run(const std::stop_token& stop) {
  if (number_) return;
  const RunReply reply = ask("/runs", {}, kMostNames, stop);
  Problems problems;
  const auto names = runs_from(reply.body, address_of(name_), problems);
  if (reply.status != 200 || !names) {
    throw Failure{Contact::wrong, "no tessera serve answers at " + address_of(name_)};
  }
  std::string all;
  for (const std::string& each : *names) all += (all.empty() ? "" : ", ") + each;
  if (name_.run.empty() && names->size() == 1) {
    name_.run = names->front();
    state_ = read_mirror_state(folder()).value_or(MirrorState{});
  }
  const auto found = std::find(names->begin(), names->end(), name_.run);
  if (found == names->end()) {
    throw Failure{Contact::wrong, (name_.run.empty() ? "several runs" : "no run " + name_.run) +
                                      " at " + address_of(name_) + ", expected one of: " + all};
  }
  number_ = static_cast<std::size_t>(found - names->begin());
}

MirrorNews RunMirror::contact(const std::stop_token& stop) {
  MirrorNews news;
  budget_ = kContactBytes;
  try {
    if (!name_.run.empty() && fs::exists(folder())) hold();
    find_run(stop);
    hold();
    const RunListing listing = list(stop);
    copy(listing, news, stop);
    state_.as_of_ns = listing.now_ns;
    state_.gone = listing.gone;
    state_.reached_ns = now_ns();
    tell({});
    news.contact = Contact::reached;
  } catch (const Failure& failure) {
    number_.reset();
    news.contact = failure.contact;
    news.fault = failure.fault;
  } catch (const Error& error) {
    news.contact = Contact::disk;
    news.fault = error.what();
  } catch (const fs::filesystem_error& error) {
    news.contact = Contact::disk;
    news.fault = error.what();
  }
  if (news.contact != Contact::reached) tell(news.fault);
  return news;
}

/// Two mirrors of one copy would both append to its files.
void RunMirror::hold() {
  if (lock_) return;
  fs::create_directories(folder());
  Problems problems;
  lock_ = RunLock::take(folder() / "mirror.lock", 0, problems);
  if (!lock_) throw Failure{Contact::disk, to_string(problems.at(0))};
}

RunListing RunMirror::list(const std::stop_token& stop) {
  const RunReply reply = ask("/runs/" + std::to_string(*number_), {}, RunListing::kMostBytes, stop);
  Problems problems;
  auto listing = listing_from(reply.body, address_of(name_), problems);
  if (reply.status != 200 || !listing) {
    throw Failure{Contact::wrong, "no listing of a run at " + address_of(name_)};
  }
  return *std::move(listing);
}

void RunMirror::tell(const std::string& fault) {
  if (!lock_) return;  // the copy is nobody's, or another mirror's
  std::error_code error;
  state_.name = name_;
  state_.fault = fault;
  if (!fault.empty() && !fs::exists(folder() / "mirror.json", error)) return;
  try {
    write_mirror_state(state_, folder());
  } catch (const Error&) {
    // A full disk: the news say it.
  }
}

void RunMirror::copy(const RunListing& listing, MirrorNews& news, const std::stop_token& stop) {
  fs::create_directories(folder() / "ranks");
  fs::permissions(folder(), fs::perms::owner_all);
  copy_ranks(listing);
  for (const ServedName& served : kServedNames) {
    const auto is_it = [&](const RunFile& file) { return file.name == served.name; };
    const auto now = std::find_if(listing.files.begin(), listing.files.end(), is_it);
    const auto had = std::find_if(state_.files.begin(), state_.files.end(), is_it);
    if (now == listing.files.end()) {
      fs::remove(folder() / served.name);
      if (had != state_.files.end()) state_.files.erase(had);
      continue;
    }
    const RunFile* before = had == state_.files.end() ? nullptr : &*had;
    if (served.growth == FileGrowth::appended) {
      copy_grown(*now, before, news, stop);
    } else if (before == nullptr || *before != *now) {
      if (!copy_whole(*now, stop)) {
        news.missing_bytes += now->size;
        continue;  // another version is there by now
      }
    }
    if (before == nullptr) {
      state_.files.push_back(*now);
    } else {
      *had = *now;
    }
  }
}

void RunMirror::copy_ranks(const RunListing& listing) const {
  std::set<std::string> names;
  for (const RankRecord& rank : listing.ranks) {
    const std::string name = std::to_string(rank.rank);
    names.insert(name);
    const fs::path file = folder() / "ranks" / name;
    if (read_part(file, 0, RunListing::kMostRecordBytes) != rank.bytes) replace(file, rank.bytes);
  }
  for (const auto& entry : fs::directory_iterator(folder() / "ranks")) {
    if (!names.contains(entry.path().filename())) fs::remove(entry.path());
  }
}

/// Exactly these bytes of the file.
std::string RunMirror::part(const RunFile& file, std::int64_t first, std::int64_t size,
                            const std::stop_token& stop) {
  if (size == 0) return {};
  RunReply reply = ask("/runs/" + std::to_string(*number_) + "/" + file.name,
                       ByteRange{first, size}, static_cast<std::size_t>(size), stop);
  const bool whole = reply.status == 206 && reply.first == first &&
                     reply.body.size() == static_cast<std::size_t>(size);
  if (whole) return std::move(reply.body);
  if (reply.status == 404 || reply.status == 416 || reply.status == 206) return {};  // it changed
  throw Failure{Contact::wrong, "no part of " + file.name + " at " + address_of(name_)};
}

void RunMirror::copy_grown(const RunFile& file, const RunFile* had, MirrorNews& news,
                           const std::stop_token& stop) {
  const fs::path copy = folder() / file.name;
  std::int64_t size = size_of(copy);
  bool same = size == 0 || (had != nullptr && had->id == file.id && size <= file.size);
  if (same && size > 0 && (had->size != file.size || had->modified_ns != file.modified_ns)) {
    const std::int64_t tail = std::min(size, kOverlap);
    same = part(file, size - tail, tail, stop) == read_part(copy, size - tail, tail);
  }
  if (!same || !fs::exists(copy)) {
    news.restarted |= size > 0;
    replace(copy, {});
    size = 0;
  }
  while (size < file.size && budget_ > 0) {
    const std::int64_t wanted = std::min({file.size - size, kRequestBytes, budget_});
    const std::string bytes = part(file, size, wanted, stop);
    if (bytes.empty()) break;  // it became shorter: the next contact sees it
    write_part(copy, bytes, std::ios::app);
    size += wanted;
    budget_ -= wanted;
  }
  set_time(copy, file.modified_ns);
  news.missing_bytes += file.size - size;
}

/// False where it is not there whole yet.
bool RunMirror::copy_whole(const RunFile& file, const std::stop_token& stop) {
  const fs::path copy = folder() / file.name, fresh = copy.string() + ".new";
  write_part(fresh, {}, std::ios::trunc);
  for (std::int64_t size = 0; size < file.size;) {
    const std::int64_t wanted = std::min(file.size - size, kRequestBytes);
    const std::string bytes = part(file, size, wanted, stop);
    if (bytes.empty()) return false;
    write_part(fresh, bytes, std::ios::app);
    size += wanted;
  }
  // Its parts, asked one after another, may be of several versions.
  const RunListing after = list(stop);
  if (std::find(after.files.begin(), after.files.end(), file) == after.files.end()) return false;
  set_time(fresh, file.modified_ns);
  fs::rename(fresh, copy);
  return true;
}

}  // namespace tessera
