CREATE PRIMARY INDEX ON `b`
    []

CREATE INDEX `i` ON b(name, LOWER(country) DESC) WHERE fleet > 1 USING GSI
    []

CREATE INDEX i IF NOT EXISTS ON b(name)
    []

CREATE INDEX later ON default:b.s.c(a) WITH {"defer_build": true}
    []

DROP INDEX nope IF EXISTS ON b
    []

{"statement": "SELECT RAW idx.name FROM system:indexes AS idx WHERE (bucket_id IS MISSING AND keyspace_id = $bucket) OR bucket_id = $bucket ORDER BY is_primary DESC, name ASC", "$bucket": "b"}
    ["#primary", "i", "later"]

SELECT index_key, `condition` FROM system:indexes WHERE name = 'i'
    [{"index_key": ["`name`", "LOWER(country)"], "condition": "fleet > 1"}]

SELECT RAW scope_id || '.' || keyspace_id FROM system:indexes WHERE state = 'deferred'
    ["s.c"]

BUILD INDEX ON b.s.c(`later`)

SELECT RAW name FROM system:indexes WHERE state = 'deferred'
    []

CREATE PRIMARY INDEX ON b
    error 4300

CREATE INDEX i ON b(x)
    error 4300

DROP INDEX nope ON b
    error 12016

DROP INDEX b.nope
    error 12016

BUILD INDEX ON b(nope)
    error 12016

CREATE INDEX i ON nope(x)
    error 12003

DROP PRIMARY INDEX ON b USING GSI

DROP PRIMARY INDEX ON b
    error 12004

CREATE INDEX p ON b(n, d.`a b`.c, `d.a`) PARTITION BY HASH(META().id, y)

SELECT index_key, `partition` FROM system:indexes WHERE name = 'p'
    [{"index_key": ["`n`", "((`d`.`a b`).`c`)", "`d.a`"], "partition": "HASH(META().id, `y`)"}]

DROP INDEX p ON b

SELECT RAW path FROM system:keyspaces WHERE `bucket` = 'b' AND name = 'c'
    ["default:b.s.c"]
