# what only a real server has is never called an error of the user

SELECT a FROM b JOIN c ON true
    error 1020 not supported by this cluster: script

SELECT a FROM b x LEFT JOIN c y ON 1
    error 1020 LEFT

SELECT a FROM b UNNEST c
    error 1020 UNNEST

SELECT a FROM b, c
    error 1020 a second keyspace in FROM

SELECT a FROM [1, 2] AS a
    error 1020 an expression in FROM

SELECT a FROM (SELECT 1) AS a
    error 1020 an expression in FROM

SELECT * FROM ARRAY_RANGE(0, 0) AS x
    error 1020 a function in FROM

FROM b SELECT a
    error 1020

(SELECT 1) UNION (SELECT 2)
    error 1020

SELECT 1 UNION SELECT 2
    error 1020 UNION

SELECT SOUNDEX(1)
    error 1020 the function SOUNDEX

SELECT CASE WHEN 1 THEN 2 END
    error 1020 CASE

SELECT (SELECT 1)
    error 1020 a subquery

SELECT EXISTS [1]
    error 1020 EXISTS

SELECT [1, 2][0:1]
    error 1020 a slice

SELECT x[*] FROM b
    error 1020 a slice

SELECT 1 IS UNKNOWN
    error 1020 UNKNOWN

EXPLAIN SELECT 1
    error 1020 EXPLAIN

EXECUTE FUNCTION f()
    error 1020 EXECUTE FUNCTION

CREATE FUNCTION f() { 1 }
    error 1020 CREATE

ALTER INDEX a ON b
    error 1020 ALTER

UPDATE STATISTICS FOR b
    error 1020 UPDATE

WITH a AS (1) SELECT a
    error 1020 WITH

UPDATE b SET META().expiration = 1
    error 1020 a change of META()

SELECT * FROM system:vitals
    error 1020

MERGE INTO b
    error 1020 MERGE

INSERT INTO b (KEY, VALUE, OPTIONS) VALUES ('k', 1, {'expiration': 5})
    error 1020

UPSERT INTO b VALUES ('k', 1, {'expiration': 5})
    error 1020 OPTIONS

INSERT INTO b SELECT 1
    error 1020 INSERT of a SELECT

analytics: CREATE DATAVERSE d
    error 25000 not supported by this cluster: script

analytics: CREATE INDEX i ON ds (name:string)
    error 25000

analytics: CONNECT LINK Local
    error 25000

analytics: DISCONNECT LINK Local
    error 25000

analytics: SELECT d.* FROM Metadata.`Dataset` d
    error 25000 not supported by this cluster: script

# syntax

SELEC 1
    error 3000 400

SELECT
    error 3000

SELECT FROM
    error 3000

SELECT 1 FROM
    error 3000

SELECT 1 1
    error 3000

SELECT a FROM b ORDER a
    error 3000

SELECT a FROM b GROUP a
    error 3000

SELECT a LIKE
    error 3000

SELECT a BETWEEN 1 OR 2
    error 3000

SELECT UPPER()
    error 3000

SELECT COUNT()
    error 3000

UPDATE b
    error 3000

UPDATE b SET
    error 3000

UPDATE b SET a
    error 3000

CREATE INDEX ON b(a)
    error 3000

CREATE INDEX i ON b
    error 3000

DROP INDEX
    error 3000

BUILD INDEX b
    error 3000

SELECT (1
    error 3000

SELECT [1,
    error 3000

SELECT {"a" 1}
    error 3000

INSERT INTO b VALUES
    error 3000

INSERT INTO b VALUES ('k')
    error 3000

DELETE b
    error 3000

SELECT 1; SELECT 2
    error 3000

PREPARE PREPARE SELECT 1
    error 3000

PREPARE COMMIT
    error 3000

BEGIN 1
    error 3000

SAVEPOINT
    error 3000

ROLLBACK TO s
    error 3000

START TRANSACTION ISOLATION LEVEL SERIALIZABLE
    error 3000

SELECT 'a
    error 3000

SELECT `a
    error 3000

SELECT /* a
    error 3000

SELECT 1.2.3
    error 3000

SELECT $
    error 3000

SELECT #
    error 3000

SELECT '\u12'
    error 3000

SELECT "\
    error 3000

SELECT 1e
    error 3000

# values that are not there

SELECT $3
    error 5010 500 positional parameter $3

SELECT $0
    error 5010 positional parameter $0

SELECT $other
    error 5010 named parameter $other

SELECT field
    error 3000 Ambiguous reference

SELECT *
    error 3000 Ambiguous reference

SELECT META()
    error 3000 needs a keyspace

SELECT * FROM nope
    error 12003 500

SELECT * FROM b.s.nope
    error 12021 500

SELECT * FROM b._default.nope
    error 12003 500

{"statement": "SELECT * FROM c", "query_context": "default:`b`.`nope`"}
    error 12021 500

{"statement": "SELECT * FROM c", "query_context": "default:`nope`.`nope`"}
    error 12003 500 default:nope.nope.c

{"statement": "SELECT * FROM nope", "query_context": "default:`b`.`_default`"}
    error 12003 500 default:b._default.nope

SELECT * FROM other:keyspaces
    error 12003 500

SELECT * FROM b USE KEYS [1]
    error 5370 500

UPSERT INTO b VALUES (1, 1)
    error 5070 500

# requests

{}
    error 1050 400

{"statement": "SELECT 1", "prepared": "p"}
    error 1060 400

{"statement": "SELECT 1", "args": 1}
    error 1070 400

{"prepared": "nope"}
    error 4040 404

{"prepared": "nope", "encoded_plan": "?"}
    error 4070 500

{"statement": "SELECT 1", "scan_consistency": "bogus"}
    error 1030 400

{"statement": "SELECT 1", "profile": "bogus"}
    error 1030 400

{"statement": "SELECT 1", "timeout": "soon"}
    error 1040 400

{"statement": "SELECT 1", "timeout": 10}
    error 1070 400

{"statement": "SELECT 1", "readonly": "perhaps"}
    error 1070 400

{"statement": "SELECT 1", "max_parallelism": "many"}
    error 1070 400

{"statement": "SELECT 1", "readnoly": true}
    error 1065 400

{"statement": "SELECT RAW 1", "metrics": "false", "timeout": "75s", "$a": 1, "@b": 2, "scan_consistency": "REQUEST_PLUS", "max_parallelism": "4", "args": null}
    [1]

{"statement": "SELECT RAW 1", "timeout": "0"}
    [1]

{"statement": "SELECT RAW 1", "timeout": "-1s"}
    [1]

{"statement": "SELECT RAW 1", "timeout": "1m14.999940351s"}
    [1]

{"statement": "UPSERT INTO b VALUES ('k', 1)", "timeout": "1ns"}
    error 1080

# analytics

analytics: SELEC 1
    error 24000 400

analytics: PREPARE SELECT 1
    error 24000 400

analytics: SELECT * FROM nope
    error 24045 400

analytics: DELETE FROM nope USE KEYS 'k'
    error 24045 400

analytics: {"statement": "SELECT 1", "query_context": "default:`b`.`_default`"}
    error 24034 400

analytics: {}
    error 21025 400
