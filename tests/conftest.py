import os
import signal
import tempfile

# A runner in the background ignores Ctrl-C, and so would every process that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tables that tests design stay out of the user's own cache.
_cache = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = _cache.name
