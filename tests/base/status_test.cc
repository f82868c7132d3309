#include "fgsync/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace fgsync {
namespace {

TEST(StatusTest, SuccessHasNoMessageAndNoErrno) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kOk);
  EXPECT_EQ(status.system_errno(), 0);
  EXPECT_EQ(status.message(), "");
}

TEST(StatusTest, ErrnoChoosesTheCodeAndKeepsItsText) {
  struct Expected {
    int system_errno;
    ErrorCode code;
    const char* text;
  };
  for (const Expected& expected : {
           Expected{ENOENT, ErrorCode::kNotFound, "No such file or directory"},
           Expected{EACCES, ErrorCode::kPermissionDenied, "Permission denied"},
           Expected{EPERM, ErrorCode::kPermissionDenied, "Operation not permitted"},
           Expected{ENOSPC, ErrorCode::kNoSpace, "No space left on device"},
           Expected{EDQUOT, ErrorCode::kNoSpace, "Disk quota exceeded"},
           Expected{EIO, ErrorCode::kIoError, "Input/output error"},
           Expected{EINVAL, ErrorCode::kIoError, "Invalid argument"},
       }) {
    const Status status = Status::from_errno(expected.system_errno, "opening");
    EXPECT_EQ(status.code(), expected.code);
    EXPECT_EQ(status.system_errno(), expected.system_errno);
    EXPECT_EQ(status.message(), std::string("opening: ") + expected.text);
  }
}

TEST(StatusTest, ContextComesBeforeTheMessageAndChangesNothingElse) {
  const Status inner = Status::from_errno(ENOENT, "opening");
  const Status outer = inner.with_context("a/b");
  EXPECT_EQ(outer.message(), "a/b: opening: No such file or directory");
  EXPECT_EQ(outer.code(), inner.code());
  EXPECT_EQ(outer.system_errno(), ENOENT);
  EXPECT_TRUE(Status().with_context("a/b").ok());
}

TEST(StatusTest, CopiesAreIndependent) {
  Status original(ErrorCode::kTimeout, "late");
  const Status copy = original;
  original = Status();
  EXPECT_TRUE(original.ok());
  EXPECT_EQ(copy.code(), ErrorCode::kTimeout);
  EXPECT_EQ(copy.message(), "late");
}

Result<std::unique_ptr<int>> make_number(bool possible) {
  if (!possible) return Status(ErrorCode::kUnsupported, "no numbers");
  return std::make_unique<int>(7);
}

Status use_number(bool possible, int& number) {
  auto made = make_number(possible);
  FGSYNC_RETURN_IF_ERROR(made.status());
  number = **made;
  return Status();
}

TEST(StatusTest, AResultHoldsAValueOrAReason) {
  auto made = make_number(true);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made.status().ok());
  const std::unique_ptr<int> taken = std::move(made).value();
  EXPECT_EQ(*taken, 7);
  const auto failed = make_number(false);
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().message(), "no numbers");
}

TEST(StatusTest, TheMacroReturnsFailuresOnly) {
  int number = 0;
  EXPECT_TRUE(use_number(true, number).ok());
  EXPECT_EQ(number, 7);
  EXPECT_EQ(use_number(false, number).code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace fgsync
