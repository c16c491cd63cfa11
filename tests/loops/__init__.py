"""Tests of loop trees."""
