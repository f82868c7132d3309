"""File systems of the test's own, and runs as another user."""
import os
import shutil
import subprocess

from support import BINARY, USER_ID


def run(*command, **options):
    subprocess.run(command, check=True, **options)


def mount(case, *arguments):
    """Mounts; the last argument is where. Undone at the end of the test."""
    run("mount", *arguments)
    case.addCleanup(run, "umount", arguments[-1])


def mount_tmpfs(case, name, options):
    """A tmpfs in the test's directory, as "size=8m"."""
    where = case.path(name)
    os.makedirs(where, exist_ok=True)
    mount(case, "-t", "tmpfs", "-o", options, "fgsync-test", where)
    return where


def mount_ext4(case, name, size):
    """An ext4 on a loop device, its file on disk if the test's directory stands in memory."""
    where, image = case.path(name), case.path(name + ".image")
    os.mkdir(where)
    with open(image, "wb") as file:
        file.truncate(size)
    run("mkfs.ext4", "-q", "-b", "4096", "-O", "^has_journal", "-m", "0", image)
    mount(case, "-o", "loop", image, where)
    os.rmdir(f"{where}/lost+found")
    return where


def become(user):
    """The command before a program that runs it as `user`, without capabilities, as the kernel does it when root
    becomes another user."""
    return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all",
            "--bounding-set=-all", "--no-new-privs")


AS_USER = become(USER_ID)


def let_users_run(case, user=USER_ID):
    """Puts the program, and the ssh key if there is one, where `user` may use them; returns the program. The build
    directory may be closed to others."""
    program = case.path("fgsync-for-users")
    shutil.copy(BINARY, program)
    os.chmod(program, 0o755)
    os.chown(case.home, user, user)
    if os.path.exists(case.path("user_key")):
        shutil.copy(case.path("user_key"), case.path("key_of_user"))
        os.chmod(case.path("key_of_user"), 0o600)
        os.chown(case.path("key_of_user"), user, user)
    return program
