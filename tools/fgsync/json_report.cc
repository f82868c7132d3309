#include "json_report.h"

#include "fgsync/transfer.h"
#include "json_text.h"
#include "report_printer.h"
#include "text.h"

namespace fgsync::tools {
namespace {

const char* status_word(int exit_code) {
  switch (exit_code) {
    case 0:
      return "ok";
    case 20:
      return "cancelled";
    case 23:
    case 24:
    case 25:
      return "partial";
    default:
      return "failed";
  }
}

Json json_sources(const TransferOptions& options) {
  if (options.sources.size() == 1) return json_text(options.sources.front().display());
  Json list = Json::array();
  for (const Location& source : options.sources) list.push_back(json_text(source.display()));
  return list;
}

// The paths' errors, and why the session ended early, with an empty path.
Json json_errors(const TransferReport& report) {
  Json errors = Json::array();
  for (const ErrorEntry& entry : report.errors) {
    errors.push_back(json_error(entry.path, entry.code, entry.message));
  }
  if (!report.status.ok()) {
    errors.push_back(json_error("", report.status.code(), report.status.message()));
  }
  return errors;
}

Json json_files(const FileFigures& files) {
  return Json{{"total", files.total},         {"sent", files.sent},
              {"unchanged", files.unchanged}, {"linked", files.linked},
              {"deleted", files.deleted},     {"failed", files.failed},
              {"vanished", files.vanished}};
}

Json json_bytes(const ByteFigures& bytes) {
  return Json{{"total", bytes.total},
              {"sent", bytes.sent},
              {"resumed", bytes.resumed},
              {"unchanged", bytes.unchanged},
              {"wire", bytes.wire}};
}

Json json_stages(const TransferReport& report) {
  Json stages;
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const auto stage = static_cast<Stage>(i);
    const StageFigures& figures = figures_of(report, stage);
    stages[stage_name(stage)] =
        Json{{"busy_seconds", figures.busy_seconds}, {"bytes", figures.bytes}};
  }
  return stages;
}

}  // namespace

std::string json_report(const TransferReport& report, const TransferOptions& options,
                        const std::vector<std::string>& command) {
  Json object;
  object["version"] = version_string();
  object["status"] = status_word(report.exit_code);
  object["exit_code"] = report.exit_code;
  object["command"] = json_text(quote_words(command));
  object["source"] = json_sources(options);
  object["target"] = json_text(options.target.display());
  object["started"] = iso8601(report.started);
  object["seconds"] = report.seconds;
  object["transport"] = report.transport;
  object["streams"] = report.streams;
  object["cipher"] = report.cipher;
  object["io_engine"] = report.io_engine;
  object["limited_by"] = report.limited_by;
  object["files"] = json_files(report.files);
  object["bytes"] = json_bytes(report.bytes);
  object["rate_bytes_per_second"] = report.rate_bytes_per_second();
  object["digest"] = report.digest;
  object["errors"] = json_errors(report);
  object["stages"] = json_stages(report);
  // Beside the keys that are always there: the report of a run that promises less says so.
  if (options.durability == Durability::kNone) object["durability"] = "none";
  return json_line(object);
}

}  // namespace fgsync::tools
