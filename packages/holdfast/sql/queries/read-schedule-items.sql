-- None: it was changed since.
SELECT items FROM sale_schedules WHERE tenant = $1 AND id = $2 AND version = $3
