#include "sim/page/page.h"

#include <string>

#include "sim/page/page_files.h"
#include "tests/support/catch.h"
#include "tests/support/page_text.h"

namespace hdpsim {
namespace {

using Catch::Matchers::Contains;
using test::count;
using test::page_data;

TEST_CASE("what a page is made of stays text, whatever is in it", "[page]") {
  const std::string hostile = "</script><script>alert(1)</script><!-- {{data}} & \"x\" -->";
  const std::string page = html_page(hostile, "finish();", nlohmann::json{{"name", hostile}}.dump());
  CHECK(count(page, "<script>alert") == 0);
  CHECK(count(page, "<script") == count(html_page("plain", "finish();", "{}"), "<script"));
  CHECK_THAT(page, Contains("<h1>&lt;/script&gt;&lt;script&gt;alert(1)"));
  CHECK(page_data(page).at("name") == hostile);
}

TEST_CASE("a page may ask for nothing: its policy forbids it, and it names no address", "[page]") {
  const std::string page = html_page("a page", page_files::report_js, "{}");
  CHECK_THAT(page, Contains("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\""));
  CHECK(count(page, "://") == count(page, "\"http://www.w3.org/2000/svg\""));  // the name of a language, no address
  CHECK(count(page, "url(") == count(page, "url(#"));                          // of its own shapes
}

TEST_CASE("every page has the common style, charts and parts, and its own script after them", "[page]") {
  for (const std::string_view script : {page_files::report_js, page_files::replay_js, page_files::comparison_js,
                                        page_files::validation_js, page_files::tuning_js, page_files::tables_js}) {
    const std::string page = html_page("a page", script, "{}");
    std::size_t end = 0;
    for (const std::string_view part : {page_files::page_css, page_files::charts_js, page_files::parts_js, script}) {
      REQUIRE_FALSE(part.empty());
      const std::size_t begin = page.find(part, end);
      REQUIRE(begin != std::string::npos);
      end = begin + part.size();
    }
  }
}

TEST_CASE("figures of a page keep five digits", "[page]") {
  CHECK(rounded(1.23456789) == 1.2346);
  CHECK(rounded(123456.789) == 123460);
  CHECK(rounded(0) == 0);
}

TEST_CASE("markup is escaped between tags and in attributes", "[page]") {
  CHECK(escaped_markup("<a b=\"c\" d='e'> & f") == "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt; &amp; f");
}

}  // namespace
}  // namespace hdpsim
