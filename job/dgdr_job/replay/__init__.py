"""Discrete-event replay of a deployment under a workload.

`reference` is the specification, step by step; `kernel` computes the same in compiled code, equal in every nanosecond.
"""
