// Standard error as the user sees it: whole lines, and below them a progress display that is
// redrawn in place. Used by one thread. A console that is gone (closed pipe, hung-up terminal) is
// not an error: the run goes on and says the rest to nobody.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fgsync::tools {

// Writes all of `text`; false with errno set when that cannot be done.
bool write_all(int fd, std::string_view text);

class Console {
 public:
  // `fd` stays the caller's.
  explicit Console(int fd);

  // A terminal that can redraw a line.
  bool is_terminal() const { return is_terminal_; }
  // Columns; asked anew each time, since windows are resized.
  std::size_t width() const;

  // One line without its end, above the progress display.
  void print(std::string_view line);
  // Replaces the progress display; the lines must be narrower than width().
  void show_progress(const std::vector<std::string>& lines);
  void clear_progress() { show_progress({}); }

 private:
  std::string take_erasure();

  int fd_;
  bool is_terminal_;
  std::size_t progress_lines_ = 0;
};

}  // namespace fgsync::tools
