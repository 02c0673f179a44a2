UPDATE webhooks SET holder = NULL, lease_until = 0 WHERE holder = $1
