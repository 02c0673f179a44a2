SELECT secret, created_at FROM settings
