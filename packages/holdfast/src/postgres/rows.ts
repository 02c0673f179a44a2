import pg from 'pg'

/**
 * How columns become values, fixed here: an application may have changed the parsers of `pg` for itself (bigint to number is
 * common), and its choice must not reach our rows. A bigint stays a string: exact, and the caller decides what fits.
 */
const PARSERS: Record<number, (text: string) => unknown> = {
  [pg.types.builtins.BOOL]: (text) => text === 't',
  [pg.types.builtins.INT2]: Number,
  [pg.types.builtins.INT4]: Number,
  [pg.types.builtins.OID]: Number,
  [pg.types.builtins.INT8]: String,
  [pg.types.builtins.FLOAT4]: Number,
  [pg.types.builtins.FLOAT8]: Number,
  [pg.types.builtins.NUMERIC]: String,
  [pg.types.builtins.TEXT]: String,
  [pg.types.builtins.VARCHAR]: String,
  [pg.types.builtins.BYTEA]: (text) => Buffer.from(text.slice(2), 'hex'),
  [pg.types.builtins.JSON]: (text) => JSON.parse(text),
  [pg.types.builtins.JSONB]: (text) => JSON.parse(text),
  // The session's time zone is UTC, so that the text ends in +00, which Date.parse does not take without the minutes.
  [pg.types.builtins.TIMESTAMPTZ]: (text) => new Date(text.replace(' ', 'T').replace('+00', 'Z')),
}

export const ROW_TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    (format ?? 'text') === 'text' && PARSERS[oid]
      ? PARSERS[oid]
      : pg.types.getTypeParser(oid, format ?? 'text')) as pg.CustomTypesConfig['getTypeParser'],
}
