-- No row: it is another process's by now, or was deleted.
UPDATE webhooks SET position = $3, mark = $4 WHERE id = $1 AND holder = $2 RETURNING id
