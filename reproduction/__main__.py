"""`python -m reproduction` is the laboratory's command."""

from naysay.cli import main
from reproduction.command import app

main(app)
