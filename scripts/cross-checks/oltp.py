"""The laboratory's oltp-read-only against sysbench, on one private MariaDB server."""

import os
import re
import shutil
import socket

import caps
import common

SECONDS = 6

# Turns within the cap, and as fast as it goes: there processors that are shared change the pace by
# the second, and nothing is judged by it.
TURNS, FAST = 7, 5

# Reads a second that the server gets: half of what one client would make of a disk in memory.
READS = 2000
TABLES, ROWS = 4, 100_000
THREADS = [1, 16]

# A third of the data, so that most transactions read from the device.
POOL = 32 << 20
PAGE = 16 << 10

# The disk in memory, in MiB: data, redo log and what the server makes besides.
DISK = 1024

DATABASE = "romanesco_lab"

SCRIPT = common.ROOT / "scripts" / "cross-checks" / "oltp.lua"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Disk:
    """A folder on a disk in memory, so that the device's own pace, which may change by a third
    between turns, is not what is compared; on the disk of the folder where that cannot be had."""

    PROGRAM = common.ROOT / "scripts" / "steady-disk"

    def __init__(self, folder):
        self.folder = folder / "disk"
        self.folder.mkdir()
        self.why_not = None

    def __enter__(self):
        try:
            common.run([self.PROGRAM, "up", self.folder, str(DISK)])
        except RuntimeError as error:
            self.why_not = str(error).strip().splitlines()[-1]
            print(f"on the disk of {self.folder.parent}: {self.why_not}")
        return self

    def __exit__(self, *_):
        if self.why_not is None:
            common.run([self.PROGRAM, "down", self.folder])

    @property
    def said(self):
        if self.why_not is None:
            return (
                f"Data lie on a disk in memory (`scripts/steady-disk`, {DISK} MiB), read around "
                "the page cache as from any other: what is compared is the two clients, and not "
                "the hour of a disk that is shared."
            )
        return "Data lie on the disk of the machine, whose pace may change from turn to turn."


class Server:
    """MariaDB with a data directory, a port and a socket of its own."""

    def __init__(self, folder, group=None):
        package = "mariadb-server"
        self.server = common.tool("mariadbd", package, "/usr/sbin/mariadbd")
        self.make = common.tool("mariadb-install-db", package)
        self.client = common.tool("mariadb", "mariadb-client")
        self.folder, self.port = folder, free_port()
        # The control group whose caps it is to keep.
        self.more = {"preexec_fn": caps.entering(group)} if group else {}

    def __enter__(self):
        self.folder.mkdir()
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
            # What the load left is written before anybody reads, and not by who reads first.
            *("--innodb-max-dirty-pages-pct=0", "--innodb-io-capacity=2000"),
            "--max-prepared-stmt-count=100000",
        ]
        log = self.folder / "server.log"
        self.started = common.Started(command, log, **self.more)
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


def turns(lab, server, count, scripts):
    """Rates and pages of so many turns: ours by clients, theirs by script and clients."""
    program = common.tool("sysbench", "sysbench")
    mine = {threads: [] for threads in THREADS}
    foreign = {(name, threads): [] for name in scripts for threads in THREADS}
    sysbench = Sysbench(program, server, lab.size(SECONDS, 1))
    if "oltp_read_only" in scripts.values():
        sysbench.call("oltp_read_only", "prepare", TABLES)
    for _ in range(count):
        for threads, found in ours(lab, server).items():
            mine[threads].append(found)
        # Ours ended with many clients, so theirs begin with as many.
        for name, script in scripts.items():
            for threads in reversed(THREADS):
                foreign[name, threads].append(sysbench.run(script, threads))
    return mine, foreign


def rows_of(mine, foreign, place, what, unit, bound):
    """A row for each script and number of clients, of rates (place 0) or pages (1)."""
    rows = []
    for (name, threads), found in foreign.items():
        who = "1 client" if threads == 1 else f"{threads} clients"
        bounds = bound if name == "same statements" else ()
        rows.append(common.paired(
            f"{who}, {name}: {what}", unit,
            [one[place] for one in mine[threads]], [one[place] for one in found], *bounds,
        ))
    return rows


def check(lab):
    """oltp-read-only against sysbench by 1 and 16 clients: rate, and pages read a transaction."""
    common.tool("sysbench", "sysbench")
    if os.geteuid() != 0:
        raise common.Missing("control groups need root")
    same = {"same statements": str(SCRIPT)}
    bound = (0.9, 1.1)
    with Disk(lab.folder) as disk:

        def within(group):
            with Server(disk.folder / "capped", group) as server:
                return turns(lab, server, lab.size(TURNS, 1), same)

        # The loads write as fast as they go.
        cap = ["--iops", f"{READS}/1000000", "--data-dir", str(disk.folder / "null")]
        capped = caps.under_caps(lab, cap, within)
        shutil.rmtree(disk.folder / "capped")
        with Server(disk.folder / "fast") as server:
            everything = same | {"sysbench's own": "oltp_read_only"}
            fast = turns(lab, server, lab.size(FAST, 1), everything)
    rows = rows_of(*capped, 0, f"rate within {READS:,} reads a second", "1/s", bound)
    rows += rows_of(*capped, 1, "pages read a transaction", "", bound)
    rows += rows_of(*fast, 0, "rate as fast as it goes", "1/s", ())
    rows += rows_of(*fast, 1, "pages read a transaction, as fast as it goes", "", ())
    return common.Made(rows, notes(disk))


def notes(disk):
    """What a reader of the rows must know."""
    return [
        f"Both read {TABLES} tables of {ROWS:,} rows of sysbench's shape in InnoDB, with a buffer "
        f"pool of {POOL >> 20} MiB and O_DIRECT, over TCP, {SECONDS} s at a time, in turns.",
        "`same statements` is sysbench with the laboratory's transaction "
        "(`scripts/cross-checks/oltp.lua`) on the tables the laboratory has just read: whole "
        "rows. The laboratory's client checks every row, adds up, sorts and makes distinct; "
        "sysbench's drops them. `sysbench's own` is `oltp_read_only` on tables of its own, where "
        "the server does that and sends one column: less work for the client and the wire, and "
        "numbers of 4 bytes instead of 8, so it judges nothing.",
        f"The server has {READS:,} reads a second, by the laboratory's own control group, so that "
        "rates are those of the data and not of processors that are shared. `as fast as it goes` "
        "is without that cap: on two cores, which server and client share, the rate is then that "
        "of their CPU, and what the laboratory's client does more with the rows counts. It judges "
        "nothing.",
        disk.said,
        f"Pages of {PAGE >> 10} KiB: ours by the device's counters, as the laboratory reports "
        "them; theirs by InnoDB's.",
    ]
