"""Runs a program in a terminal of a given width; prints each write as a line of JSON with its time in milliseconds."""

import codecs
import fcntl
import json
import os
import pty
import struct
import sys
import termios
import time

columns = int(sys.argv[1])
ready, go = os.pipe()
child, terminal = pty.fork()
if child == 0:
    os.close(go)
    os.read(ready, 1)  # until the terminal has its width
    os.close(ready)
    os.execvp(sys.argv[2], sys.argv[2:])
os.close(ready)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
os.close(go)
decode = codecs.getincrementaldecoder("utf-8")().decode
started = time.monotonic()
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:  # EIO: the program has ended
        break
    if not piece:
        break
    at = round((time.monotonic() - started) * 1000)
    print(json.dumps({"at": at, "text": decode(piece)}), flush=True)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
