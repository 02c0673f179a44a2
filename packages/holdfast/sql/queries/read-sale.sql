SELECT terms, ready, terms = $3::jsonb AS same FROM sales WHERE tenant = $1 AND id = $2
