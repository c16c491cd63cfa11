"""Helpers that build ops: conversion of arguments, weak dtypes, constants, copies, validation."""
