# Tables on their way: a data.frame becomes a polars frame, column by column, and types stay what they are.
#
# factor      the levels, as an Enum: an unused level is kept
# POSIXct     microseconds since 1970, with the time zone of the column
# NA          a missing value; NaN stays a number that is none, which Python refuses
#
# No column passes through text that would have to be guessed at again.

frame_of <- function(table) {
  if (is.character(table) && is.null(dim(table))) return(as.list(path.expand(table)))
  if (is_python(table)) return(table)
  if (!is.data.frame(table)) {
    stop_pufferfish(paste0("table is of class ", class(table)[1], ", expected a data.frame or the path of a file"))
  }
  columns <- lapply(seq_along(table), function(i) series_of(table[[i]], names(table)[i]))
  module("polars")$DataFrame(columns)
}

series_of <- function(x, name) {
  pl <- module("polars")
  if (inherits(x, "POSIXlt")) x <- as.POSIXct(x)
  if (is.factor(x) && anyNA(levels(x))) x <- factor(x, levels(x)[!is.na(levels(x))])  # of addNA: missing all the same
  series <- if (is.factor(x)) {
    words_of(as.integer(x), levels(x), pl$Enum(as.list(enc2utf8(levels(x)))))
  } else if (is.character(x) && is.null(dim(x))) {
    known <- unique(x[!is.na(x)])
    words_of(match(x, known), known, pl$String)
  } else if (inherits(x, "POSIXct")) {
    zone <- attr(x, "tzone")[1]
    if (is.null(zone) || is.na(zone) || zone == "") zone <- suppressWarnings(Sys.timezone())
    if (is.na(zone)) zone <- "UTC"
    refuse_infinite(x, name)
    numbers_of(round(as.numeric(x) * 1e6), is.na(x))$cast(pl$Int64)$cast(pl$Datetime("us", zone))
  } else if (inherits(x, "Date")) {
    refuse_infinite(x, name)
    numbers_of(floor(as.numeric(x)), is.na(x))$cast(pl$Int32)$cast(pl$Date)
  } else if (inherits(x, "difftime")) {
    refuse_infinite(x, name)
    numbers_of(round(as.numeric(x, units = "secs") * 1e6), is.na(x))$cast(pl$Int64)$cast(pl$Duration("us"))
  } else if (inherits(x, "integer64")) {
    numbers_of(unclass(x), is.na(x), "i8")  # the bits of a double that is none
  } else if ((is.numeric(x) || is.logical(x)) && is.null(dim(x)) && !is.object(x)) {
    numbers_of(x, is.na(x) & !is.nan(x))
  } else {
    stop_pufferfish(paste0(
      "column '", name, "' is of class ", class(x)[1], ", expected text, a factor, numbers, true/false or times: ",
      "make it one of these, or leave it out of the table"
    ))
  }
  series$alias(enc2utf8(name))
}

#' Numbers, or true/false, and which of them are missing. They cross as bytes, which changes none of them.
numbers_of <- function(x, missing, kind = c(double = "f8", integer = "i4", logical = "i4")[[typeof(x)]]) {
  attributes(x) <- NULL
  x[missing] <- FALSE
  bytes_of <- function(x) reticulate::r_to_py(writeBin(x, raw()))
  pl <- module("polars")
  series_from <- function(x, kind) pl$Series(module("numpy")$frombuffer(bytes_of(x), kind))
  series <- series_from(x, kind)
  if (is.logical(x)) series <- series$cast(pl$Boolean)
  if (any(missing)) series$set(series_from(missing, "i4")$cast(pl$Boolean), NULL) else series
}

#' Text by the number of its word, from 1; NA is missing.
words_of <- function(codes, words, dtype) {
  places <- numbers_of(codes - 1L, is.na(codes))$cast(module("polars")$Int64)
  module("polars")$Series(values = as.list(enc2utf8(words)), dtype = dtype)$gather(places)
}

refuse_infinite <- function(x, name) {
  infinite <- which(is.infinite(as.numeric(x)))
  if (length(infinite) > 0) {
    stop_pufferfish(paste0("column '", name, "' holds a time that is infinite, in row ", infinite[1], ": make it NA"))
  }
}

#' A polars frame as a data.frame. Whole numbers become doubles: they may be larger than R's integers.
table_of <- function(frame) {
  pl <- module("polars")
  names <- text_of(frame$columns)
  columns <- lapply(names, function(name) {
    column <- frame$get_column(name)
    vector_of(if (reticulate::py_to_r(column$dtype$is_integer())) column$cast(pl$Float64) else column)
  })
  structure(setNames(columns, names), row.names = seq_len(reticulate::py_to_r(frame$height)), class = "data.frame")
}

vector_of <- function(column) {
  values <- reticulate::py_to_r(column$to_list())
  if (!is.list(values)) return(values)
  if (length(values) == 0) return(character())
  missing <- vapply(values, is.null, NA)
  if (all(missing)) return(rep(NA, length(values)))
  do.call(c, values[!missing])[ifelse(missing, NA, cumsum(!missing))]
}

#' Records of Python, a row for each, with these fields.
rows_of <- function(records, fields) {
  records <- reticulate::iterate(records, simplify = FALSE)
  columns <- lapply(fields, function(field) {
    values <- lapply(records, function(record) reticulate::py_get_attr(record, field))
    module("polars")$Series(field, values, strict = FALSE)
  })
  table_of(module("polars")$DataFrame(columns))
}
