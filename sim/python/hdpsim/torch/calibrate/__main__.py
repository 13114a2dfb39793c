"""`python3 -m hdpsim.torch.calibrate`, also under torchrun."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
