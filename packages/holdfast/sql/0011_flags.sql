-- Feature flags: what they are, and every change that was ever made to them. Processes have copies of it, in Redis and in their memory.

-- Changes of a tenant's flags come one after the other: who changes holds this row. Each has the next number.
CREATE TABLE flag_heads (
  tenant text COLLATE "C" PRIMARY KEY,
  revision bigint NOT NULL,
  -- By chance, with every change: the same number with another mark is of another history (Postgres was put back).
  mark integer NOT NULL
);

CREATE TABLE flags (
  tenant text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  -- The number of its last change. None comes twice, also not for one that was deleted and made again.
  version bigint NOT NULL,
  -- on, percentage, rules, description.
  definition jsonb NOT NULL,
  -- Off, whatever the definition says. Changes of that leave it as it is.
  killed boolean NOT NULL,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  PRIMARY KEY (tenant, name)
);

-- Who changed what, when and why. There is a row for every number, written with the change itself.
CREATE TABLE flag_changes (
  tenant text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  kind text NOT NULL CHECK (kind IN ('put', 'kill', 'unkill', 'delete')),
  at bigint NOT NULL,
  made_by text NOT NULL,
  why text,
  -- As in a flag's definition, and whether it was killed. Null: there was none, or there is none any more.
  before jsonb,
  after jsonb,
  PRIMARY KEY (tenant, revision)
);
CREATE INDEX flag_changes_by_name ON flag_changes (tenant, name, revision);

CREATE FUNCTION refuse_flag_history_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'What was done to flags is never changed or deleted';
END $$;
CREATE TRIGGER flag_changes_are_final BEFORE UPDATE OR DELETE ON flag_changes
  FOR EACH ROW EXECUTE FUNCTION refuse_flag_history_change();
CREATE TRIGGER flag_changes_stay BEFORE TRUNCATE ON flag_changes
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_flag_history_change();

CREATE FUNCTION flag_json(f flags) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT f.definition || jsonb_build_object(
    'name', f.name, 'version', f.version, 'killed', f.killed, 'createdAt', f.created_at, 'changedAt', f.changed_at
  )
$$;

-- One change and its row in the history, or neither. `expected`: the version that it has to have, 0: that there is none, null: whatever
-- there is. `flag`: as it is now; null: there is none. Outcomes: changed, unchanged (it is so already), conflict (another version), missing,
-- full (the tenant would have more flags, or longer ones, than it may).
CREATE FUNCTION change_flag(
  of_tenant text, of_name text, what text, given jsonb, expected bigint, by_whom text, because text, flags_max integer, bytes_max integer,
  OUT outcome text, OUT flag jsonb
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  old_flag flags%ROWTYPE;
  new_flag flags%ROWTYPE;
  was_there boolean;
  next_revision bigint;
BEGIN
  INSERT INTO flag_heads (tenant, revision, mark) VALUES (of_tenant, 0, random_mark()) ON CONFLICT DO NOTHING;
  SELECT h.revision + 1 INTO next_revision FROM flag_heads h WHERE h.tenant = of_tenant FOR UPDATE;
  SELECT f.* INTO old_flag FROM flags f WHERE f.tenant = of_tenant AND f.name = of_name;
  was_there := FOUND;
  IF was_there THEN
    flag := flag_json(old_flag);
  END IF;

  IF NOT was_there AND what <> 'put' THEN
    outcome := 'missing';
  ELSIF expected <> coalesce(old_flag.version, 0) THEN
    outcome := 'conflict';
  ELSIF was_there AND ((what = 'put' AND old_flag.definition = given) OR (what = 'kill' AND old_flag.killed) OR (what = 'unkill' AND NOT old_flag.killed)) THEN
    outcome := 'unchanged';
  ELSIF what = 'put' AND (
    SELECT count(*) >= flags_max OR coalesce(sum(octet_length(f.definition::text)), 0) + octet_length(given::text) > bytes_max
    FROM flags f WHERE f.tenant = of_tenant AND f.name <> of_name
  ) THEN
    outcome := 'full';
  ELSE
    outcome := 'changed';
  END IF;
  IF outcome <> 'changed' THEN
    RETURN;
  END IF;

  new_flag.tenant := of_tenant;
  new_flag.name := of_name;
  new_flag.version := next_revision;
  new_flag.definition := CASE what WHEN 'put' THEN given ELSE old_flag.definition END;
  new_flag.killed := CASE what WHEN 'kill' THEN true WHEN 'unkill' THEN false ELSE coalesce(old_flag.killed, false) END;
  new_flag.changed_at := clock_ms();
  new_flag.created_at := coalesce(old_flag.created_at, new_flag.changed_at);
  UPDATE flag_heads h SET revision = next_revision, mark = random_mark() WHERE h.tenant = of_tenant;
  DELETE FROM flags f WHERE f.tenant = of_tenant AND f.name = of_name;
  flag := NULL;
  IF what <> 'delete' THEN
    INSERT INTO flags SELECT new_flag.*;
    flag := flag_json(new_flag);
  END IF;
  INSERT INTO flag_changes (tenant, revision, name, kind, at, made_by, why, before, after)
  VALUES (
    of_tenant, next_revision, of_name, what, new_flag.changed_at, by_whom, because,
    CASE WHEN was_there THEN old_flag.definition || jsonb_build_object('killed', old_flag.killed) END,
    CASE WHEN what <> 'delete' THEN new_flag.definition || jsonb_build_object('killed', new_flag.killed) END
  );
END $$;
