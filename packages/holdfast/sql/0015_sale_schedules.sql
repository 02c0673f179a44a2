-- Sales that come again and again, one a slot. Here stand what they are made from and which were opened, so that there is one schedule for
-- all processes, and it outlives them.
CREATE TABLE sale_schedules (
  tenant text NOT NULL,
  id text COLLATE "C" NOT NULL,
  -- What stands for it in logs, where ids must not.
  number bigint GENERATED ALWAYS AS IDENTITY,
  -- How long slots are, where they begin, how far ahead they are opened, and what a sale is opened with.
  template jsonb NOT NULL,
  -- What every sale has; null: whoever opens one makes its items.
  items jsonb,
  -- How many those are: who only looks does not have to read them.
  item_count integer,
  -- Another one with each change of the two above.
  version integer NOT NULL DEFAULT 1,
  paused boolean NOT NULL DEFAULT false,
  -- Where the last slot ends that was opened. Who opens the next one moves it, by compare: so there is one of each, and none overlaps.
  opened_until bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, id)
);

CREATE TABLE sale_slots (
  tenant text NOT NULL,
  schedule text COLLATE "C" NOT NULL,
  starts_at bigint NOT NULL,
  ends_at bigint NOT NULL,
  sale text COLLATE "C" NOT NULL,
  -- Of the schedule, when it was opened. All that somebody else needs to finish it stands with its sale.
  version integer NOT NULL,
  opened_at bigint NOT NULL,
  PRIMARY KEY (tenant, schedule, starts_at)
);

-- To find what somebody has begun and left: sales that are not ready are few, and each slot is found by its sale.
CREATE INDEX sales_not_ready ON sales (tenant, id) WHERE NOT ready;
CREATE INDEX sale_slots_by_sale ON sale_slots (tenant, sale);
