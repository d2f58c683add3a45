-- An insert into `archived_shipments` is confirmed when these rows are written too.
CREATE MATERIALIZED VIEW IF NOT EXISTS archived_index_rows TO archived_index AS
SELECT
    channel, tupleElement(entry, 1) AS kind, tupleElement(entry, 2) AS value, id, company, batch, updated, shipped, status,
    if(kind < 3, 0, reference) AS order_reference, custom1, custom2, custom3
FROM
(
    SELECT
        channel, id, company, batch, updated, shipped, status, order_reference AS reference, custom1, custom2, custom3, archived_on,
        arrayConcat(
            [(0, 0), (1, shipped), (2, updated)]::Array(Tuple(UInt8, UInt64)),
            arrayMap(number -> (3, number), arrayDistinct(numbers))::Array(Tuple(UInt8, UInt64)),
            arrayFilter(
                one -> tupleElement(one, 2) != 0,
                [(4, reference), (5, custom1), (6, custom2), (7, custom3)]::Array(Tuple(UInt8, UInt64))
            )
        ) AS entries
    FROM archived_shipments
)
ARRAY JOIN entries AS entry
