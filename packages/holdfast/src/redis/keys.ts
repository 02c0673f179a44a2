import { createHmac } from 'node:crypto'
import { HoldfastError } from '../errors/index.js'
import { isSale, markRef } from '../machine/index.js'

/**
 * Every key in Redis is made here:
 *
 *   hf:<tenant>:{<shard>}:<purpose>:v1:<id>
 *   hf:acme:{17}:wallet:v1:9f86d081884c7d659a2feaa0c55ad015
 *   hf:*:{17}:agenda:v1:5d41402a
 *
 * The shard is the hash tag: what one script call touches together lies on one node, and nothing wider is tied to it.
 * `v1` is the layout of the value, so that another layout can live beside this one during an upgrade.
 *
 * The agenda is one for all tenants (`*` is no tenant's name): whoever works through it must not know them first. Its id is the
 * database's, so that two databases can share a Redis.
 *
 * A wallet's id is often a person's: it never stands in a key. In its place stands the wallet's `ref`, an HMAC of tenant
 * and id with a secret of the database's own. The same 128 bits are the wallet's primary key in Postgres.
 */
export interface KeysOptions {
  readonly tenant: string
  /** Made once for a database and kept there: with another one every wallet would be a different one. */
  readonly secret: Uint8Array
  /** Fixed when the database is made, for the same reason. */
  readonly shards: number
}

/** The ref of the bucket that a code leads to; null: it is no code. */
export function readCode(code: string): string | null {
  if (!/^c[A-Za-z0-9_-]{43}$/.test(code)) return null
  const ref = Buffer.from(code.slice(1), 'base64url').toString('hex').slice(0, 32)
  return isSale(ref) ? ref : null
}

/** What the keys of wallets look like, of whichever tenant. */
export const WALLET_KEYS = 'hf:*:wallet:v1:*'

/** Where it is tried what a user of Redis may do, of whichever database. */
export const RIGHTS_KEY = 'hf:*:{0}:probe:v1:rights'

/** Whose wallet a key is; null: it is none. */
export function readWalletKey(key: string): { tenant: string; ref: string } | null {
  const [, tenant, ref] = /^hf:([a-z0-9_-]{1,64}):\{\d+\}:wallet:v1:([0-9a-f]{32})$/.exec(key) ?? []
  return tenant && ref ? { tenant, ref } : null
}

/** Where a wallet is: its keys in Redis, and its name in Postgres and on the agenda. */
export interface Place {
  readonly tenant: string
  readonly ref: string
  readonly shard: number
  /** The wallet's state, holds, recent results and pending entries. */
  readonly walletKey: string
  /** It is a bucket of a sale, and has its stock beside it. Its ref says so. */
  readonly isSale: boolean
  readonly stockKey: string
  /** The advisory lease of whoever is loading the wallet. */
  readonly leaseKey: string
  readonly agendaKey: string
  readonly agendaName: string
}

const TENANT = /^[a-z0-9_-]{1,64}$/
const SECRET_BYTES_MIN = 16
/** More than a Cluster has slots would put no two shards further apart. */
const SHARDS_MAX = 16_384
/**
 * Places remembered, of all tenants together: an HMAC takes some 3 µs and the keys as much again, a look into two maps 20 ns (into one it was
 * 15). 8 MB when full; 9 where every wallet is another tenant's.
 */
const PLACES_MAX = 10_000

/**
 * Two generations instead of a list by use: found in the older one moves to the younger, and when the younger is full the older is dropped. As good
 * as LRU here, without work on every hit. In each a map for every tenant: one name for tenant and id would have to be made to be looked up.
 */
class Places {
  #younger = new Map<string, Map<string, Place>>()
  #older = new Map<string, Map<string, Place>>()
  /** In the younger ones. */
  #count = 0

  find(tenant: string, name: string): Place | undefined {
    const known = this.#younger.get(tenant)?.get(name)
    if (known !== undefined) return known
    const place = this.#older.get(tenant)?.get(name)
    return place && this.keep(tenant, name, place)
  }

  /** What was not found. */
  keep(tenant: string, name: string, place: Place): Place {
    if (this.#count >= PLACES_MAX / 2) {
      this.#older = this.#younger
      this.#younger = new Map()
      this.#count = 0
    }
    let places = this.#younger.get(tenant)
    if (!places) {
      places = new Map()
      this.#younger.set(tenant, places)
    }
    places.set(name, place)
    this.#count += 1
    return place
  }
}

export class Keys {
  readonly tenant: string
  readonly shards: number
  readonly #secret: Uint8Array
  readonly #database: string
  readonly #places: Places

  /** `others`: those of another tenant, with the same secret and shards. */
  constructor({ tenant, secret, shards }: KeysOptions, others?: Keys) {
    if (!TENANT.test(tenant)) {
      throw new HoldfastError(
        'invalid_argument',
        `tenant: expected 1 to 64 characters of a-z, 0-9, _ and -, got ${JSON.stringify(tenant)}`,
        { argument: 'tenant' },
      )
    }
    if (!(secret instanceof Uint8Array) || secret.length < SECRET_BYTES_MIN) {
      const message = `secret: expected at least ${SECRET_BYTES_MIN} bytes`
      throw new HoldfastError('invalid_argument', message, { argument: 'secret' })
    }
    if (!Number.isInteger(shards) || shards < 1 || shards > SHARDS_MAX) {
      const message = `shards: expected an integer from 1 to ${SHARDS_MAX}, got ${shards}`
      throw new HoldfastError('invalid_argument', message, { argument: 'shards' })
    }
    this.tenant = tenant
    this.shards = shards
    this.#secret = secret
    this.#database = others
      ? others.#database
      : createHmac('sha256', secret).update('database').digest('hex').slice(0, 8)
    this.#places = others ? others.#places : new Places()
  }

  /** Those of another tenant of this database. Small, and made at once: nobody need keep them, because what is remembered is shared. */
  forTenant(tenant: string): Keys {
    return new Keys({ tenant, secret: this.#secret, shards: this.shards }, this)
  }

  /** Where a wallet is, by its id. */
  of(walletId: string): Place {
    const known = this.#places.find(this.tenant, walletId)
    return known ?? this.#places.keep(this.tenant, walletId, this.place(markRef(this.#hmac(walletId), false)))
  }

  /** Where a bucket of a sale is, by the sale's id. */
  ofSale(saleId: string, bucket: number): Place {
    // No id of a wallet has a control character.
    const name = `\0sale\0${saleId}\0${bucket}`
    const known = this.#places.find(this.tenant, name)
    return known ?? this.#places.keep(this.tenant, name, this.place(markRef(this.#hmac(name), true)))
  }

  /** What stands for who buys in a sale. */
  buyer(saleId: string, user: string): string {
    return this.#hmac(`\0buyer\0${saleId}\0${user}`)
  }

  /**
   * The code of a checkout that a buyer makes under this key: where it is, and half an HMAC, so that nobody can guess one. The same buyer and
   * key make the same code; another buyer's key is another, whether they share a bucket or not. A letter first: what begins with a dash is
   * taken for an option wherever people type it.
   */
  code({ ref }: Place, buyer: string, key: string): string {
    return `c${Buffer.from(ref + this.#hmac(`\0code\0${ref}\0${buyer}\0${key}`), 'hex').toString('base64url')}`
  }

  /** What stands for a wallet wherever its id must not: 32 hex characters. */
  ref(walletId: string): string {
    return this.of(walletId).ref
  }

  /** From the ref's first 32 bits. */
  shard(ref: string): number {
    return Number.parseInt(ref.slice(0, 8), 16) % this.shards
  }

  /** All that belongs to a wallet. */
  place(ref: string): Place {
    const shard = this.shard(ref)
    const prefix = this.#prefix(shard)
    return {
      tenant: this.tenant,
      ref,
      shard,
      walletKey: `${prefix}wallet:v1:${ref}`,
      isSale: isSale(ref),
      stockKey: `${prefix}stock:v1:${ref}`,
      leaseKey: `${prefix}lease:v1:${ref}`,
      agendaKey: this.agenda(shard),
      agendaName: `${this.tenant}:${ref}`,
    }
  }

  /** Who has the wallet for itself, by its id. Beside the wallet and not part of its place: only those who ask for it need it. */
  lock(walletId: string): string {
    const { ref, shard } = this.of(walletId)
    return `${this.#prefix(shard)}lock:v1:${ref}`
  }

  /** The wallets of a shard that somebody must look at, by time. */
  agenda(shard: number): string {
    return `hf:*:{${shard}}:agenda:v1:${this.#database}`
  }

  /** Where it is tried whether the node that has the shard is there, and writes. */
  probe(shard: number): string {
    return `hf:*:{${shard}}:probe:v1:${this.#database}`
  }

  /** What processes know to be in the journal. One for the whole database: it says how all of it stands. */
  get witnesses(): string {
    return `hf:*:{0}:witnesses:v1:${this.#database}`
  }

  #prefix(shard: number): string {
    return `hf:${this.tenant}:{${shard}}:`
  }

  #hmac(walletId: string): string {
    // A tenant has no NUL, so that no two pairs of tenant and id give the same bytes.
    const digest = createHmac('sha256', this.#secret).update(`${this.tenant}\0${walletId}`).digest('hex')
    return digest.slice(0, 32)
  }
}
