PRAGMA application_id = 1212436577;
PRAGMA user_version = 1;
PRAGMA journal_mode = delete;
BEGIN TRANSACTION;
CREATE TABLE answer (question TEXT PRIMARY KEY NOT NULL, asked TEXT NOT NULL, line TEXT NOT NULL, digest TEXT NOT NULL);
INSERT INTO "answer" VALUES('a','{"format": "hdp_fast.question", "version": 1, "id": "a", "kind": "frequency", "randomizer": {"randomizer": "KaryResponse", "k": 3, "epsilon": 1.0}}','line a','0b60624d59ecbe86e68a35ae3af85d015dc49a539d9f31eca3f459fd93a8d8a9');
INSERT INTO "answer" VALUES('b','{"format": "hdp_fast.question", "version": 1, "id": "b", "kind": "frequency", "randomizer": {"randomizer": "KaryResponse", "k": 3, "epsilon": 1.0}}','line b','49a51ffa3ba16acd555fb2bf42e5fd98d3499335f8daeaf7ee1af915c53fe5f3');
COMMIT;
