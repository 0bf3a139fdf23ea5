"""The replay in compiled code: typed arrays in, arrays out, equal to the reference in every nanosecond."""
