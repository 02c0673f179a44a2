UPDATE sales SET ready = true WHERE tenant = $1 AND id = $2 AND NOT ready
