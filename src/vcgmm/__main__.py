"""`python -m vcgmm` is the command `vcgmm`."""

from vcgmm.cli import main

if __name__ == "__main__":
    main()
