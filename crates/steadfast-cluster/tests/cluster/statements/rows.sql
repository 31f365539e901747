# literals, parameters and operators

SELECT 1=1
    [{"$1": true}]

{"statement": "SELECT $1 AS x, ? y, ?", "args": ["one", [2]]}
    [{"x": "one", "y": "one", "$1": [2]}]

{"statement": "SELECT $name AS n, $name.a, $2[0] z", "args": ["one", [2]], "$name": {"a": 1}}
    [{"n": {"a": 1}, "a": 1, "z": 2}]

SELECT RAW {'a': [1, null, missing], 'b': missing}
    [{"a": [1, null, null]}]

SELECT RAW 1 + 2 * 3 - 4 / 2
    [5]

SELECT RAW 1 / 2
    [0.5]

SELECT RAW 1 / 0
    [null]

SELECT RAW -(-9223372036854775807 - 1)
    [9223372036854775808.0]

SELECT RAW 'a' || "b"
    ["ab"]

SELECT RAW NOT 1 = 2 AND 'a' < 'b' OR false
    [true]

SELECT RAW 2 IN [1, 2.0]
    [true]

SELECT RAW 3 NOT IN [1, 2]
    [true]

SELECT RAW null = 1
    [null]

SELECT RAW null IS NULL
    [true]

SELECT RAW missing IS NOT MISSING
    [false]

SELECT RAW 1 < 'a'
    [null]

SELECT RAW 7 % 4
    [3]

SELECT RAW 'abc' LIKE 'a%'
    [true]

SELECT RAW 'abc' LIKE '_b_'
    [true]

SELECT RAW 'abc' NOT LIKE '%b'
    [true]

SELECT RAW 'a%c' LIKE 'a\\%c'
    [true]

SELECT RAW 'abc' LIKE 'a\\%c'
    [false]

SELECT RAW '' LIKE '%%'
    [true]

SELECT RAW 1 LIKE '%'
    [null]

SELECT RAW 2 BETWEEN 1 AND 2 AND true
    [true]

SELECT RAW 3 NOT BETWEEN 1 AND 2
    [true]

SELECT RAW UPPER('a') || LOWER('B')
    ["Ab"]

SELECT RAW IFMISSINGORNULL(missing, null, 2)
    [2]

SELECT RAW IFMISSING(missing, null)
    [null]

SELECT RAW ROUND(2.6) + LENGTH('ab')
    [5]

SELECT RAW TYPE(missing)
    ["missing"]

# fields, elements and metadata of a document

SELECT * FROM b AS d USE KEYS 'a1'
    [{"d": {"name": "Ada", "country": "FR", "fleet": 3}}]

SELECT b.* FROM b USE KEYS 'a1'
    [{"name": "Ada", "country": "FR", "fleet": 3}]

SELECT META().id, META(b).flags AS f FROM b USE KEYS ['a4', 'none', 'a1']
    [{"id": "a4", "f": 7}, {"id": "a1", "f": 7}]

SELECT tags[-1] AS last, b.tags[9], address.city, nope FROM b USE KEYS 'a3'
    [{"last": "y"}]

SELECT RAW nope IS MISSING AND address IS VALUED AND name IS NOT NULL FROM b USE KEYS 'a4'
    [true]

# order, limit, distinct

SELECT RAW name FROM b ORDER BY fleet DESC
    ["bob", "Cy_", "Ada", "Dee"]

SELECT RAW name FROM b ORDER BY fleet LIMIT 2
    ["Dee", "Ada"]

SELECT RAW name FROM b ORDER BY country, name DESC LIMIT 2 OFFSET 1
    ["Dee", "Cy_"]

SELECT UPPER(name) AS big FROM b ORDER BY big LIMIT 1
    [{"big": "ADA"}]

SELECT DISTINCT country FROM b ORDER BY country
    [{"country": "DE"}, {"country": "FR"}]

SELECT RAW name FROM b WHERE name LIKE '%e%' OR name LIKE 'Cy\\_'
    ["Cy_", "Dee"]

SELECT RAW name FROM b WHERE country IN ['FR', 'IT']
    ["Ada"]

SELECT RAW name FROM b WHERE fleet BETWEEN 4 AND 10 ORDER BY name
    ["Cy_", "bob"]

SELECT RAW x.name FROM b AS x USE INDEX (i USING GSI) WHERE x.fleet % 2 = 0
    ["bob"]

SELECT RAW META().id FROM b WHERE fleet > 3 LIMIT 1 OFFSET 1
    ["a3"]

# groups

SELECT country, COUNT(*) AS n, SUM(fleet) AS s, AVG(fleet) AS a FROM b GROUP BY country ORDER BY country
    [{"country": "DE", "n": 3, "s": 15, "a": 7.5}, {"country": "FR", "n": 1, "s": 3, "a": 3}]

SELECT RAW country FROM b GROUP BY country HAVING COUNT(*) > 1
    ["DE"]

SELECT COUNT(fleet) AS c, COUNT(DISTINCT country) AS d, MIN(name) AS l, MAX(fleet) AS m FROM b
    [{"c": 3, "d": 2, "l": "Ada", "m": 10}]

SELECT COUNT(*) AS n FROM b WHERE false
    [{"n": 0}]

SELECT SUM(fleet) AS n FROM b WHERE false
    [{"n": null}]

SELECT RAW ARRAY_AGG(name) FROM b WHERE country = 'FR'
    [["Ada"]]

SELECT country FROM b GROUP BY country ORDER BY COUNT(*) DESC LIMIT 1
    [{"country": "DE"}]

SELECT COUNT(*) AS c
    [{"c": 1}]

# analytics has literals and parameters

analytics: {"statement": "SELECT $1 AS x, $name AS n", "args": [1], "$name": "y", "readonly": true}
    [{"x": 1, "n": "y"}]

analytics: SELECT VALUE 1 = 1 WHERE true
    [true]
