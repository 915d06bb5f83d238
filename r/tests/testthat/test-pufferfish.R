reading <- list(state = "activity", subject = "id", time = "minute", max_gap = "1min")

release <- function(table, model, ...) {
  do.call(pf_release, c(list(table, model), reading, list(...)))
}

file_in <- function(name) {
  folder <- tempfile("pufferfish")
  dir.create(folder)
  file.path(folder, name)
}

test_that("levels are the states, and one that no row has stays a state", {
  skip_without_python()
  model <- fitted(accept = "smoothing")
  expect_equal(unlist(reticulate::py_to_r(model$python$theta$states)), c("rest", "active", "run"))
  expect_output(print(model), "rest")
  output <- file_in("release.json")
  made <- release(made_up(seed = 3), model, epsilon = 1, output = output)
  expect_equal(as.data.frame(made)$output, c("rest", "active", "run"))
})

test_that("a level that the model does not know is refused where a row has it, and nothing is written", {
  skip_without_python()
  model <- fitted(droplevels(made_up(seed = 2)))
  table <- made_up(seed = 3)
  expect_no_error(release(table, model, epsilon = 1, dry_run = TRUE))  # the level "run" is in no row
  table$activity[5] <- "run"
  output <- file_in("release.json")
  error <- error_of(release(table, model, epsilon = 1, output = output))
  expect_s3_class(error, c("DataError", "pufferfish_error"), exact = FALSE)
  expect_true(one_line(error))
  expect_match(conditionMessage(error), "run")
  expect_false(file.exists(output))
})

test_that("a missing state is an unobserved record, or refused where that is asked", {
  skip_without_python()
  model <- fitted(droplevels(made_up(seed = 2)))
  table <- droplevels(made_up(seed = 3))
  table$activity[7] <- NA
  made <- release(table, model, epsilon = 1, output = file_in("release.json"))
  expect_equal(reticulate::py_to_r(made$python$data$records), 1199L)
  error <- error_of(release(table, model, epsilon = 1, output = file_in("r.json"), missing = "refuse"))
  expect_s3_class(error, "DataError")
})

test_that("subjects may be whole numbers, text or factors, and are the same people", {
  skip_without_python()
  model <- fitted(droplevels(made_up(seed = 2)))
  table <- droplevels(made_up(seed = 3))
  scale <- function(id) {
    table$id <- id
    plan <- release(table, model, epsilon = 1, dry_run = TRUE)
    reticulate::py_to_r(plan$python$noise$scale)
  }
  whole <- scale(as.integer(table$id))
  expect_equal(scale(as.character(table$id)), whole)
  expect_equal(scale(factor(table$id, levels = 1:9)), whole)
  expect_equal(scale(table$id), whole)
})

test_that("groups by the hour are of the column's own time zone", {
  skip_without_python()
  table <- droplevels(made_up(1, 180, seed = 3))
  model <- fitted(droplevels(made_up(seed = 2)))
  hours <- function(zone) {
    attr(table$minute, "tzone") <- zone
    made <- suppressWarnings(  # half an hour is little: the noise hides most of it
      release(table, model, epsilon = 1, by = "hour(minute)", output = file_in("release.json"))
    )
    sort(unique(as.integer(as.data.frame(made)[["hour(minute)"]])))
  }
  expect_equal(hours("UTC"), 0:2)
  expect_equal(hours("Asia/Kolkata"), 5:8)
})

test_that("from public data to a release in a ledger that is verified", {
  skip_without_python()
  folder <- tempfile("pufferfish")
  dir.create(folder)
  file <- function(name) file.path(folder, name)
  model <- fitted(droplevels(made_up(seed = 2)), output = file("model.json"))
  table <- droplevels(made_up(seed = 3))

  compared <- pf_compare(model, epsilon = 1, table = table, subject = "id", time = "minute", max_gap = "1min",
                         mechanisms = c("propagation", "group-dp"))
  expect_s3_class(compared, "data.frame")
  expect_equal(sum(compared$recommended), 1)
  expect_equal(compared$mechanism[compared$recommended], "propagation")
  expect_true(min(compared$scale[compared$mechanism == "group-dp"]) > min(compared$scale))
  expect_output(print(compared), "recommended")
  expect_false(inherits(compared[1, ], "pf_table"))
  expect_equal(compared$scale, pf_compare(file("model.json"), epsilon = 1, length = rep(400, 3),
                                          mechanisms = c("propagation", "group-dp"))$scale)

  ledger <- pf_ledger(file("book.json"), 2, model, table, "activity", "id", "minute", "1min")
  made <- release(table, file("model.json"), epsilon = 1, ledger = ledger, output = file("release.json"))
  expect_equal(nrow(as.data.frame(pf_ledger(file("book.json")))), 1)
  expect_equal(sum(as.data.frame(made)$value), 1, tolerance = 0.2)
  expect_output(pf_show(file("release.json")), "not promised")
  expect_output(pf_show(made), "histogram")

  found <- pf_verify(file("release.json"), model = model, ledger = file("book.json"), table = table)
  expect_true(attr(found, "holds"))
  expect_true("table" %in% found$what[found$holds %in% TRUE])
  expect_false(attr(pf_verify(made, model = fitted(droplevels(made_up(seed = 9)))), "holds"))

  units <- pf_promises(file("release.json"))
  expect_equal(units$unit[1], "one record")
  expect_equal(units$epsilon, pf_promises(ledger)$epsilon)
  expect_equal(units$epsilon[1], pf_promises(model, epsilon = 1, length = rep(400, 3))$epsilon[1], tolerance = 1e-4)

  error <- error_of(release(table, model, epsilon = 1.5, ledger = ledger, output = file("second.json")))
  expect_s3_class(error, "BudgetExceeded")
  expect_true(one_line(error))
  expect_false(file.exists(file("second.json")))
  expect_equal(nrow(as.data.frame(ledger)), 1)
  release(table, model, ledger = ledger, up_to = 2, output = file("rest.json"))
  expect_equal(as.data.frame(ledger)$spent[2], 2, tolerance = 1e-3)
  expect_error(release(table, model, up_to = 2, output = file("more.json")), "give the ledger", class = "pufferfish_error")

  expect_error(release(table, model, epsilon = 1, output = file("release.json")), "exists", class = "pufferfish_error")
  expect_error(release(table, model, epsilon = 1), "give output", class = "pufferfish_error")
  expect_error(release(table, model, epsilon = 1, output = file("no/r.json")), "is no folder", class = "pufferfish_error")
})

test_that("the table that a model was fitted to is refused", {
  skip_without_python()
  table <- droplevels(made_up(seed = 2))
  error <- error_of(release(table, fitted(table), epsilon = 1, output = file_in("release.json")))
  expect_s3_class(error, "ReleaseRefused")
  expect_match(conditionMessage(error), "public")
})

test_that("warnings come before anything is spent, and stop a release where warnings are errors", {
  skip_without_python()
  model <- fitted(droplevels(made_up(seed = 2)))
  table <- droplevels(made_up(1, 12, seed = 4))
  output <- file_in("release.json")
  old <- options(warn = 2)
  on.exit(options(old))
  expect_error(release(table, model, epsilon = 0.5, output = output))
  expect_false(file.exists(output))
  options(warn = 1)
  expect_warning(release(table, model, epsilon = 0.5, output = output), class = "pufferfish_warning")
  expect_true(file.exists(output))
})

test_that("a check has a verdict, its reasons and what to do", {
  skip_without_python()
  model <- fitted(droplevels(made_up(seed = 2)))
  check <- pf_check(model, droplevels(made_up(seed = 5)), "activity", "id", "minute", "1min", public = TRUE)
  expect_true(attr(check, "verdict") %in% c("go on", "in doubt", "do not go on"))
  expect_equal(names(check), c("verdict", "reason"))
  expect_gt(nrow(check), 0)
  expect_s3_class(attr(check, "remedies"), "data.frame")
  for (public in c(FALSE, NA)) {
    error <- error_of(pf_check(model, made_up(seed = 5), "activity", "id", "minute", "1min", public = public))
    expect_match(conditionMessage(error), "for public data only")
    expect_true(one_line(error))
  }
})

test_that("kinds of stay, and a class that can be defended, are fitted", {
  skip_without_python()
  table <- droplevels(made_up(4, 2900, seed = 6))
  stays <- fitted(table, kind = "stays", kinds = 2)
  expect_match(paste(class(stays$python$theta$members[0]), collapse = " "), "StaysChain")
  defended <- fitted(table, kind = "defend", slower = 1.3)
  expect_gt(reticulate::py_len(defended$python$theta$members), 1)
})

test_that("a table of patients is released column by column", {
  skip_without_python()
  bif <- file_in("rain.bif")
  writeLines(c(
    "network rain {}",
    "variable rain { type discrete [ 2 ] { no, yes }; }",
    "variable wet { type discrete [ 2 ] { dry, wet }; }",
    "probability ( rain ) { table 0.8, 0.2; }",
    "probability ( wet | rain ) { (no) 0.9, 0.1; (yes) 0.05, 0.95; }"
  ), bif)
  set.seed(1)
  table <- data.frame(
    day = 1:500, rain = factor(sample(c("no", "yes"), 500, TRUE)), wet = factor(sample(c("dry", "wet"), 500, TRUE))
  )
  output <- file_in("release.json")
  made <- pf_release(table, bif, "marginals", 1, subject = "day", output = output)
  expect_equal(nrow(as.data.frame(made)), 4)
  both <- pf_release(table, bif, "joint:rain,wet", 1, output = file_in("both.json"))
  expect_equal(nrow(as.data.frame(both)), 4)
  expect_true(attr(pf_verify(output, table = table), "holds"))
})

test_that("errors of Python are errors of one line that name their kind", {
  skip_without_python()
  model <- fitted(droplevels(made_up(seed = 2)))
  table <- made_up(seed = 3)
  errors <- list(
    ParameterError = error_of(pf_compare(model, epsilon = -1, length = 100)),
    QueryError = error_of(pf_compare(model, "count:walk", epsilon = 1, length = 100)),
    DataError = error_of(pf_release(table, model, epsilon = 1, state = "activty", output = file_in("r.json"))),
    RecordError = error_of(pf_verify(file_in("nothing.json"))),
    TypeError = error_of(release(table, model, epsilon = 1, max_gab = "1min", output = file_in("r.json"))),
    AttributeError = error_of(release(table, model, epsilon = 1, mechanism = "LeakagePropagaton", dry_run = TRUE)),
    ModelError = error_of(fitted(made_up(1, 9)))  # smoothing would make up most of it
  )
  for (kind in names(errors)) {
    expect_s3_class(errors[[kind]], kind)
    expect_true(one_line(errors[[kind]]), info = kind)
  }
  expect_match(conditionMessage(errors$DataError), "Did you mean 'activity'")
  expect_s3_class(error_of(pf_compare(model, epsilon = 1)), "pufferfish_error")
  expect_match(conditionMessage(error_of(release(table, model, epsilon = NA, dry_run = TRUE))), "give epsilon as a number")
  expect_match(conditionMessage(error_of(release(table, model, dry_run = TRUE))), "give epsilon as a number")
  expect_s3_class(error_of(pf_ledger(file_in("b.json"), model = model)), "pufferfish_error")
  expect_s3_class(error_of(as.data.frame(model)), "pufferfish_error")
  expect_s3_class(error_of(pf_use_python("/usr/bin/python3")), "pufferfish_error")
})

test_that("what cannot be written after it was drawn is not lost", {
  skip_without_python()
  model <- fitted(droplevels(made_up(seed = 2)))
  made <- release(droplevels(made_up(seed = 3)), model, epsilon = 1, output = file_in("release.json"))
  error <- error_of(pufferfish:::write_release(made$python, file.path(file_in("x"), "release.json"), FALSE))
  expect_match(conditionMessage(error), "made and spent")
  expect_equal(as.data.frame(error$release), as.data.frame(made))
})

test_that("made-up tables are written and read", {
  skip_without_python()
  folder <- dirname(file_in("x"))
  expect_output(print(pf_example(folder)), "survey-2019.csv")
  expect_setequal(list.files(folder), c("survey-2019.csv", "steps.csv"))
  expect_error(pf_example(folder), class = "pufferfish_error")
  model <- fitted(file.path(folder, "survey-2019.csv"))
  expect_output(print(model), "survey-2019.csv")
})
