import { integer, namesOf, options as optionsOf } from '../../input/index.js'
import { limitsReset, otpAttempt, otpPeek } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import { type Context, note, tell } from '../context.js'
import { durationMs, KeySpace, type Scope } from '../keys.js'
import type { Primitives } from '../primitives.js'
import { instantArg } from '../time.js'
import { type PhoneOptions, Phones } from './phone.js'

export interface OtpLimiterOptions extends PhoneOptions {
  /** How many attempts within `windowMs`, whenever it is looked at. Default 5. */
  readonly attempts?: number
  /** Default 10 minutes. */
  readonly windowMs?: number
  /** For how long nothing is let through after the last attempt was used. Default `windowMs`; 0: only until attempts leave the window. */
  readonly cooldownMs?: number
  /** How many times longer each further cool-down is. Default 1: no longer. */
  readonly cooldownGrowth?: number
  /** The most that they grow to; and for how long after its end one makes the next longer. Default a day. */
  readonly cooldownMaxMs?: number
}

const OPTION_NAMES = namesOf<OtpLimiterOptions>({
  country: true,
  trunkPrefix: true,
  internationalPrefix: true,
  attempts: true,
  windowMs: true,
  cooldownMs: true,
  cooldownGrowth: true,
  cooldownMaxMs: true,
})

export interface OtpCall {
  /** When it happens. Default now, by the clock of Redis. */
  readonly at?: Date
}

const CALL_NAMES = namesOf<OtpCall>({ at: true })

export interface OtpAnswer {
  /** False: refused, and nothing changed. */
  readonly allowed: boolean
  /** How many more would be let through now. */
  readonly attemptsLeft: number
  /** When the next one will be let through; 0: at once. */
  readonly retryAfterMs: number
}

const ATTEMPTS_MAX = 1_000
const GROWTH_MAX = 100
const WINDOW_MS = 10 * 60_000
const DAY_MS = 24 * 60 * 60_000
const BUFFER_MS = 60_000

/**
 * Limits how often a one-time password may be tried, or sent, for a phone number: so many within any ten minutes, then a cool-down. Numbers
 * are brought into one form and hashed, so that no spelling gives attempts anew and none is ever stored.
 */
export class OtpLimiter {
  readonly attempts: number
  readonly #context: Context
  readonly #space: KeySpace
  readonly #phones: Phones
  readonly #terms: readonly number[]
  readonly #attempt: Calls
  readonly #peek: Calls
  readonly #clear: Calls

  constructor({ context }: Primitives, operation: string, options: OtpLimiterOptions = {}) {
    const given = optionsOf('options', options, OPTION_NAMES)
    this.attempts = integer('attempts', given.attempts ?? 5, 1, ATTEMPTS_MAX)
    const windowMs = durationMs('windowMs', given.windowMs ?? WINDOW_MS)
    const cooldownMs = durationMs('cooldownMs', given.cooldownMs ?? windowMs, 0)
    const growth = integer('cooldownGrowth', given.cooldownGrowth ?? 1, 1, GROWTH_MAX)
    const maxMs = durationMs(
      'cooldownMaxMs',
      given.cooldownMaxMs ?? Math.max(DAY_MS, cooldownMs),
      Math.max(1, cooldownMs),
    )
    this.#terms = [this.attempts, windowMs, BUFFER_MS, cooldownMs, growth, maxMs, growth === 1 ? BUFFER_MS : maxMs]
    this.#phones = new Phones(options)
    this.#context = context
    this.#space = new KeySpace(context, 'otp', operation)
    this.#attempt = new Calls(context, 'otp', otpAttempt)
    this.#peek = new Calls(context, 'otp', otpPeek)
    this.#clear = new Calls(context, 'otp', limitsReset)
  }

  /** The one form of a number: `+4917123456`. What you send a password to should be this, so that it is what was counted. */
  normalise(phone: string): string {
    return this.#phones.normalise(phone)
  }

  /** Ask before each attempt. A refused one neither counts nor makes the cool-down longer. */
  async attempt(phone: string, call: OtpCall = {}): Promise<OtpAnswer> {
    const atMs = instantArg('at', optionsOf('options', call, CALL_NAMES).at)
    const scope = this.#scope(phone)
    const { began, ...answer } = this.#read(await this.#attempt.add(scope, keysOf(scope), [atMs, ...this.#terms]))
    tell(this.#context, 'otp', answer.allowed ? 'allowed' : 'refused')
    if (began > 0) {
      tell(this.#context, 'otp', 'cooldown')
      note(this.#context, 'otp_cooldown', scope, { number: began, retryAfterMs: answer.retryAfterMs })
    }
    return answer
  }

  /** What `attempt` would say, without counting. */
  async peek(phone: string, call: OtpCall = {}): Promise<OtpAnswer> {
    const atMs = instantArg('at', optionsOf('options', call, CALL_NAMES).at)
    const scope = this.#scope(phone)
    const { began: _, ...answer } = this.#read(await this.#peek.add(scope, keysOf(scope), [atMs, ...this.#terms]))
    return answer
  }

  /** The password was right: forgets attempts and cool-downs. True: there was something to forget. */
  async succeeded(phone: string): Promise<boolean> {
    const scope = this.#scope(phone)
    const forgotten = (await this.#clear.add(scope, keysOf(scope), [])) !== 0
    tell(this.#context, 'otp', 'succeeded')
    return forgotten
  }

  #scope = (phone: string): Scope => this.#space.scope(this.#phones.counted(phone))

  #read(answer: unknown): OtpAnswer & { readonly began: number } {
    const [allowed, counted, retryAfterMs, began] = String(answer).split(' ').map(Number) as [
      number,
      number,
      number,
      number,
    ]
    // During a cool-down attempts leave the window, and are not let through for that.
    const attemptsLeft = retryAfterMs > 0 ? 0 : this.attempts - counted
    return { allowed: allowed === 1, attemptsLeft, retryAfterMs, began }
  }
}

const keysOf = (scope: Scope): [string, string] => [scope.key('attempts'), scope.key('cooldown')]
