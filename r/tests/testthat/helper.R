skip_without_python <- function() skip_if_not(pf_available(), "Python with the package pufferfish")

python <- function(name) reticulate::import(name, convert = FALSE)

#' What a polars column holds, as text of Python.
held <- function(frame, name) {
  reticulate::py_str(frame$get_column(name)$cast(python("polars")$String)$to_list())
}

type_of <- function(frame, name) reticulate::py_str(frame$schema[name])

#' A chain of two states for each of some subjects, minute by minute.
made_up <- function(subjects = 3, minutes = 400, seed = 1) {
  set.seed(seed)
  one <- function(id) {
    state <- Reduce(function(now, u) if (u < 0.1) 3 - now else now, runif(minutes - 1), 1, accumulate = TRUE)
    data.frame(
      id = id, minute = as.POSIXct("2024-05-06", tz = "UTC") + 60 * (seq_len(minutes) - 1),
      activity = factor(c("rest", "active")[state], levels = c("rest", "active", "run"))
    )
  }
  do.call(rbind, lapply(seq_len(subjects), one))
}

fitted <- function(table = made_up(seed = 2), ...) pf_fit(table, "activity", "id", "minute", "1min", ...)

error_of <- function(expression) tryCatch(expression, pufferfish_error = function(error) error)

one_line <- function(error) !grepl("\n", conditionMessage(error)) && nchar(conditionMessage(error)) > 20
