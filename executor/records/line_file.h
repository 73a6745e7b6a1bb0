// A file of records that a run appends to, whole ones only: a record that does not fit on the disk
// is cut off again and left out, and the run goes on.
//
// The first failure and the first success after it are told on standard error. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace tessera {

class LineFile {
 public:
  enum class Open { append, create };  // create: an error where the file exists

  /// Throws Error (io) where the file cannot be opened.
  explicit LineFile(std::filesystem::path path, Open how = Open::append);
  ~LineFile();
  LineFile(LineFile&& other) noexcept;
  LineFile& operator=(LineFile&&) = delete;

  /// Appends the record, or nothing of it: then false.
  bool append(std::string_view record);
  /// Appends the lines at the end whose "step" is above `step` to the file `apart`, and removes
  /// them here: they stay where they cannot be written there.
  void keep_apart_after(std::int64_t step, const std::filesystem::path& apart);
  /// Removes the lines at the end whose "step" is above `step`, and what is no whole line.
  void forget_after(std::int64_t step);
  /// Those lines, each with its end.
  std::string lines_after(std::int64_t step) const;
  /// The record takes their place, all at once: the file is another one then (its inode). False
  /// where the disk refuses, and the file is as it was.
  bool replace_after(std::int64_t step, std::string_view record);

  const std::filesystem::path& path() const { return path_; }

 private:
  /// Cuts off what forget_after removes, where `keep` has taken it.
  void cut_after(std::int64_t step, const std::function<bool(std::string_view)>& keep);
  /// Gives `use` the whole text and how much of it forget_after keeps; false where there is none.
  bool with_text(std::int64_t step,
                 const std::function<bool(std::string_view text, std::size_t kept)>& use) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t lost_ = 0;  // records since the last one that was written
};

}  // namespace tessera
