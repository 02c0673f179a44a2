import { invalid } from '../../input/index.js'

/**
 * Every key of the store. Three are stripe402's, to the letter:
 *
 *   stripe402:client:<clientId>              hash     the client: six fields
 *   stripe402:txn:<clientId>:<id>            string   a transaction: JSON
 *   stripe402:txns:<clientId>                zset     its transactions: id by milliseconds
 *
 * What we remember beside them must change in the same step as the balance, and on a Cluster a step can't leave its slot. It must
 * not stand in the client's hash either: who reads that reads six fields. So it lies in keys of its own whose hash tag is the whole
 * name of the client's key, and that puts them into the client's slot:
 *
 *   hf:stripe402:{stripe402:client:<clientId>}:once:v1:<key>     string, expires   what a change with this key did
 *   hf:stripe402:{stripe402:client:<clientId>}:moves:v1          hash              id → what the move did
 *   hf:stripe402:{stripe402:client:<clientId>}:pending:v1        hash              id → what is to be filed, on a Cluster
 *
 * With `tagged` the id itself is the tag of all of them, `stripe402:client:{<clientId>}` and so on: then all keys of a client lie in
 * one slot, and published software does not find them.
 */
export class StoreKeys {
  readonly #prefix: string
  readonly #tagged: boolean
  readonly #isCluster: boolean

  /** `prefix`: what the owner of the client has put before all keys. */
  constructor(prefix: string, tagged: boolean, isCluster: boolean) {
    this.#prefix = prefix
    this.#tagged = tagged
    this.#isCluster = isCluster
  }

  client(clientId: string): string {
    return `${this.#prefix}stripe402:client:${this.#id(clientId)}`
  }

  transaction(clientId: string, id: string): string {
    return `${this.#prefix}stripe402:txn:${this.#id(clientId)}:${id}`
  }

  index(clientId: string): string {
    return `${this.#prefix}stripe402:txns:${this.#id(clientId)}`
  }

  once(clientId: string, key: string): string {
    return `${this.#beside(clientId)}:once:v1:${key}`
  }

  moves(clientId: string): string {
    return `${this.#beside(clientId)}:moves:v1`
  }

  pending(clientId: string): string {
    return `${this.#beside(clientId)}:pending:v1`
  }

  /** Patterns for SCAN. */
  get clients(): string {
    return `${glob(this.client('').replace(/\{\}$/, ''))}*`
  }

  get indexes(): string {
    return `${glob(this.index('').replace(/\{\}$/, ''))}*`
  }

  get pendings(): string {
    return `${glob(`${this.#prefix}hf:stripe402:{`)}*:pending:v1`
  }

  /** Whose client or index a key is; null: it is none of ours. */
  read(key: string, purpose: 'client' | 'txns'): string | null {
    const start = `${this.#prefix}stripe402:${purpose}:`
    if (!key.startsWith(start)) return null
    const id = key.slice(start.length)
    if (!this.#tagged) return id
    return id.startsWith('{') && id.endsWith('}') ? id.slice(1, -1) : null
  }

  /** For whose transactions something is to be done; null: it is none of ours. */
  readPending(key: string): string | null {
    const start = `${this.#prefix}hf:stripe402:{`
    const end = ':pending:v1'
    if (!key.startsWith(start) || !key.endsWith(end)) return null
    const [, tag = '', length, id] = /^(.*?)\}(?::(\d+):(.*))?$/s.exec(key.slice(start.length, -end.length)) ?? []
    const clientId = id !== undefined && id.length === Number(length) ? id : this.read(tag, 'client')
    return clientId !== null && this.pending(clientId) === key ? clientId : null
  }

  #id(clientId: string): string {
    return this.#tagged ? `{${clientId}}` : clientId
  }

  #beside(clientId: string): string {
    const client = this.client(clientId)
    const tag = hashedPart(client)
    if (tag.includes('}')) {
      if (this.#isCluster) {
        throw invalid(
          'clientId',
          'one without } on a Cluster, where it takes part in choosing the node',
          'one that has it',
        )
      }
      // No slot to share, and as a tag it could end where that of another client does.
      return `${this.#prefix}hf:stripe402:{}:${clientId.length}:${clientId}`
    }
    // Where the tag is something else, as in ids with braces, several clients may share it.
    const own = tag === client || tag === clientId ? '' : `:${clientId.length}:${clientId}`
    return `${this.#prefix}hf:stripe402:{${tag}}${own}`
  }
}

/** What of a key decides about its slot: what stands between the first { and the next }, unless that is nothing. */
function hashedPart(key: string): string {
  const start = key.indexOf('{')
  const end = start < 0 ? -1 : key.indexOf('}', start + 1)
  return end > start + 1 ? key.slice(start + 1, end) : key
}

const glob = (text: string): string => text.replaceAll(/[*?[\]\\^-]/g, '\\$&')
