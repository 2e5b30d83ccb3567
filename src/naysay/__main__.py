"""`python -m naysay` is the command `naysay`."""

from naysay.cli import main

main()
