"""The tests of the rules: pure functions, and states fed with random worlds."""
