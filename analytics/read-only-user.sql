-- A read-only user for the data team, on a ClickHouse server. Run it once as an administrator:
--
--   clickhouse-client --param_password='…' --queries-file analytics/read-only-user.sql
--
-- Put your own networks after HOST IP first. Tables of other names, system tables beyond the catalogue, files and the network stay out of its reach: it is granted
-- nothing but these. Names are those of the database in CLICKHOUSE_URL; `waybill` in compose.yaml.
CREATE SETTINGS PROFILE IF NOT EXISTS waybill_reader SETTINGS
    readonly = 1,
    max_execution_time = 60,
    max_memory_usage = 4000000000,
    max_result_rows = 10000000,
    max_threads = 4,
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
GRANT SELECT ON waybill.endpoint_health TO waybill_reader;
