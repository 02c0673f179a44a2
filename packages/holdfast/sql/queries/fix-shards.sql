UPDATE settings SET shards = coalesce(shards, $1) RETURNING shards
