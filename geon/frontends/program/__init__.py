"""Networks as programs: operators read and write variables in scopes."""
