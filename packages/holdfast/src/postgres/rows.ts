import pg from 'pg'

/**
 * How columns become values, fixed here: an application may have changed the parsers of `pg` for itself (bigint to number is
 * common), and its choice must not reach our rows. A bigint stays a string: exact, and the caller decides what fits.
 */
const SCALARS: Record<number, (text: string) => unknown> = {
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
  [pg.types.builtins.UUID]: String,
  [pg.types.builtins.BYTEA]: (text) => Buffer.from(text.slice(2), 'hex'),
  [pg.types.builtins.JSON]: (text) => JSON.parse(text),
  [pg.types.builtins.JSONB]: (text) => JSON.parse(text),
  // The session's time zone is UTC, so that the text ends in +00, which Date.parse does not take without the minutes.
  [pg.types.builtins.TIMESTAMPTZ]: (text) => new Date(text.replace(' ', 'T').replace('+00', 'Z')),
}

/** Of `pg`'s types it says that it is a function. */
const { create: arrayOf } = pg.types.arrayParser as unknown as {
  create(text: string, one: (text: string) => unknown): { parse(): unknown[] }
}

/** Arrays of those have types of their own, which `pg` has no names for. */
const ARRAYS: Record<number, number> = {
  1000: pg.types.builtins.BOOL,
  1007: pg.types.builtins.INT4,
  1016: pg.types.builtins.INT8,
  1009: pg.types.builtins.TEXT,
  1001: pg.types.builtins.BYTEA,
  2951: pg.types.builtins.UUID,
  3807: pg.types.builtins.JSONB,
}

const PARSERS: Record<number, (text: string) => unknown> = {
  ...SCALARS,
  ...Object.fromEntries(
    Object.entries(ARRAYS).map(([array, one]) => [
      array,
      (text: string) => arrayOf(text, SCALARS[one] as (text: string) => unknown).parse(),
    ]),
  ),
}

export const ROW_TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    (format ?? 'text') === 'text' && PARSERS[oid]
      ? PARSERS[oid]
      : pg.types.getTypeParser(oid, format ?? 'text')) as pg.CustomTypesConfig['getTypeParser'],
}
