# The eight functions. Each hands a table and some words to Python, which does the work, and hands back what came out.

pf_fit <- function(table, state, subject = NULL, time = NULL, max_gap = NULL, ...,
                   kind = c("chain", "stays", "defend"), smoothing = 1, initial = "stationary", kinds = NULL,
                   cover = NULL, slower = NULL, drop_slowest = FALSE, people = 1, accept = character(),
                   output = NULL) {
  kind <- match.arg(kind)
  ask({
    pf <- pufferfish()
    reading <- reading_of(state = state, subject = subject, time = time, max_gap = max_gap, ...)
    if (is.data.frame(table) && is.factor(table[[state]]) && is.null(reading$states)) {
      reading$states <- as.list(levels(table[[state]]))
    }
    frame <- frame_of(table)
    data <- if (kind == "defend") daily(frame, reading) else {
      do.call(pf$read_sequences, c(list(frame), reading, if (kind == "stays") list(daily = TRUE)))
    }
    theta <- if (kind == "defend") {
      pf$fit_defend(data, cover = cover, slower = slower, drop_slowest = drop_slowest, people = whole(people))$theta
    } else if (kind == "stays") {
      pf$fit_stays(data, kinds = whole(kinds), initial = initial, smoothing = smoothing)
    } else {
      too_much <- text_of(list(pf$made_up(data, smoothing = smoothing, initial = initial)$too_much))
      if (nzchar(too_much) && !"smoothing" %in% accept) {
        stop_pufferfish(paste0(
          "smoothing would make up too much: ", too_much, "; take more data, fewer states, or a smaller smoothing; ",
          "if you mean it, give accept = \"smoothing\""
        ), "ModelError")
      }
      pf$fit_chain(data, initial = initial, smoothing = smoothing)
    }
    model <- pf$Model$fitted(theta, data)
    if (!is.null(output)) pf$write_model(model, path.expand(output))
    warn_of(data$warnings)
    object_of(model, "pf_model")
  })
}

pf_check <- function(model, table, state = NULL, subject = NULL, time = NULL, max_gap = NULL, ..., public = FALSE,
                     epsilon = 1) {
  ask({
    reading <- reading_of(subject = subject, time = time, max_gap = max_gap, ...)
    arguments <- list(model_of(model), frame_of(table))
    if (!is.null(state)) arguments <- c(arguments, list(state))
    check <- do.call(pufferfish()$check_model, c(arguments, list(public = isTRUE(public), epsilon = epsilon), reading))
    verdict <- check$verdict
    word <- text_of(list(verdict$word))
    reasons <- data.frame(verdict = word, reason = text_of(verdict$reasons))
    table_with(reasons, check, verdict = word, remedies = rows_of(verdict$remedies, c("kind", "command")))
  })
}

pf_compare <- function(model, query = "histogram", epsilon = NULL, length = NULL, table = NULL, subject = NULL,
                       time = NULL, max_gap = NULL, ..., accuracy = NULL, alpha = NULL, noise = "best",
                       mechanisms = NULL, protect = NULL, within = NULL) {
  ask({
    model <- model_of(model)
    if (is.null(length)) length <- length_of(model, table, subject, time, max_gap, ...)
    comparison <- pufferfish()$compare(
      model, query_of(query, model), epsilon, whole(length), accuracy = accuracy, alpha = alpha, noise = noise,
      mechanisms = if (!is.null(mechanisms)) as.list(mechanisms), protect = whole(protect), within = within
    )
    table_with(table_of(comparison$to_frame()), comparison)
  })
}

pf_promises <- function(x, query = "histogram", epsilon = NULL, length = NULL, ..., mechanism = "LeakagePropagation",
                        noise = NULL, protect = NULL, within = NULL) {
  ask({
    promises <- if (inherits(x, "pf_release") || is_record(x)) {
      release_of(x)$promises
    } else if (inherits(x, "pf_ledger")) {
      x$python$promises()
    } else {
      model <- model_of(x)
      if (is.null(length)) length <- length_of(model, ...)
      noise <- calibrated(model, query_of(query, model), epsilon, whole(length), mechanism, noise, protect, within)
      noise$promises(model$step)
    }
    rows_of(promises, c("unit", "steps", "near", "epsilon", "holds"))
  })
}

pf_release <- function(table, model, query = "histogram", epsilon = NULL, state = NULL, subject = NULL, time = NULL,
                       max_gap = NULL, ..., mechanism = "LeakagePropagation", noise = NULL, accuracy = NULL,
                       protect = NULL, within = NULL, valid = FALSE, ledger = NULL, up_to = NULL,
                       accept = character(), output = NULL, overwrite = FALSE, dry_run = FALSE) {
  ask({
    if (!dry_run) check_output(output, overwrite)
    pf <- pufferfish()
    model <- model_of(model)
    query <- query_of(query, model)
    data <- read_under(table, model, query, state, subject, time, max_gap, ...)
    ledger <- ledger_of(ledger)
    calibration <- if (is.null(up_to)) {
      calibrated(model, query, epsilon, data$length, mechanism, noise, protect, within, accuracy)
    } else {
      calibrated_up_to(up_to, ledger, query, data, noise, list(epsilon, accuracy, protect, within))
    }
    options <- list(
      data, query, calibration,
      postprocess = if (valid) "valid", ledger = ledger, accept = as.list(accept)
    )
    plan <- quietly(do.call(pf$plan, options))
    warn_of(plan$warnings)  # before anything is spent: with options(warn = 2) nothing is
    if (dry_run) object_of(plan, "pf_plan") else write_release(quietly(do.call(pf$release, options)), output, overwrite)
  })
}

check_output <- function(output, overwrite) {
  if (is.null(output)) {
    stop_pufferfish("give output, the file of the release, such as \"release.json\": readers check the promise by it")
  }
  if (file.exists(output) && !overwrite) {
    stop_pufferfish(paste0(output, " exists: give another name, or overwrite = TRUE"))
  }
  if (file.access(dirname(path.expand(output)), 2) != 0) {
    stop_pufferfish(paste0(output, " cannot be written: ", dirname(output), " is no folder, or you may not write there"))
  }
}

#' Write what was drawn, and spent: if that fails it is not lost.
write_release <- function(release, output, overwrite) {
  made <- object_of(release, "pf_release")
  tryCatch(ask(release$to_json(path.expand(output), overwrite = overwrite)), error = function(error) {
    error$message <- paste0(conditionMessage(error), "; the release is made and spent: this error has it, as $release")
    error$release <- made
    stop(error)
  })
  made
}

pf_ledger <- function(path, budget = NULL, model = NULL, table = NULL, state = NULL, subject = NULL, time = NULL,
                      max_gap = NULL, ..., mechanism = "LeakagePropagation", protect = NULL, within = NULL) {
  ask({
    pf <- pufferfish()
    path <- path.expand(path)
    if (is.null(budget)) {
      if (!is.null(model) || !is.null(table)) {
        stop_pufferfish("a new ledger needs a budget, the epsilon of all its releases; without one a path alone is given")
      }
      return(object_of(pf$Ledger$open(path), "pf_ledger"))
    }
    model <- model_of(model)
    data <- read_under(table, model, NULL, state, subject, time, max_gap, ...)
    ledger <- pf$Ledger(bound_of(model, data$length, mechanism, protect, within), budget, base = data)
    ledger$save(path)
    object_of(ledger, "pf_ledger")
  })
}

pf_show <- function(x) {
  if (inherits(x, "pf_object") || inherits(x, "pf_table")) return(print(x))
  ask(cat(reticulate::py_capture_output(module_of_program("show")$show_command$callback(path.expand(x)))))
  invisible(x)
}

pf_verify <- function(release, model = NULL, ledger = NULL, table = NULL, certificate = NULL) {
  ask({
    found <- pufferfish()$verify(
      if (inherits(release, "pf_release")) release$python else path.expand(release),
      model = if (!is.null(model)) model_of(model), ledger = ledger_of(ledger),
      table = if (!is.null(table)) frame_of(table), certificate = certificate
    )
    table_with(rows_of(found$findings, c("what", "holds", "says")), found, holds = reticulate::py_to_r(found$holds))
  })
}

pf_example <- function(folder = ".", tables = c("steps", "week", "power")) {
  tables <- match.arg(tables)
  example <- module_of_program("example")$example_command
  ask(cat(reticulate::py_capture_output(example$callback(path.expand(folder), tables == "week", tables == "power"))))
  invisible(folder)
}

# -- What they share ------------------------------------------------------------------------------------------------

#' Options of read_sequences; one that nobody gave is left out.
reading_of <- function(...) {
  given <- Filter(Negate(is.null), list(...))
  lapply(given, function(x) if (is.numeric(x)) whole(x) else if (length(x) > 1) as.list(x) else x)
}

#' Numbers that are whole, as whole numbers of Python.
whole <- function(x) {
  if (!is.numeric(x)) return(x)
  small <- all(is.finite(x) & x == round(x) & abs(x) < 2^31)
  if (length(x) > 1) as.list(if (small) as.integer(x) else x) else if (small) as.integer(x) else x
}

#' Read public data day by day, and by the hour where their times say it.
daily <- function(frame, reading) {
  read <- function(...) do.call(pufferfish()$read_sequences, c(list(frame), reading, list(daily = TRUE, ...)))
  tryCatch(ask(read(clock = "hour")), pufferfish_error = function(error) read())
}

#' Read a private table as its model says.
read_under <- function(table, model, query, state, subject, time, max_gap, ...) {
  pf <- pufferfish()
  if (is.null(table)) stop_pufferfish("give the table whose records are to be protected")
  frame <- frame_of(table)
  if (reticulate::py_len(model$theta$networks) > 0) {
    together <- !is.null(query) && reticulate::py_to_r(module("builtins")$isinstance(query, pf$Joint))
    reading <- c(reading_of(subject = subject, ...), if (together) list(joint = query$records))
    return(do.call(pf$read_rows, c(list(frame, model), reading)))
  }
  if (is.null(state)) stop_pufferfish("give state: the name of the column of states")
  reading <- reading_of(state = state, subject = subject, time = time, max_gap = max_gap, ...)
  reading$states <- model$theta$states
  if (is.null(reading$bins)) reading$bins <- model$bins
  do.call(pf$read_sequences, c(list(frame), reading))
}

#' The lengths of chains: of a table only the public columns are looked at.
length_of <- function(model, table = NULL, subject = NULL, time = NULL, max_gap = NULL, ...) {
  if (is.null(table)) stop_pufferfish("give length, the number of records of each series, or the table to take it from")
  if (reticulate::py_len(model$theta$networks) > 0) return(if (is.data.frame(table)) nrow(table))
  if (is.data.frame(table) && all(c(subject, time) %in% names(table))) {
    public <- as.data.frame(table)[c(subject, time)]
    table <- if (length(public) > 0) public else data.frame(row = seq_len(nrow(table)))
  }
  pufferfish()$read_lengths(frame_of(table), subject = subject, time = time, max_gap = whole(max_gap), ...)$length
}

bound_of <- function(model, length, mechanism, protect, within) {
  hidden <- Filter(Negate(is.null), list(protect = whole(protect), within = within))
  reticulate::py_get_attr(pufferfish(), mechanism)  # its error has the word that was meant
  do.call(pufferfish()[[mechanism]], c(list(model, length), hidden))
}

calibrated <- function(model, query, epsilon, length, mechanism, noise, protect, within, accuracy = NULL) {
  if (is.null(c(epsilon, accuracy)) || anyNA(c(epsilon, accuracy))) {  # NA would become True in Python
    stop_pufferfish("give epsilon as a number, or accuracy, the allowed error; with a ledger also up_to is possible")
  }
  bound <- bound_of(model, length, mechanism, protect, within)
  if (is.null(noise)) noise <- if (reticulate::py_to_r(bound$shapes(query))) "best" else "equal"
  bound$calibrate(query, epsilon, accuracy = accuracy, noise = noise)
}

#' The noise with which a ledger has spent so much in all.
calibrated_up_to <- function(up_to, ledger, query, data, noise, others) {
  if (is.null(ledger)) stop_pufferfish("up_to is what a ledger may have spent in all: give the ledger")
  if (!all(vapply(others, is.null, NA))) {
    stop_pufferfish("up_to takes the noise that the ledger's budget leaves: leave out epsilon, accuracy, protect and within")
  }
  if (is.null(noise)) noise <- if (reticulate::py_to_r(ledger$bound$shapes(query))) "best" else "equal"
  ledger$calibrate(query, up_to = up_to, data = data, noise = noise)
}

query_of <- function(query, model) {
  if (is_python(query)) return(query)
  pufferfish()$query(query, model)
}

model_of <- function(model) {
  if (inherits(model, "pf_model")) return(model$python)
  if (is_python(model) && reticulate::py_has_attr(model, "theta")) return(model)
  if (!is.character(model)) stop_pufferfish("give the model: what pf_fit() returned, or the path of a model file")
  pufferfish()$read_model(path.expand(model))
}

ledger_of <- function(ledger) {
  if (is.character(ledger)) pf_ledger(ledger)$python else ledger$python
}

#' Whether a path is that of a release, which says so in its first line.
is_record <- function(x) {
  is.character(x) && file.exists(x) && any(grepl('"format": *"pufferfish-release"', readLines(x, 3, warn = FALSE)))
}

release_of <- function(x) if (inherits(x, "pf_release")) x$python else pufferfish()$Release$from_json(path.expand(x))

#' Evaluate without Python's own warnings: R has given them.
quietly <- function(expression) {
  ignoring <- module("warnings")$catch_warnings()
  ignoring$`__enter__`()
  on.exit(ignoring$`__exit__`(NULL, NULL, NULL))
  module("warnings")$simplefilter("ignore")
  expression
}

# -- What comes back ------------------------------------------------------------------------------------------------

#' An object that Python keeps; `$python` is that object.
object_of <- function(python, class) structure(list(python = python), class = c(class, "pf_object"))

print.pf_object <- function(x, ...) {
  cat(printed(x$python), "\n", sep = "")
  invisible(x)
}

as.data.frame.pf_object <- function(x, row.names = NULL, optional = FALSE, ...) {
  if (!reticulate::py_has_attr(x$python, "to_frame")) {
    stop_pufferfish("this is no table: print() shows what it holds")
  }
  ask(table_of(x$python$to_frame()))
}

#' A data.frame that prints as Python prints what it came from.
table_with <- function(table, python, ...) {
  structure(table, ..., text = printed(python), class = c("pf_table", "data.frame"))
}

print.pf_table <- function(x, ...) {
  cat(attr(x, "text"), "\n", sep = "")
  invisible(x)
}

as.data.frame.pf_table <- function(x, row.names = NULL, optional = FALSE, ...) {
  attr(x, "text") <- NULL
  class(x) <- "data.frame"
  x
}

#' What is taken out of it is a plain data.frame.
`[.pf_table` <- function(x, ...) as.data.frame(x)[...]
