SELECT nextval('lock_tokens') AS token
