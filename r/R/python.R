# The way to Python: where it is found, and how its errors become conditions of R.

parts <- new.env(parent = emptyenv())

#' Return a module of Python; its results stay objects of Python until they are turned into vectors.
module <- function(name) {
  if (is.null(parts[[name]])) parts[[name]] <- reticulate::import(name, convert = FALSE)
  parts[[name]]
}

pufferfish <- function() {
  if (is.null(parts$pufferfish) && !pf_available()) {
    where <- if (reticulate::py_available()) reticulate::py_config()$python else "the Python that was found"
    stop_pufferfish(paste0(
      where, " has no package pufferfish: install it there (pip install and the wheel), or name another Python by ",
      "pf_use_python(\"/path/to/python\") or the variable RETICULATE_PYTHON, in a new session of R"
    ))
  }
  module("pufferfish")
}

#' A command of the program.
module_of_program <- function(name) {
  pufferfish()
  module(paste0("pufferfish.cli.", name))
}

pf_available <- function() {
  isTRUE(tryCatch(reticulate::py_module_available("pufferfish"), error = function(e) FALSE))
}

pf_use_python <- function(python) {
  if (reticulate::py_available()) {
    stop_pufferfish(paste0(
      "R uses ", reticulate::py_config()$python, " already, and a session has one Python: call pf_use_python() first ",
      "in a new session of R"
    ))
  }
  if (!file.exists(python)) {
    stop_pufferfish(paste0("there is no file ", python, ": give the path of a Python, such as .venv/bin/python"))
  }
  Sys.setenv(RETICULATE_PYTHON = python)
  reticulate::use_python(python, required = TRUE)
  pufferfish()
  invisible(python)
}

stop_pufferfish <- function(message, class = NULL) {
  stop(structure(
    class = c(class, "pufferfish_error", "error", "condition"),
    list(message = gsub("[\r\n]+", " ", trimws(message)), call = NULL)
  ))
}

#' Evaluate what asks Python: an error of Python becomes one of R, of one line, that has its class.
ask <- function(expression) {
  reticulate::py_clear_last_error()
  tryCatch(expression, error = function(error) {
    if (inherits(error, "pufferfish_error")) stop(error)
    raised <- reticulate::py_last_error()
    if (is.null(raised)) stop(error)
    stop_pufferfish(raised$value, raised$type)
  })
}

#' Give what a release warns of to R's warnings.
warn_of <- function(lines) {
  for (line in text_of(lines)) {
    warning(structure(
      class = c("pufferfish_warning", "warning", "condition"),
      list(message = gsub("[\r\n]+", " ", line), call = NULL)
    ))
  }
}

text_of <- function(words) as.character(unlist(reticulate::py_to_r(module("builtins")$list(words))))

printed <- function(object) enc2utf8(as.character(reticulate::py_to_r(module("builtins")$str(object))))

is_python <- function(x) inherits(x, "python.builtin.object")
