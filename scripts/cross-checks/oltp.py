"""The laboratory's oltp-read-only against sysbench, on one private MariaDB server."""

import re
import socket

import common

SECONDS = 6

# Both read from the device, whose pace changes by the minute on a machine that is shared.
TURNS = 11
TABLES, ROWS = 4, 100_000
THREADS = [1, 16]

# A third of the data, so that most transactions read from the device.
POOL = 32 << 20
PAGE = 16 << 10

DATABASE = "romanesco_lab"

SCRIPT = common.ROOT / "scripts" / "cross-checks" / "oltp.lua"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """MariaDB with a data directory, a port and a socket of its own."""

    def __init__(self, folder):
        package = "mariadb-server"
        self.server = common.tool("mariadbd", package, "/usr/sbin/mariadbd")
        self.make = common.tool("mariadb-install-db", package)
        self.client = common.tool("mariadb", "mariadb-client")
        self.folder, self.port = folder, free_port()

    def __enter__(self):
        data = f"--datadir={self.folder / 'data'}"
        common.run([
            *(self.make, "--no-defaults", data, "--user=root", "--skip-test-db"),
            "--auth-root-authentication-method=normal",
        ])
        command = [
            *(self.server, "--no-defaults", data, "--user=root"),
            *("--bind-address=127.0.0.1", f"--port={self.port}"),
            *(f"--socket={self.folder / 'sql'}", f"--pid-file={self.folder / 'pid'}"),
            *("--skip-log-bin", "--skip-name-resolve", "--performance-schema=OFF"),
            *(f"--innodb-buffer-pool-size={POOL}", "--innodb-flush-method=O_DIRECT"),
            *("--innodb-flush-log-at-trx-commit=2", "--max-connections=400"),
            "--max-prepared-stmt-count=100000",
        ]
        log = self.folder / "server.log"
        self.started = common.Started(command, log)
        process = self.started.__enter__()

        def answers():
            if process.poll() is not None:
                raise RuntimeError(f"mariadbd ended:\n{common.said(log)}")
            try:
                return self.sql("SELECT 1")
            except RuntimeError:
                return None

        try:
            common.wait_for(answers, 60, "mariadbd")
            self.sql(f"CREATE DATABASE sbtest; CREATE DATABASE {DATABASE}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.started.__exit__()

    def sql(self, text):
        place = ["-h", "127.0.0.1", "-P", str(self.port), "-u", "root"]
        return common.run([self.client, "--no-defaults", *place, "-N", "-e", text])

    def pages_read(self):
        """Pages that InnoDB has read so far."""
        return int(self.sql("SHOW GLOBAL STATUS LIKE 'Innodb_pages_read'").split()[1])


class Sysbench:
    """Runs of sysbench."""

    def __init__(self, program, server, seconds):
        self.program, self.server, self.seconds = program, server, seconds

    def call(self, script, verb, threads):
        database = DATABASE if script == str(SCRIPT) else "sbtest"
        return common.run([
            *(self.program, script, "--db-driver=mysql", "--mysql-host=127.0.0.1"),
            *(f"--mysql-port={self.server.port}", "--mysql-user=root", f"--mysql-db={database}"),
            *(f"--tables={TABLES}", f"--table-size={ROWS}", "--rand-type=uniform"),
            *("--rand-seed=42", f"--threads={threads}", f"--time={self.seconds}", verb),
        ])

    def run(self, script, threads):
        """Transactions per second, and pages read for one."""
        before = self.server.pages_read()
        told = self.call(script, "run", threads)
        pages = self.server.pages_read() - before
        found = re.search(r"transactions:\s+(\d+)\s+\(([\d.]+) per sec", told)
        if found is None:
            raise RuntimeError(f"sysbench did not say how many transactions:\n{told[-1000:]}")
        return float(found.group(2)), pages / max(1, int(found.group(1)))


def ours(lab, server):
    """The steps of the laboratory, which makes its tables anew and leaves them to sysbench."""
    steps = lab.run(
        *("oltp-read-only", "-t", f"mysql://root@127.0.0.1:{server.port}/{DATABASE}"),
        *("--preset", "smoke", "--rows", str(TABLES * ROWS), "--time", str(lab.size(SECONDS, 1))),
        *("--clients", ",".join(map(str, THREADS))),
        *("--cache", str(POOL), "--mem", "1G", "--keep-data"),
    )

    def of(step):
        done = step["rate_mean"] * step["seconds"]
        return step["rate_mean"], step["device_read_bytes"] / PAGE / done

    return {threads: of(steps[f"clients-{threads}"]) for threads in THREADS}


def check(lab):
    """oltp-read-only against sysbench by 1 and 16 clients: rate, and pages read a transaction."""
    program = common.tool("sysbench", "sysbench")
    scripts = {"same statements": str(SCRIPT), "sysbench's own": "oltp_read_only"}
    mine = {threads: [] for threads in THREADS}
    foreign = {(name, threads): [] for name in scripts for threads in THREADS}
    with Server(lab.folder) as server:
        sysbench = Sysbench(program, server, lab.size(SECONDS, 1))
        sysbench.call("oltp_read_only", "prepare", TABLES)
        for _ in range(lab.size(TURNS, 1)):
            for threads, found in ours(lab, server).items():
                mine[threads].append(found)
            for (name, threads), found in foreign.items():
                found.append(sysbench.run(scripts[name], threads))
    rows = []
    for (name, threads), found in foreign.items():
        who = "1 client" if threads == 1 else f"{threads} clients"
        bound = (0.9, 1.1) if name == "same statements" else ()
        for place, (what, unit) in enumerate([("rate", "1/s"), ("pages read a transaction", "")]):
            rows.append(common.paired(
                f"{who}, {name}: {what}", unit,
                [one[place] for one in mine[threads]], [one[place] for one in found], *bound,
            ))
    return common.Made(
        rows,
        [
            f"Both read {TABLES} tables of {ROWS:,} rows of sysbench's shape in InnoDB, with a "
            f"buffer pool of {POOL >> 20} MiB and O_DIRECT, over TCP, {SECONDS} s at a time, in "
            "turns.",
            "`same statements` is sysbench with the laboratory's transaction "
            "(`scripts/cross-checks/oltp.lua`) on the tables the laboratory has just read: whole "
            "rows, and the client adds up, sorts and makes distinct. `sysbench's own` is "
            "`oltp_read_only` on tables of its own, where the server does that and sends one "
            "column: less work for the client and the wire, and numbers of 4 bytes instead of 8, "
            "so it judges nothing.",
            f"Pages of {PAGE >> 10} KiB: ours by the device's counters, as the laboratory reports "
            "them; theirs by InnoDB's.",
        ],
    )
