-- Facts of an event or a message, each once with the shipments that it went to, in the order received. Parameters: courier,
-- factKey and messageId (empty: any), since, afterMs, afterMessageIndex and afterMessage (a page begins behind them; milliseconds), limit.
SELECT
    fact_key AS factKey,
    message_id AS messageId,
    place AS messageIndex,
    toUnixTimestamp64Milli(received_at) AS receivedAtMs,
    arraySort(groupUniqArray(100)(shipment_id)) AS shipmentIds
FROM
(
    SELECT shipment_id, fact_key, message_id, place, received_at
    FROM events FINAL
    WHERE courier = {courier:String}
        AND received_at >= fromUnixTimestamp64Milli({since:Int64})
        AND ({factKey:String} = '' OR fact_key = {factKey:String})
        AND ({messageId:String} = '' OR message_id = {messageId:String})
)
WHERE (toUnixTimestamp64Milli(received_at), toInt64(place), message_id)
    > ({afterMs:Int64}, {afterMessageIndex:Int64}, {afterMessage:String})
GROUP BY fact_key, message_id, place, received_at
ORDER BY receivedAtMs, messageIndex, messageId
LIMIT {limit:UInt32}
