-- The read-only user of SQL access (CLICKHOUSE_READ_URL) and of the data team, on a ClickHouse server. Run it once as an
-- administrator:
--
--   clickhouse-client --param_password='…' --queries-file analytics/sql/read-only-user.sql
--
-- Put your own networks after HOST IP first. Tables of other names, system tables beyond the catalogue, files and the
-- network stay out of its reach: it is granted nothing but these. Names are those of the database in CLICKHOUSE_URL;
-- `waybill` in compose.yaml. Waybill checks all of it before the first statement.
CREATE SETTINGS PROFILE IF NOT EXISTS waybill_reader SETTINGS
    readonly = 1,
    max_execution_time = 30,
    max_memory_usage = 1073741824,
    max_result_rows = 1000000,
    max_result_bytes = 268435456,
    result_overflow_mode = 'throw',
    max_threads = 2,
    enable_analyzer = 1,
    output_format_json_quote_64bit_integers = 0,
    output_format_pretty_color = 0,
    do_not_merge_across_partitions_select_final = 1;

CREATE USER IF NOT EXISTS waybill_reader
    IDENTIFIED WITH sha256_password BY {password:String}
    HOST IP '10.0.0.0/8', '127.0.0.1', '::1'
    SETTINGS PROFILE waybill_reader;

GRANT SELECT ON waybill.deliveries TO waybill_reader;
GRANT SELECT ON waybill.events TO waybill_reader;
GRANT SELECT ON waybill.event_outcomes TO waybill_reader;
GRANT SELECT ON waybill.attempts TO waybill_reader;
GRANT SELECT ON waybill.lanes TO waybill_reader;
GRANT SELECT ON waybill.courier_performance TO waybill_reader;
GRANT SELECT ON waybill.event_quality TO waybill_reader;
GRANT SELECT ON waybill.sla TO waybill_reader;
GRANT SELECT ON waybill.on_time TO waybill_reader;
GRANT SELECT ON waybill.endpoint_health TO waybill_reader;
