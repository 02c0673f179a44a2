/** What a key or a token may do. Each stands for itself: none includes another. */
export const SCOPES = ['read', 'spend', 'fund', 'admin', 'flags', 'sell', 'buy'] as const

export type Scope = (typeof SCOPES)[number]

export const SCOPE_MEANINGS: Record<Scope, string> = {
  read: 'see wallets, holds, sessions, entries, sales and events',
  spend:
    'take money out: debits, holds and what becomes of them, sessions, transfers, paying for what is bought in sales',
  fund: 'open wallets and put money in: credits, refunds',
  admin: 'freeze, unfreeze, close, allow credit, audit, and say where events are told',
  flags: 'see and change feature flags',
  sell: 'open and close sales, and have them come again by a schedule',
  buy: 'check out, purchase and cancel in sales, for any user',
}

export const isScope = (text: string): text is Scope => (SCOPES as readonly string[]).includes(text)
