-- Nothing more is decided. Unless an operator has let things go on meanwhile, under epochs above what is missing.
UPDATE settings
SET stopped_at = coalesce(stopped_at, clock_ms()), stopped_because = coalesce(stopped_because, $2), stopped_epoch = greatest(stopped_epoch, $1)
WHERE epoch_floor < $1
