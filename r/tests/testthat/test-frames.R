frame <- function(...) pufferfish:::frame_of(data.frame(..., stringsAsFactors = FALSE))

test_that("numbers, text and true/false keep their values, and NA is missing", {
  skip_without_python()
  x <- frame(
    i = c(1L, NA, -.Machine$integer.max), d = c(0.1, NA, NaN), l = c(TRUE, NA, FALSE), c = c("\u00e4,\"b\"", NA, "NA")
  )
  expect_equal(vapply(c("i", "d", "l", "c"), function(n) type_of(x, n), ""), c(i = "Int32", d = "Float64", l = "Boolean", c = "String"))
  expect_equal(held(x, "i"), "['1', None, '-2147483647']")
  expect_equal(reticulate::py_str(x$get_column("d")$to_list()), "[0.1, None, nan]")
  expect_equal(held(x, "l"), "['true', None, 'false']")
  expect_equal(reticulate::py_to_r(x$get_column("c")$to_list()[0]), "\u00e4,\"b\"")
  expect_equal(reticulate::py_to_r(x$get_column("c")$null_count()), 1L)
})

test_that("every double crosses bit by bit", {
  skip_without_python()
  values <- c(.Machine$double.xmin, pi, 2^53 + 2, -0.1, 1 / 3, 5e-324)
  back <- reticulate::py_to_r(pufferfish:::frame_of(data.frame(d = values))$get_column("d")$to_list())
  expect_identical(back, values)
})

test_that("levels are kept, in their order, unused ones too; a level that is NA is missing", {
  skip_without_python()
  f <- factor(c("b", NA, "a"), levels = c("b", "unused", "a"))
  expect_equal(type_of(frame(f = f), "f"), "Enum(categories=['b', 'unused', 'a'])")
  expect_equal(held(frame(f = f), "f"), "['b', None, 'a']")
  expect_equal(held(frame(f = addNA(f)), "f"), "['b', None, 'a']")
  expect_equal(held(frame(f = factor("x")), "f"), "['x']")
})

test_that("times keep their microseconds and their time zone", {
  skip_without_python()
  texts <- c("2024-03-31 01:59:59.999999", "2024-03-31 03:00:00.000001", "1969-12-31 23:59:59.5", "2105-01-01 00:00:00.123457")
  x <- frame(t = as.POSIXct(texts, tz = "Europe/Paris"))
  expect_equal(type_of(x, "t"), "Datetime(time_unit='us', time_zone='Europe/Paris')")
  shown <- reticulate::py_to_r(x$get_column("t")$dt$strftime("%Y-%m-%d %H:%M:%S.%6f %z")$to_list())
  expect_equal(shown, paste0(
    c("2024-03-31 01:59:59.999999", "2024-03-31 03:00:00.000001", "1969-12-31 23:59:59.500000", "2105-01-01 00:00:00.123457"),
    c(" +0100", " +0200", " +0100", " +0100")
  ))
  every <- as.POSIXct("2024-01-01", tz = "UTC") + (0:9999) * 1e-6 + 0:9999
  ticks <- reticulate::py_to_r(frame(t = every)$get_column("t")$diff()$dt$total_microseconds()$unique()$to_list())
  expect_equal(sort(unlist(ticks)), 1000001)
})

test_that("a time without a zone is in that of the session", {
  skip_without_python()
  withr_zone <- Sys.getenv("TZ", NA)
  Sys.setenv(TZ = "Asia/Tokyo")
  on.exit(if (is.na(withr_zone)) Sys.unsetenv("TZ") else Sys.setenv(TZ = withr_zone))
  x <- frame(t = as.POSIXct("2024-01-01 09:00:00"))
  expect_equal(type_of(x, "t"), "Datetime(time_unit='us', time_zone='Asia/Tokyo')")
  expect_equal(reticulate::py_str(x$get_column("t")$dt$timestamp("ms")$to_list()), "[1704067200000]")
})

test_that("dates, lengths of time and 64-bit whole numbers keep their values", {
  skip_without_python()
  x <- frame(D = as.Date(c("2024-02-29", NA, "1969-12-31")), h = as.difftime(c(1.5, NA, -1), units = "mins"))
  expect_equal(c(type_of(x, "D"), type_of(x, "h")), c("Date", "Duration(time_unit='us')"))
  expect_equal(held(x, "D"), "['2024-02-29', None, '1969-12-31']")
  expect_equal(reticulate::py_to_r(x$get_column("h")$dt$total_seconds()$to_list()[0]), 90)
  skip_if_not_installed("bit64")
  b <- data.frame(b = bit64::as.integer64(c("9007199254740993", NA, "-3")))
  expect_equal(held(pufferfish:::frame_of(b), "b"), "['9007199254740993', None, '-3']")
})

test_that("tables of one row and of none keep their types", {
  skip_without_python()
  table <- made_up(1, 2)
  for (rows in 0:1) {
    x <- pufferfish:::frame_of(table[seq_len(rows), ])
    expect_equal(reticulate::py_to_r(x$height), rows)
    expect_match(type_of(x, "activity"), "Enum")
    expect_match(type_of(x, "minute"), "UTC")
  }
})

test_that("what is no column of values is refused in one line", {
  skip_without_python()
  table <- data.frame(a = 1:2)
  table$z <- c(1i, 2i)
  expect_error(pufferfish:::frame_of(table), "column 'z' is of class complex.*leave it out", class = "pufferfish_error")
  table$z <- list(1, 2)
  expect_error(pufferfish:::frame_of(table), "column 'z' is of class list", class = "pufferfish_error")
  table$z <- matrix(1:4, 2)
  expect_error(pufferfish:::frame_of(table), "column 'z' is of class matrix", class = "pufferfish_error")
  table$z <- as.POSIXct(c(0, Inf), origin = "1970-01-01")
  expect_error(pufferfish:::frame_of(table), "infinite, in row 2", class = "pufferfish_error")
  expect_error(pufferfish:::frame_of(1:3), "expected a data.frame or the path", class = "pufferfish_error")
  expect_error(pufferfish:::frame_of(matrix("p1")), "table is of class matrix", class = "pufferfish_error")
})

test_that("a frame that comes back has R's types, missing values among them", {
  skip_without_python()
  from <- data.frame(i = c(1L, NA), d = c(0.5, 1), c = c("a", NA), D = as.Date(c(NA, "2024-01-02")))
  expect_equal(pufferfish:::table_of(pufferfish:::frame_of(from)), from)
  expect_equal(nrow(pufferfish:::table_of(pufferfish:::frame_of(from[0, ]))), 0)
  large <- python("polars")$DataFrame(reticulate::dict(n = list(2^40, 5)))$cast(python("polars")$Int64)
  expect_identical(pufferfish:::table_of(large)$n, c(2^40, 5))
})
