"""The compiler under random specs, valid ones and hostile ones. See docs/verification.md, "Fuzzing"."""
