-- Can anything be committed? A message in the log that nobody reads needs neither a table nor rights, and its commit waits for a synchronous
-- standby as every other does. A transaction that may only read could write it all the same, so that is asked first.
-- One at a time, of all processes: a commit that waits for a standby keeps its locks, also when whoever sent it has given up. Each of them would
-- leave a connection of the server behind that hangs until the standby is back. False: not now, or that one has not come back yet.
SELECT CASE WHEN current_setting('transaction_read_only')::boolean THEN false
            WHEN NOT pg_try_advisory_xact_lock(hashtextextended('holdfast proves that it can write', 0)) THEN false
            ELSE pg_logical_emit_message(true, 'holdfast', '') IS NOT NULL END AS written
