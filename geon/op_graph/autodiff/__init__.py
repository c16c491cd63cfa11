"""Derivatives that users ask for: `deriv`, Jacobians, custom rules, rematerialisation."""
