"""What is known of models, hardware and performance data, and how it is remembered.

Importing this package never imports the performance model: only `dgdr_job.catalog.aic` does, and only when something
is not in the disk cache.
"""
