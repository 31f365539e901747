UPDATE b SET fleet = IFMISSING(fleet, 0) + 1, address.city = 'Bonn', b.tags[1] = 'z' UNSET name WHERE country = 'DE' RETURNING META().id, b.*
    [{"id": "a2", "country": "DE", "fleet": 11}, {"id": "a3", "country": "DE", "fleet": 6, "tags": ["x", "z"]}, {"id": "a4", "country": "DE", "address": {"city": "Bonn"}, "fleet": 1}]
    changed 3

SELECT RAW fleet FROM b USE KEYS ['a1', 'a2']
    [3, 11]

UPDATE b SET x = 1 LIMIT 2
    changed 2

DELETE FROM b LIMIT 1 RETURNING RAW META().id
    ["a1"]

UPSERT INTO b (KEY, VALUE) VALUES ('n', {'a': 1}) RETURNING a
    [{"a": 1}]

# of several rows, some can be applied

INSERT INTO b VALUES ('dup', 1)
    changed 1

INSERT INTO b VALUES ('fresh', 1), VALUES ('dup', 2)
    error 12009
    changed 1

INSERT INTO b VALUES ('dup', 2), VALUES ('late', 1)
    error 12009
    changed 1

SELECT RAW META().id FROM b USE KEYS ['fresh', 'late']
    ["fresh", "late"]

INSERT INTO b VALUES ('dup', 1)
    error 12009

# returned rows come before the error

INSERT INTO b VALUES ('next', 1), VALUES ('dup', 2) RETURNING META().id
    error 12009 200
    [{"id": "next"}]

# a collection is named whole or by its context

UPSERT INTO default:`b`.s.c VALUES ('k', {'a': 1})
    changed 1

SELECT RAW c.a FROM `b`.`s`.`c` USE KEYS 'k'
    [1]

{"statement": "SELECT RAW a FROM c USE KEYS 'k'", "query_context": "default:`b`.`s`"}
    [1]

SELECT RAW 1 FROM b USE KEYS 'k'
    []

# a request that may only read

{"statement": "UPSERT INTO b VALUES ('k', 1)", "readonly": true}
    error 1000 403

{"statement": "UPDATE b SET a = 1", "readonly": true}
    error 1000

{"statement": "SELECT RAW 1", "readonly": true}
    [1]

# a plan that writes is still a write

{"statement": "PREPARE w AS UPSERT INTO b VALUES ($1, 1)", "readonly": true}

{"prepared": "w", "readonly": true, "args": ["k"]}
    error 1000

{"prepared": "w", "args": ["k"]}
    changed 1

# an invalid RETURNING writes nothing

UPSERT INTO b VALUES ('never', 1) RETURNING COUNT(*)
    error 3000

UPSERT INTO b VALUES ('never', 1) RETURNING $1
    error 5010

SELECT RAW 1 FROM b USE KEYS 'never'
    []
