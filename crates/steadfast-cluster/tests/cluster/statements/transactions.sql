# changes are visible inside, and applied by a commit

t1: BEGIN WORK

t1: UPDATE b SET n = 10 WHERE META().id = 'k1' RETURNING RAW n
    [10]
    changed 1

t1: INSERT INTO b VALUES ('k3', {'n': 3})

t1: DELETE FROM b USE KEYS 'k2'

t1: UPSERT INTO b VALUES ('k4', {'n': 4})

t1: UPDATE b SET n = 5 WHERE META().id = 'k4'

t1: ALL
    [{"id": "k1", "n": 10}, {"id": "k3", "n": 3}, {"id": "k4", "n": 5}]

ALL
    [{"id": "k1", "n": 1}, {"id": "k2", "n": 2}]

t1: COMMIT

ALL
    [{"id": "k1", "n": 10}, {"id": "k3", "n": 3}, {"id": "k4", "n": 5}]

t1: SELECT 1
    error 17004

# a rollback drops every change

t1: START TRANSACTION ISOLATION LEVEL READ COMMITTED

t1: INSERT INTO b VALUES ('k3', {'n': 3})

t1: UPDATE b SET n = n + 1

t1: DELETE FROM b USE KEYS 'k1'

t1: INSERT INTO b VALUES ('k1', {'n': 7})

t1: INSERT INTO b VALUES ('k5', {'n': 5})

t1: DELETE FROM b USE KEYS 'k5'

t1: ALL
    [{"id": "k1", "n": 7}, {"id": "k2", "n": 3}, {"id": "k3", "n": 4}]

t1: ROLLBACK

ALL
    [{"id": "k1", "n": 1}, {"id": "k2", "n": 2}]

t1: ROLLBACK
    error 17004

# a transaction returns to its savepoints

t1: BEGIN WORK

t1: UPDATE b SET n = 10 WHERE META().id = 'k1'

t1: INSERT INTO b VALUES ('k3', {'n': 3})

t1: SAVEPOINT s

t1: UPDATE b SET n = 20 WHERE META().id LIKE 'k%'

t1: DELETE FROM b USE KEYS 'k3'

t1: INSERT INTO b VALUES ('k4', {'n': 4})

t1: ROLLBACK TRAN TO SAVEPOINT `s`

t1: ALL
    [{"id": "k1", "n": 10}, {"id": "k2", "n": 2}, {"id": "k3", "n": 3}]

t1: ROLLBACK TO SAVEPOINT t
    error 17009

t1: UPDATE b SET n = 30 WHERE META().id = 'k2'

t1: COMMIT WORK

ALL
    [{"id": "k1", "n": 10}, {"id": "k2", "n": 30}, {"id": "k3", "n": 3}]

# a statement that fails is undone, and the transaction goes on

t1: BEGIN WORK

t1: INSERT INTO b VALUES ('k3', {'n': 3}), ('k1', {'n': 0})
    error 17012 200

t1: ALL
    [{"id": "k1", "n": 1}, {"id": "k2", "n": 2}]

t1: INSERT INTO b VALUES ('k3', {'n': 33})

t1: INSERT INTO b VALUES ('k3', {'n': 34})
    error 17012

t1: COMMIT TRAN

SELECT RAW n FROM b USE KEYS 'k3'
    [33]

# of two transactions that change a document, the second retries

t1: BEGIN WORK

t2: BEGIN WORK

t1: UPDATE b SET n = 10 WHERE META().id = 'k1'

t2: UPDATE b SET n = 10 WHERE META().id = 'k1'
    error 17020
    cause {"raise": "failed", "retry": true, "rollback": true}

t1: INSERT INTO b VALUES ('k3', {'n': 1})

t2: INSERT INTO b VALUES ('k3', {'n': 1})
    error 17020

t1: ROLLBACK

t2: INSERT INTO b VALUES ('k3', {'n': 2})

t2: COMMIT

SELECT RAW n FROM b USE KEYS ['k1', 'k3']
    [1, 2]

# a single statement can be a transaction

{"statement": "INSERT INTO b VALUES ('k3', {}), ('k1', {})", "tximplicit": true}
    error 17012

{"statement": "UPDATE b SET n = n + 1 RETURNING RAW n", "tximplicit": true}
    [2, 3]
    changed 2

ALL
    [{"id": "k1", "n": 2}, {"id": "k2", "n": 3}]

{"statement": "COMMIT", "tximplicit": true}
    error 17002

# statements that cannot be in a transaction

t1: BEGIN

t1: CREATE PRIMARY INDEX ON b
    error 17002

t1: BEGIN WORK
    error 17006

t1: EXECUTE __other
    error 4040

t1: SELEC 1
    error 3000

t1: SET TRANSACTION ISOLATION LEVEL READ COMMITTED

COMMIT
    error 17004

{"statement": "SELECT 1", "txid": "none"}
    error 17004

{"statement": "BEGIN WORK", "txdata": {"id": {"atmpt": "a.b", "txn": "t"}}}
    error 17006

t1: COMMIT
