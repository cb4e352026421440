# SPDX-License-Identifier: MIT
"""The ways in which people create job files and copy them to submit/. Either a command launches exactly one job,
from the whole file. Or it launches nothing, NAME.error has the reason, and the command fails if it checks close().

In the commands, $F is the file to write, in the working directory submit/. On another file system are $DOC, the
document as YAML, $JSON, the same as JSON (the command may remove both), and $T, an empty directory. $URL/doc is $DOC
through HTTP. $SSH is a configuration file of ssh for the host "here". $GO and $NPM are directories of programs
(programs.py), and $JAVA is the program ways/Write.java."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import socket
import threading

import harness
import programs
import pytest
import submitting
import test_submit_tools
import yaml
from submitting import BAD


# The document is so large that some writers need several writes. Its YAML is still valid if it breaks off at the end of
# a line.
GOOD = "name: app\nroles:\n- name: main\n  image: none\n  entrypoint: /bin/true\nmetadata:\n" + "".join(
    f"  line-{i:04}: {'x' * 60}\n" for i in range(1000))

# A template of cookiecutter, in $T/c.
TEMPLATE = r"""mkdir -p $T/c/{{cookiecutter.dir}} && echo '{"dir": "job", "who": "app"}' > $T/c/cookiecutter.json &&
    sed 's/: app/: {{cookiecutter.who}}/' $DOC > $T/c/{{cookiecutter.dir}}/$F"""

# Commands that fail if nothing was launched.
REPORT = {
    **test_submit_tools.REPORT,
    "cp -a": "cp -a $DOC $F",
    "cp -b": "touch $F; cp -b $DOC $F; s=$?; rm $F~; exit $s",
    "cp -u": "cp -u $DOC $F",
    "cp --remove-destination": "touch $F; cp --remove-destination $DOC $F",
    "cp of a name and a directory": "cp $DOC $T/$F && cp -rT $T .",
    "install -D -b": "install -D -b $DOC $F",
    "ln is refused, cp follows": "ln $DOC $F 2> /dev/null || ln -s $DOC $F 2> /dev/null || cp $DOC $F",
    "cat of parts": "split -n 3 $DOC $T/part && cat $T/part* > $F",
    "cat >|": "set -C; touch $F; cat $DOC >| $F",
    "zsh": "zsh -fc 'cat $DOC >! $F'",
    "busybox dd": "busybox dd if=$DOC of=$F bs=1000 2> /dev/null",
    "dd in pieces": "dd if=$DOC of=$F bs=700 status=none",
    "dd conv=fsync": "dd if=$DOC of=$F bs=4k conv=fsync,notrunc oflag=append status=none",
    "tee -a": "tee -a $F < $DOC > /dev/null",
    "sponge": "sed p -n $DOC | sponge $F",
    "split": "split -l 10000 -a 1 --additional-suffix=.yaml $DOC ${F%a.yaml}",
    "head": "head -n 10000 $DOC > $F",
    "sed w": "sed -n \"w $F\" $DOC",
    "iconv -o": "iconv -f UTF-8 -t UTF-8 -o $T/x $DOC && iconv -f UTF-8 -t UTF-8 $T/x > $F",
    "base64": "base64 $DOC | base64 -d > $F",
    "gunzip": "gzip < $DOC > $F.gz && gunzip $F.gz",
    "xz": "xz < $DOC | xz -d > $F",
    "zstd -o": "zstd -q $DOC -o $T/x && zstd -q -d $T/x -o $F",
    "envsubst": "sed 's/: app/: ${WHO}/' $DOC > $T/x; WHO=app envsubst '$WHO' < $T/x > $F",
    "m4": "sed 's/: app/: WHO/' $DOC > $T/x; m4 -DWHO=app $T/x > $F",
    "jq": "jq . $JSON > $F",
    "jq | sponge": "jq -c . $JSON | sponge $F",
    "jsonnet -o": "jsonnet -o $F $JSON",
    "patch -o": "sed s/none/some/ $DOC > $T/old; diff -u $T/old $DOC | patch -s -o $F $T/old",
    "here-document": "cat > $F <<END\n$(cat $DOC)\nEND",
    "here-string": "cat > $F <<< \"$(cat $DOC)\"",
    "zsh, no command": "zsh -fc '< $DOC > $F'",
    "tcsh": "tcsh -fc 'cat $DOC > $F'",
    "parallel >": "parallel --will-cite 'cat {} > $F' ::: $DOC",
    "ex": "ex -s -u NONE -c 'read $DOC' -c 'wq' $F < /dev/null",
    "xargs": "echo $DOC | xargs -P 2 -I{} cp {} $F",
    "find -exec": "find $DOC -exec cp {} $F ';' -exec test -s $F ';' && test ! -e $F.error",
    "parallel": "parallel --will-cite cp $DOC ::: $F",
    "cron": "env -i PATH=/usr/bin:/bin HOME=/ /bin/sh -c \"cd $PWD && cp $DOC $F\"",
    "nohup": "nohup cp $DOC $F > /dev/null 2>&1 & wait $!",
    "script": "script -qec 'cp $DOC $F' /dev/null > $T/typescript",
    "flock": "flock $T cp $DOC $F",
    "timeout cp": "timeout 60 cp $DOC $F",
    "curl -o": "curl -fsS -o $F $URL/doc",
    "wget -O": "wget -q -O $F $URL/doc",
    "http -o": "http -q --ignore-stdin --check-status --download -o $F $URL/doc",
    "busybox wget": "busybox wget -q -O $F $URL/doc",
    "rsync -a": "mkdir $T/d; cp $DOC $T/d/$F; rsync -rlt $T/d/ .",
    "rsync --append": "rsync --append $DOC $F",
    "rsync --temp-dir": "rsync --temp-dir=$T $DOC $F",
    "rclone copyto": "rclone copyto --config=$T/conf $DOC $F",
    "rclone copy": "mkdir $T/d; cp $DOC $T/d/$F; rclone copy --config=$T/conf $T/d .",
    "rclone rcat": "rclone rcat --config=$T/conf $F < $DOC",
    "git show": """git init -q $T/r && cp $DOC $T/r/f && git -C $T/r add f && git -C $T/r show :f > $F""",
    "tar": "cp $DOC $T/$F && tar -C $T -cf $T/x.tar $F && tar -xf $T/x.tar",
    "tar --overwrite": "touch $F; cp $DOC $T/$F && tar -C $T -c $F | tar -x --overwrite",
    "cpio": "cp $DOC $T/$F && (cd $T && echo $F | cpio -o --quiet) | cpio -i --quiet",
    "7z": "cp $DOC $T/$F && (cd $T && 7z a x.7z $F) && 7z e $T/x.7z",
    "ansible copy": "ansible localhost -m copy -a \"src=$DOC dest=$PWD/$F\"",
    "ansible template": "ansible localhost -m template -a \"src=$DOC dest=$PWD/$F\"",
    "cookiecutter, cp": f"{TEMPLATE} && cookiecutter --no-input -o $T/out $T/c && cp $T/out/job/$F .",
    "gio copy, as Nautilus does": "gio copy $DOC $F",
    "gio save, as gedit does": "gio save $F < $DOC",
    "scp": "scp -qF $SSH $DOC here:$PWD/$F",
    "scp -O": "scp -OqF $SSH $DOC here:$PWD/$F",
    "ssh, remote >": "ssh -F $SSH here \"cat > $PWD/$F\" < $DOC",
    "sftp put": "echo put $DOC $F | sftp -qF $SSH -b - here:$PWD/",
    "sftp put, rename": r"printf 'put %s %s.part\nrename %s.part %s\n' $DOC $F $F $F | sftp -qF $SSH -b - here:$PWD/",
    "sftp put, old rename": r"printf 'put %s %s.part\nrename -l %s.part %s\n' $DOC $F $F $F |"
                            " sftp -qF $SSH -b - here:$PWD/",
    "rsync over ssh": "rsync -e \"ssh -F $SSH\" $DOC here:$PWD/$F",
    "python with": "python3 -c 'import sys, shutil\nwith open(sys.argv[1], \"w\") as f:\n"
                   "    shutil.copyfileobj(open(sys.argv[2]), f)' $F $DOC",
    "python shutil.copy": "python3 -c 'import sys, shutil; shutil.copy(*sys.argv[1:])' $DOC $F",
    "python shutil.copy2": "python3 -c 'import sys, shutil; shutil.copy2(*sys.argv[1:])' $DOC $F",
    "python shutil.move": "python3 -c 'import sys, shutil; shutil.move(*sys.argv[1:])' $DOC $F",
    "python pathlib": """python3 -c 'import sys, pathlib as p
p.Path(sys.argv[2]).write_text(p.Path(sys.argv[1]).read_text())' $DOC $F""",
    "python json.dump": """python3 -c 'import sys, json
with open(sys.argv[2], "w") as f: json.dump(json.load(open(sys.argv[1])), f, indent=2)' $JSON $F""",
    "python yaml.dump": """python3 -c 'import sys, yaml
with open(sys.argv[2], "w") as f: yaml.safe_dump(yaml.safe_load(open(sys.argv[1])), f)' $DOC $F""",
    "python NamedTemporaryFile": """python3 -c 'import os, sys, tempfile
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f: f.write(open(sys.argv[1]).read())
os.replace(f.name, sys.argv[2])' $DOC $F""",
    "python threads": """python3 -c 'import os, threading
d = open("'$DOC'", "rb").read()
fd = os.open("'$F'", os.O_WRONLY | os.O_CREAT, 0o644)
def part(i):
    os.pwrite(fd, d[i:i + len(d) // 4 + 1], i)
all = [threading.Thread(target=part, args=(i,)) for i in range(0, len(d), len(d) // 4 + 1)]
[t.start() for t in all]; [t.join() for t in all]
closer = threading.Thread(target=lambda: codes.append(os.close(fd)))
codes = []; closer.start(); closer.join()
raise SystemExit(0 if codes else 1)'""",
    "Jupyter !cp": "printf '!cp $DOC $F\\nassert not _exit_code\\n' > $T/x.ipy; ipython3 --quick $T/x.ipy",
    "Jupyter %%writefile": r"""
        printf 'get_ipython().run_cell_magic("writefile", "%s", open("%s").read())\n' $F $DOC > $T/x.ipy
        ipython3 --quick $T/x.ipy && test ! -e $F.error""",
    "Go os.WriteFile": "$GO/write",
    "Java Files.write": "java $JAVA write",
    "Java Files.copy": "java $JAVA copy",
    "Java FileWriter": "java $JAVA writer",
    "node writeFileSync": "node -e 'fs.writeFileSync(process.env.F, fs.readFileSync(process.env.DOC))'",
    "node copyFileSync": "node -e 'fs.copyFileSync(process.env.DOC, process.env.F)'",
    "node promises": "node -e 'fs.promises.writeFile(process.env.F, fs.readFileSync(process.env.DOC))'",
    "node stream": "node -e 'fs.createReadStream(process.env.DOC).pipe(fs.createWriteStream(process.env.F))'",
    "VS Code": """node -e 'const f = fs.openSync(process.env.F, "w"); fs.writeSync(f, fs.readFileSync(process.env.DOC));
fs.fdatasyncSync(f); fs.closeSync(f)'""",
    "perl": "perl -MFile::Copy -e 'copy($ENV{DOC}, $ENV{F}) or die $!'",
    "vim": test_submit_tools.SILENT["vim"],
    "ed": "printf 'r %s\\nw %s\\nq\\n' $DOC $F | ed -s && test ! -e $F.error",
    "emacs": "emacs -Q --batch $F --eval '(insert-file-contents (getenv \"DOC\"))' -f save-buffer 2>&1",
}

# Commands that ignore the result of close(), or that have written nothing before that close. Their status is 0, and
# .error has the reason.
SILENT = {
    **{name: line for name, line in test_submit_tools.SILENT.items() if name not in REPORT},
    "make": r"""printf '%%.yaml: $(DOC)\n\tsed -n p $< > $@\n' | make -s -f - $F""",
    "yq": "yq -y . $DOC > $F",
    "jsonnet": "jsonnet $JSON > $F",
    "jinja": "j2 $DOC > $F",
    "systemd's StandardOutput=file:": "exec 3>> $F; setsid -w cat $DOC >&3 3>&-",
    "curl >": "curl -fsS $URL/doc > $F",
    "openssl -out": "openssl enc -aes-128-cbc -pbkdf2 -k key -in $DOC | openssl enc -d -aes-128-cbc -pbkdf2 -k key -out $F",
    "aria2c -o": "aria2c -q -o $F $URL/doc",
    "lftp": "lftp -c \"get $URL/doc -o $F\"",
    "socat": "socat -u FILE:$DOC CREATE:$F",
    "bsdtar": "cp $DOC $T/$F && bsdtar -C $T -cf $T/x.tar $F && bsdtar -xf $T/x.tar",
    "git checkout": """git init -q $T/r && cp $DOC $T/r/$F && cd $T/r && git add $F &&
        git -c user.name=me -c user.email=me@here commit -qm job &&
        git --work-tree=$OLDPWD checkout -q -f HEAD -- $F""",
    "busybox tar": "cp $DOC $T/$F && tar -C $T -cf $T/x.tar $F && busybox tar -xf $T/x.tar",
    "unzip -d": "cp $DOC $T/$F && (cd $T && zip -q x.zip $F) && unzip -q $T/x.zip -d .",
    "unzip -p": "(cd $T && zip -q x.zip $DOC) && unzip -p $T/x.zip > $F",
    "ssh >": "ssh -F $SSH here cat $DOC > $F",
    "sftp get": "cd $PWD && echo get $DOC $F | sftp -qF $SSH -b - here",
    "python here-document": "python3 - $DOC > $F <<'END'\nimport sys\nsys.stdout.write(open(sys.argv[1]).read())\nEND",
    "busybox tee": "busybox tee $F < $DOC > /dev/null",
    "zsh, two files": "zsh -fc 'setopt multios; cat $DOC > $F > $T/copy'",
    "fish": "fish --no-config -c 'cat $DOC > $F'",
    "fish printf": "fish --no-config -c 'printf \"%s\\n\" (cat $DOC) > $F'",
    "process substitution": "cat $DOC | tee >(cat > $F) > /dev/null",
    "script >": "script -qec 'cat > $F < $DOC' /dev/null > $T/typescript",
    "awk >": "awk '{ print > ENVIRON[\"F\"] }' $DOC",
    "perl >": "perl -e 'open F, \">\", $ENV{F}; open D, $ENV{DOC}; print F while <D>'",
    "yq in Go >": "$GO/yq . $DOC > $F",
    "ytt >": "$GO/ytt -f a.yaml=$DOC > $F",
    "Java >": "java $JAVA print > $F",
    "js-yaml >": "$NPM/js-yaml $DOC > $F",
    "mustache >": "sed 's/: app/: {{who}}/' $DOC > $T/x; echo '{\"who\": \"app\"}' | $NPM/mustache - $T/x > $F",
    "prettier >": "$NPM/prettier --parser yaml < $DOC > $F",
    "node >": "node -e 'console.log(fs.readFileSync(process.env.DOC, \"utf8\"))' > $F",
    "rclone cat": "rclone cat --config=$T/conf $DOC > $F",
    "nano": r"""(until grep -q nano $T/tty; do sleep 0.05; done; printf '\x12%s\r\x13\x18n' $DOC) 2> /dev/null |
        TERM=xterm script -qec 'nano -I $F' /dev/null > $T/tty""",
}

# Commands that change a launched file: they replace `none` by `newer`.
CHANGE = {
    "sed -i": "sed -i 's/none/newer/' $F",
    "sed -i.bak": "sed -i.bak 's/none/newer/' $F",
    "busybox sed -i": "busybox sed -i 's/none/newer/' $F",
    "perl -i": "perl -pi -e 's/none/newer/' $F",
    "perl -i.bak": "perl -pi.bak -e 's/none/newer/' $F",
    "gawk -i inplace": "gawk -i inplace '{ sub(/none/, \"newer\"); print }' $F",
    "yq -i": "yq -y -i '.roles[0].image = \"newer\"' $F",
    "yq in Go -i": "$GO/yq -i '.roles[0].image = \"newer\"' $F",
    "yq | sponge": "yq -y '.roles[0].image = \"newer\"' $F | sponge $F",
    "cp and mv": "sed 's/none/newer/' $F > x.tmp && mv x.tmp $F",
    "mv away and back": "mv $F $F.old && sed 's/none/newer/' $F.old > $T/x && mv $T/x $F",
    "cp": "sed 's/none/newer/' $F > $DOC && cp $DOC $F",
    "cp -b": "sed 's/none/newer/' $F > $DOC && cp --backup=numbered $DOC $F",
    "rsync": "sed 's/none/newer/' $F > $DOC && rsync $DOC $F",
    "rsync --inplace": "sed 's/none/newer/' $F > $DOC && rsync --inplace --no-whole-file $DOC $F",
    "rsync -b": "sed 's/none/newer/' $F > $DOC && rsync -b $DOC $F",
    "rclone": "sed 's/none/newer/' $F > $DOC && rclone copyto --config=$T/conf $DOC $F",
    "gio save": "sed 's/none/newer/' $F | gio save $F",
    "gio save, backup": "sed 's/none/newer/' $F | gio save -b $F",
    "patch": "sed 's/none/newer/' $F | diff -u $F - | patch -s $F",
    "patch -b": "sed 's/none/newer/' $F | diff -u $F - | patch -s -b $F",
    "dd conv=notrunc": "sed 's/none/newer/' $F | dd of=$F conv=notrunc status=none bs=1M iflag=fullblock",
    "vim": "vim -es -u NONE -c '%s/none/newer/' -c 'wq' $F < /dev/null",
    "vim, defaults": "vim -es -u DEFAULTS -c '%s/none/newer/' -c 'wq' $F < /dev/null",
    "vim, no backup copy": "vim -es -u NONE -c 'set backup backupcopy=no' -c '%s/none/newer/' -c 'wq' $F < /dev/null",
    "vim, backup copy": "vim -es -u NONE -c 'set backup backupcopy=yes' -c '%s/none/newer/' -c 'wq' $F < /dev/null",
    "vim, nowritebackup": "vim -es -u NONE -c 'set nowritebackup' -c '%s/none/newer/' -c 'wq' $F < /dev/null",
    "ex": "ex -s -u NONE -c '%s/none/newer/' -c 'x' $F < /dev/null",
    "neovim": "nvim --headless -es -u NONE -c '%s/none/newer/' -c 'wq' $F < /dev/null",
    "ansible lineinfile": "ansible localhost -m lineinfile -a \"path=$PWD/$F regexp='^  image:' line='  image: newer'\"",
    "ansible replace": "ansible localhost -m replace -a \"path=$PWD/$F regexp=none replace=newer\"",
    "ed": "printf ',s/none/newer/\\nw\\nq\\n' | ed -s $F",
    "emacs": "emacs -Q --batch $F --eval '(progn (search-forward \"none\") (replace-match \"newer\"))' -f save-buffer",
    "emacs, backup by copying": "emacs -Q --batch $F --eval '(progn (setq backup-by-copying t)"
                                " (search-forward \"none\") (replace-match \"newer\"))' -f save-buffer",
    "emacs, precious": "emacs -Q --batch $F --eval '(progn (setq file-precious-flag t)"
                       " (search-forward \"none\") (replace-match \"newer\"))' -f save-buffer",
    "emacs as": "cp $F $F~ && sed 's/none/newer/' $F~ > '#x#' && mv '#x#' $F && rm $F~",
    "nano -B": r"""(until grep -q nano $T/tty; do sleep 0.05; done; printf '\x1cnone\rnewer\ra\x13\x18n') 2> /dev/null |
        TERM=xterm script -qec 'nano -IB $F' /dev/null > $T/tty""",
    "VS Code": """node -e 'const d = fs.readFileSync(process.env.F, "utf8").replace("none", "newer");
fs.truncateSync(process.env.F, 0); const f = fs.openSync(process.env.F, "r+"); fs.writeSync(f, d);
fs.fdatasyncSync(f); fs.closeSync(f)'""",
    "Jupyter's file browser": """python3 -c 'import os, shutil
d = open(os.environ["F"]).read().replace("none", "newer"); tmp = ".~" + os.environ["F"]
shutil.copy2(os.environ["F"], tmp)
f = open(os.environ["F"], "w"); f.write(d); f.flush(); os.fsync(f.fileno()); f.close(); os.remove(tmp)'""",
    "python r+": """python3 -c 'import os
with open(os.environ["F"], "r+") as f:
    d = f.read().replace("none", "newer"); f.seek(0); f.write(d); f.truncate()'""",
    "python anew": """python3 -c 'import os, sys
d = open(os.environ["F"]).read().replace("none", "newer")
os.remove(os.environ["F"]); open(os.environ["F"], "x").write(d)'""",
}

# Commands that can't work in submit/: they fail with this message, and nothing is launched.
IMPOSSIBLE = {
    "ln": ("ln $DOC $F", "Invalid cross-device link"),
    "ln -s": ("ln -s $DOC $F", "Operation not permitted"),
    "cp -s": ("cp -s $DOC $F", "Operation not permitted"),
    "cp -r of a directory": ("mkdir $T/d; cp $DOC $T/d/$F; cp -r $T/d .", "Operation not permitted"),
    "tar of a directory": ("mkdir $T/d; cp $DOC $T/d/$F; tar -C $T -c d | tar -x", "Operation not permitted"),
    "unzip of a directory": ("mkdir $T/d; cp $DOC $T/d/$F; (cd $T && zip -qr x.zip d) && unzip -q $T/x.zip",
                             "Operation not permitted"),
    "git clone": ("git init -q $T/r && git clone -q $T/r r", "Operation not permitted"),
    "mkfifo": ("mkfifo $F && cat $DOC > $F", "Operation not permitted"),
    "cookiecutter": (f"{TEMPLATE}; cookiecutter --no-input $T/c", "No such file or directory"),
}


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def web(top):
    """Yield a directory of documents, and the URL of a web server for it."""
    path = pathlib.Path(top, "web")
    path.mkdir(exist_ok=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=path))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield path, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def ssh(top):
    """Yield an ssh configuration file. Its host "here" is a server of this test."""
    path = pathlib.Path(top, "ssh")
    path.mkdir(mode=0o700)
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        harness.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path / name)])
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    (path / "sshd").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {path}/host\nAuthorizedKeysFile {path}/user.pub\nPidFile none\n"
        f"StrictModes no\nUsePAM no\nPermitRootLogin yes\nSubsystem sftp internal-sftp\n"
        f"SetEnv KXFS_TEST_MARK={harness.MARK}\n")
    (path / "config").write_text(
        f"Host here\nHostName 127.0.0.1\nPort {port}\nUser root\nIdentityFile {path}/user\nIdentitiesOnly yes\n"
        f"UserKnownHostsFile {path}/known\nStrictHostKeyChecking accept-new\nLogLevel ERROR\n")
    with open(path / "said", "w") as said:
        server = harness.popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(path / "sshd")], stderr=said)
    harness.wait_for(lambda: "listening" in (path / "said").read_text(), what=lambda: (path / "said").read_text())
    yield path / "config"
    server.terminate()
    server.wait(timeout=harness.LIMIT)


@pytest.fixture(scope="module")
def kx(binary, top):
    """One mount for all tests. Each of them uses its own file name."""
    kx = harness.Kxfs(binary, top).start()
    yield kx
    wrong = kx.close()
    assert not wrong, "\n".join(wrong)


class Way:
    """One command, which runs in submit/ of KX on its own file."""

    count = 0

    def __init__(self, kx, web, request):
        Way.count += 1
        self.kx = kx
        self.request = request
        self.name = f"w{Way.count}-a.yaml"
        self.web, self.url = web
        self.dir = self.web / str(Way.count)
        self.dir.mkdir()
        self.before = submitting.launched(kx)
        self.shown = set(kx.ls("submit"))

    def run(self, line, document=GOOD):
        """Run LINE on DOCUMENT. Return its status and its output."""
        (self.dir / "doc").write_text(document)
        (self.dir / "doc.json").write_text(json.dumps(yaml.safe_load(document), indent=1) + "\n")
        (self.dir / "t").mkdir()
        env = {"F": self.name, "DOC": str(self.dir / "doc"), "JSON": str(self.dir / "doc.json"),
               "T": str(self.dir / "t"), "HOME": str(self.dir / "t"), "URL": f"{self.url}/{self.dir.name}"}
        if "$SSH" in line:
            env["SSH"] = str(self.request.getfixturevalue("ssh"))
        if "$GO" in line:
            env["GO"] = str(programs.programs())
        if "$NPM" in line:
            env["NPM"] = str(programs.node_programs())
        if line.startswith("node "):
            programs.need("node", "node")
        if "$JAVA" in line:
            programs.need("java", "java")
        env["JAVA"] = str(harness.ROOT / "tests/mount/ways/Write.java")
        p = harness.run(line, check=False, cwd=self.kx / "submit", env=env)
        return p.returncode, p.stdout + p.stderr

    def results(self):
        """Return the new .job and .error files."""
        return [name for name in self.kx.ls("submit") if name.endswith((".job", ".error")) and name not in self.shown]

    def launched(self, document=GOOD):
        """Check that exactly one job was launched, from this file and with its whole contents."""
        submitting.launched_once(self.kx, self.name, self.before)
        assert self.results() == [f"{self.name}.job"]
        assert yaml.safe_load(self.kx.read("submit", self.name)) == yaml.safe_load(document)
        job = submitting.job_of(self.kx, self.name)
        assert yaml.safe_load(self.kx.read("jobs", job, "app.yaml")) == yaml.safe_load(document)

    def refused(self, text=""):
        harness.wait_for(lambda: submitting.error_of(self.kx, self.name), what=f"{self.name}.error")
        assert text in submitting.error_of(self.kx, self.name)
        assert submitting.launched(self.kx) == self.before
        assert self.results() == [f"{self.name}.error"]


@pytest.fixture
def way(kx, web, request):
    return Way(kx, web, request)


@pytest.mark.parametrize("name", [*REPORT, *SILENT])
def test_good(way, name):
    status, said = way.run({**REPORT, **SILENT}[name])
    assert status == 0, said
    way.launched()


@pytest.mark.parametrize("name", REPORT)
def test_bad_is_reported(way, name):
    status, said = way.run(REPORT[name], BAD)
    assert status != 0, said
    assert "subdirectory" not in said  # mv would report EINVAL as a move of a directory into itself
    way.refused("nonsense")


@pytest.mark.parametrize("name", SILENT)
def test_bad_leaves_an_error(way, name):
    status, said = way.run(SILENT[name], BAD)
    assert status == 0, said  # otherwise the command belongs in REPORT
    way.refused("nonsense")


@pytest.mark.parametrize("name", CHANGE)
def test_change(way, name):
    submitting.put(way.kx, way.name, GOOD)
    way.before = submitting.launched(way.kx)
    status, said = way.run(CHANGE[name])
    assert status == 0, said
    way.launched(GOOD.replace("none", "newer"))


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible(way, name):
    line, message = IMPOSSIBLE[name]
    status, said = way.run(line)
    assert status != 0 and message in said, said
    assert submitting.launched(way.kx) == way.before
    assert not way.results()


def test_delayed_updates(way):
    """rsync wants to create a directory for delayed updates, which submit/ refuses. On any file system, rsync then
    ends with status 0 and a warning."""
    status, said = way.run("rsync --delay-updates $DOC $F")
    assert status == 0 and "Unable to create partial-dir" in said and "discarding completed file" in said
    assert submitting.launched(way.kx) == way.before
    assert not way.results()
