UPDATE sale_schedules SET paused = $3 WHERE tenant = $1 AND id = $2 RETURNING id
