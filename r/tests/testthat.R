library(testthat)
library(pufferfish)

test_check("pufferfish")
