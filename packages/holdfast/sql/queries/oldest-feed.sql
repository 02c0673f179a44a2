SELECT position, mark FROM feed ORDER BY position LIMIT 1
