PRAGMA application_id = 1212436578;
PRAGMA user_version = 1;
PRAGMA journal_mode = wal;
BEGIN TRANSACTION;
CREATE TABLE account (
    id INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES account,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    time TEXT NOT NULL,
    epsilon TEXT,
    delta TEXT,
    spent_epsilon TEXT NOT NULL,
    spent_delta TEXT NOT NULL
);
INSERT INTO "account" VALUES(1,NULL,'budget','','2026-01-01T00:00:00.000000+00:00','1','0','1/2','0');
INSERT INTO "account" VALUES(2,1,'sequential','inner','2026-01-01T00:00:02.000000+00:00','1/4','0','1/8','0');
INSERT INTO "account" VALUES(3,1,'parallel','parallel','2026-01-01T00:00:04.000000+00:00',NULL,NULL,'1/8','0');
INSERT INTO "account" VALUES(4,3,'part','a','2026-01-01T00:00:05.000000+00:00',NULL,NULL,'1/8','0');
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account,
    time TEXT NOT NULL,
    state TEXT NOT NULL,
    record TEXT NOT NULL
);
INSERT INTO "entry" VALUES(1,1,'2026-01-01T00:00:01.000000+00:00','committed','{"mechanism": "test", "source": "s", "neighbors": "replace_one", "epsilon": 0.125, "delta": 0.0, "noise": "none", "numerics": "exact", "rng": "operating system entropy", "version": "0.1.0"}');
INSERT INTO "entry" VALUES(2,2,'2026-01-01T00:00:03.000000+00:00','committed','{"mechanism": "test", "source": "s", "neighbors": "replace_one", "epsilon": 0.125, "delta": 0.0, "noise": "none", "numerics": "exact", "rng": "operating system entropy", "version": "0.1.0"}');
INSERT INTO "entry" VALUES(3,4,'2026-01-01T00:00:06.000000+00:00','reserved','{"mechanism": "test", "source": "s", "neighbors": "replace_one", "epsilon": 0.125, "delta": 0.0, "noise": "none", "numerics": "exact", "rng": "operating system entropy", "version": "0.1.0"}');
CREATE TABLE ledger (key TEXT NOT NULL, neighbors TEXT NOT NULL);
INSERT INTO "ledger" VALUES('00000000000000000000000000000000','replace_one');
COMMIT;
