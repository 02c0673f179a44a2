const NAME = /^([a-z0-9_-]{1,64}):([0-9a-f]{32})$/

/** Whose name on an agenda it is; null: nobody's. Somebody else has written it there, and it must not keep others from being looked after. */
export function readAgendaName(name: string): { tenant: string; ref: string } | null {
  const [, tenant, ref] = NAME.exec(name) ?? []
  return tenant && ref ? { tenant, ref } : null
}
