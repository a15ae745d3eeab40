# SPDX-License-Identifier: Apache-2.0
"""Has one process of the AWS CLI run many command lines.

Python imports this module before the program that it was started with, which is the AWS CLI. What the CLI loads for any command line is loaded once.
Each request on standard input is then a process of its own, which goes on into the CLI's own program with the arguments and environment of the
request. What it printed and its exit status are the answer on standard output.
"""

import gc
import json
import os
import sys
import tempfile


def serve():
    """Returns in the process of a request alone."""
    before = dict(os.environ)
    from awscli.clidriver import create_clidriver

    create_clidriver()
    own = dict(os.environ.items() - before.items())  # the CLI tells itself by a variable where its data is
    gc.freeze()  # else the first collection of each process would copy all of it
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    print(json.dumps({"Ready": True}), file=answers, flush=True)
    for line in requests:
        request = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as talk:
            pid = os.fork()
            if pid == 0:
                become(request, own, out.fileno(), talk.fileno())
                return
            _, status = os.waitpid(pid, 0)
            answer = {"Status": os.waitstatus_to_exitcode(status), "Out": read(out), "Talk": read(talk)}
        print(json.dumps(answer), file=answers, flush=True)
    os._exit(0)


def become(request, own, out, talk):
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(out, 1)
    os.dup2(talk, 2)
    os.environ.clear()
    os.environ.update(v.split("=", 1) for v in request["Environment"])
    os.environ.update(own)
    sys.argv[1:] = request["Arguments"]


def read(file):
    file.seek(0)
    return file.read().decode(errors="replace")


try:
    serve()
except ImportError:
    pass  # this is not the Python of an AWS CLI: what was started says something else than that it is ready
