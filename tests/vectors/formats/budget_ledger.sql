PRAGMA application_id = 1212436578;
PRAGMA user_version = 2;
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
    spent_delta TEXT NOT NULL, digest BLOB NOT NULL);
INSERT INTO "account" VALUES(1,NULL,'budget','','2026-01-01T00:00:00.000000+00:00','1','0','1/2','0',X'A7EF1BF55F7D48F18CC30FF5FECB2C944C021F0C27981166D8B8F1E15B736370');
INSERT INTO "account" VALUES(2,1,'sequential','inner','2026-01-01T00:00:02.000000+00:00','1/4','0','1/8','0',X'13BA5C5E5E4CEA0047BC6E7C098944BD830EC7729D03B1BFBB42F38EE5136D66');
INSERT INTO "account" VALUES(3,1,'parallel','parallel','2026-01-01T00:00:04.000000+00:00',NULL,NULL,'1/8','0',X'C75A33E08C5DAA2E304D434D488D0FD9B7ADC162630D33FB46B8929E1FE880D0');
INSERT INTO "account" VALUES(4,3,'part','a','2026-01-01T00:00:05.000000+00:00',NULL,NULL,'1/8','0',X'C7BD90384A6CE77E5AA7E5410AEE460FFBD87C51DCBA1FC9C2A910A2D656095D');
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account,
    time TEXT NOT NULL,
    state TEXT NOT NULL,
    record TEXT NOT NULL, digest BLOB NOT NULL);
INSERT INTO "entry" VALUES(1,1,'2026-01-01T00:00:01.000000+00:00','committed','{"mechanism": "test", "source": "s", "neighbors": "replace_one", "epsilon": 0.125, "delta": 0.0, "noise": "none", "numerics": "exact", "rng": "operating system entropy", "version": "0.1.0", "law": "pure", "mu": null, "run": null}',X'4CB81F600F8AC60E71DAB7244AA5CB9AC82F20189D327696C4645BD2155BE0D1');
INSERT INTO "entry" VALUES(2,2,'2026-01-01T00:00:03.000000+00:00','committed','{"mechanism": "test", "source": "s", "neighbors": "replace_one", "epsilon": 0.125, "delta": 0.0, "noise": "none", "numerics": "exact", "rng": "operating system entropy", "version": "0.1.0", "law": "pure", "mu": null, "run": null}',X'E8D139BE22D64A92FC277EC03B10988EBFD681F94203D696379CBCA3015D39E7');
INSERT INTO "entry" VALUES(3,4,'2026-01-01T00:00:06.000000+00:00','reserved','{"mechanism": "test", "source": "s", "neighbors": "replace_one", "epsilon": 0.125, "delta": 0.0, "noise": "none", "numerics": "exact", "rng": "operating system entropy", "version": "0.1.0", "law": "pure", "mu": null, "run": null}',X'B3F8019CE32275E924CA71769022EB79FD768BD62BCB8183EB459C3ABA74426A');
CREATE TABLE ledger (key TEXT NOT NULL, neighbors TEXT NOT NULL, digest BLOB NOT NULL);
INSERT INTO "ledger" VALUES('00000000000000000000000000000000','replace_one',X'06CFF2274663108C104C8AD6AEF02832FC089AB5FA0D5C5376441887B9C44311');
CREATE TABLE total (digest BLOB NOT NULL);
INSERT INTO "total" VALUES(X'3B12894EF07B5BB5028DD93220993F12041BECD1097241EFFAE855E8C1B6FB36');
COMMIT;
