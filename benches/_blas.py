"""How BLAS behaves while benches run; imported before numpy, which reads it once.

After its turn OpenBLAS lets its threads run idle for a while, and they take the core that the next
route's second thread needs: with this they sleep at once.
"""

import os

os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
