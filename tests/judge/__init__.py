"""How well Curtsy reads, beside other libraries. It shares modules with the tests in tests/golden and tests/support."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("golden", "support")]
