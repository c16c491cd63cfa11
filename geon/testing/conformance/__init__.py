"""The conformance tests that every transformer passes."""
