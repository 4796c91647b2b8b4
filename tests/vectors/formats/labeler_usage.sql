PRAGMA application_id = 1212436588;
PRAGMA user_version = 1;
PRAGMA journal_mode = delete;
BEGIN TRANSACTION;
CREATE TABLE spent (key TEXT NOT NULL, bottoms INTEGER NOT NULL, queries INTEGER NOT NULL);
INSERT INTO "spent" VALUES('key',1,2);
COMMIT;
