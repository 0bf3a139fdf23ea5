"""Bounds that many fields share. Every string, list and map of the contract has one, so that objects stay small."""

from typing import Annotated

from pydantic import Field

INT32_MAX = 2**31 - 1
MAX_GPUS = 65_536
MAX_NUMBER = 1e15
"""Largest number of any field: below it every integral float is exact, so canonical JSON never fails on one."""
MAX_OPEN_BYTES = 65_536
"""Largest free-form object (``search.parameters``, ``overrides.*``, a candidate's spec) as canonical JSON: 64 KiB."""

Name = Annotated[str, Field(min_length=1, max_length=253)]
"""Name of a Kubernetes object, a key of one, or a SKU."""
Label = Annotated[str, Field(min_length=1, max_length=63)]
Line = Annotated[str, Field(max_length=1024)]
"""A message. Writers cut it to 1,024 bytes, see ``conditions.message``."""
Path = Annotated[str, Field(max_length=1024)]
Digits32 = Annotated[int, Field(ge=1, le=INT32_MAX)]
"""A count or a number of tokens, at least one."""
Count = Annotated[int, Field(ge=0, le=INT32_MAX)]
LargeCount = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""A count of points: pools grow with the square of the budget, far beyond 32 bits. A double still holds it exactly."""
Gpus = Annotated[int, Field(ge=1, le=MAX_GPUS)]
Positive = Annotated[float, Field(gt=0, le=MAX_NUMBER)]
Price = Annotated[float, Field(gt=1e-9, le=MAX_NUMBER)]
"""Of one GPU hour. What is divided by a price stays a number: no request serves that many tokens that it overflows.

Exclusive: the API server compares a whole number with the whole part of a bound, and would take 0 as at least 1e-9.
"""
NotNegative = Annotated[float, Field(ge=0, le=MAX_NUMBER)]
Version = Annotated[str, Field(min_length=1, max_length=63)]
Time = Annotated[
    str, Field(max_length=35, pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z$")
]
"""UTC, RFC 3339."""
