"""``python -m dgdr_operator`` is the program."""

from dgdr_operator.main import main

main()
