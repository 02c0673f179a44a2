UPDATE audit_shards SET lease_until = clock_ms() + $3::bigint WHERE shard = $1 AND holder = $2 AND lease_until > clock_ms() RETURNING shard
