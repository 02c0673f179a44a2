-- Settings as they hold for this very connection, after what Holdfast set on it; the defaults as they would be without that: of the server,
-- the database or the role.
SELECT
  current_setting('server_version_num')::integer AS version,
  current_setting('server_encoding') AS encoding,
  pg_is_in_recovery() AS in_recovery,
  current_setting('transaction_read_only') AS read_only,
  current_setting('transaction_isolation') AS isolation,
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit,
  (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit') AS default_synchronous_commit,
  current_setting('synchronous_standby_names') AS standby_names,
  (SELECT count(*)::integer FROM pg_stat_replication) AS replicas,
  -- Without the right to see them they all look asynchronous: then nothing is said about it.
  CASE WHEN pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
       THEN (SELECT count(*)::integer FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) END AS synchronous_replicas,
  least(
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer,
    (SELECT CASE WHEN rolconnlimit < 0 THEN 2147483647 ELSE rolconnlimit END FROM pg_roles WHERE rolname = current_user),
    (SELECT CASE WHEN datconnlimit < 0 THEN 2147483647 ELSE datconnlimit END FROM pg_database WHERE datname = current_database())
  ) AS connections,
  floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS clock
